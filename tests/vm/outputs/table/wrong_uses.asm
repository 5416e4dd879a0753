; Bindings that cannot be: the exact message, and the next run is right.
.const row: i64[2] = {1, 4}
.kernel inc = "inc"
.kernel give = "give"

; bind y: f64
; plan y: rewired
; fails: function case_another_dtype, output 0 (y): f32[4] expected, f64[4] given
.func case_another_dtype(x: f32[4]) -> y: f32[4]
  %y = invoke make(%x)
  ret %y
.end

; bind y: [2, 2]
; plan y: rewired
; fails: function case_another_shape, output 0 (y): f32[4] expected, f32[2, 2] given
.func case_another_shape(x: f32[4]) -> y: f32[4]
  %y = invoke make(%x)
  ret %y
.end

; bind y: on cuda
; plan y: rewired
; fails: function case_another_device, output 0 (y): memory on cuda:0 given, a device that the executable does not name
.func case_another_device(x: f32[4]) -> y: f32[4]
  %y = invoke make(%x)
  ret %y
.end

; bind y: on cuda
; plan y: rewired
; fails: function case_a_device_that_the_program_has_not, output 0 (y): memory on cuda:0 given, a device that the executable does not name
.func case_a_device_that_the_program_has_not(x: f32[4]) -> y: value
  %y = invoke make(%x)
  ret %y
.end

; bind y: f64
; plan y: rewired
; fails: case_a_dtype_that_shows_at_run_time@5 (ret %1): output y: the bound tensor is f64[4], the value is f32[4]
.func case_a_dtype_that_shows_at_run_time(x: f32[4]) -> y: value
  %y = invoke make(%x)
  ret %y
.end

; bind y: [2, 2]
; plan y: rewired
; fails: case_a_shape_that_shows_at_run_time@5 (ret %1): output y: the bound tensor is f32[2, 2], the value is f32[4]
.func case_a_shape_that_shows_at_run_time(x: f32[4]) -> y: f32[*]
  %y = invoke make(%x)
  ret %y
.end

; bind y: [2, 2]
; plan y: rewired
; fails: case_other_dimensions_that_show_at_run_time@12 (ret %3): output y: the bound tensor is f32[2, 2], the value is f32[1, 4]
.func case_other_dimensions_that_show_at_run_time(x: f32[4]) -> y: f32[*]
  %a = invoke make(%x)
  %row = load_const row
  %y = reshape_tensor %a, %row
  ret %y
.end

; plan f: copied: it is part of an output of unknown structure
; fails: function case_a_closure, output 0 (f): only tensors can be bound
.func case_a_closure(x: f32[4]) -> f: closure
  %f = alloc_closure make(%x)
  ret %f
.end

; zero copy
; plan y: copied: it is an input, or part of one
; fails: case_zero_copy_of_an_input@0 (ret %x): output y would be copied, and zero copy is required: it is an input, or part of one
.func case_zero_copy_of_an_input(x: f32[4]) -> y: f32[4]
  ret %x
.end

; zero copy
; bind y: strided
; plan y: rewired
; fails: case_zero_copy_into_strided_memory@5 (ret %1): output y would be copied, and zero copy is required: the bound memory is strided
.func case_zero_copy_into_strided_memory(x: f32[4]) -> y: f32[4]
  %y = invoke make(%x)
  ret %y
.end

; zero copy
; bind y: misaligned
; plan y: rewired
; fails: case_zero_copy_into_misaligned_memory@5 (ret %1): output y would be copied, and zero copy is required: the bound memory is not aligned as the kernels need
.func case_zero_copy_into_misaligned_memory(x: f32[4]) -> y: f32[4]
  %y = invoke make(%x)
  ret %y
.end

; zero copy
; bind y: over x
; plan y: rewired
; fails: case_zero_copy_over_the_input@5 (ret %1): output y would be copied, and zero copy is required: the bound memory overlaps an input of the same call
.func case_zero_copy_over_the_input(x: f32[4]) -> y: f32[4]
  %y = invoke make(%x)
  ret %y
.end

.func make(x: f32[4]) -> y: f32[4]
  %s = alloc_storage _, alignment=64, f32[4], cpu
  %a = alloc_tensor %s, _, f32[4]
  invoke_packed inc(%x, %a), outputs=1
  ret %a
.end
