; Ways of binding: strides, alignment, capacity, allocators, inputs' memory, donation.
.const k: f32[4] = {1, 2, 3, 4}
.kernel fill_1 = "fill_1"
.kernel inc = "inc"
.kernel inc_over = "inc" in_place
.kernel add = "add"

; bind y: strided
; plan y: rewired
; run y: copied: the bound memory is strided
.func case_strided(x: f32[4]) -> y: f32[4]
  %y = invoke make(%x)
  ret %y
.end

; bind y: misaligned
; plan y: rewired
; run y: copied: the bound memory is not aligned as the kernels need
.func case_misaligned(x: f32[4]) -> y: f32[4]
  %y = invoke make(%x)
  ret %y
.end

; bind a: strided
; bind b: misaligned
; bind d: unbound
; plan a: rewired
; run a: copied: the bound memory is strided
; plan b: rewired
; run b: copied: the bound memory is not aligned as the kernels need
; plan d: rewired
; plan e: rewired
.func case_some_this_way_some_that(x: f32[4]) -> (a: f32[4], b: f32[4], d: f32[4], e: f32[4])
  %a = invoke make(%x)
  %b = invoke make(%a)
  %d = invoke make(%b)
  %e = invoke make(%d)
  %r = alloc_adt tag=0(%a, %b, %d, %e)
  ret %r
.end

; bind y: capacity 16
; plan y: rewired
.func case_capacity_that_just_fits(x: f32[N]) -> y: f32[N]
  %y = invoke grow(%x)
  ret %y
.end

; bind y: capacity 15
; plan y: rewired
; fails: case_capacity_that_is_too_small@5 (ret %1): output y: f32[4] takes 16 bytes, the bound memory has 15
.func case_capacity_that_is_too_small(x: f32[N]) -> y: f32[N]
  %y = invoke grow(%x)
  ret %y
.end

; bind y: capacity 64
; plan y: copied: it is an input, or part of one
.func case_capacity_for_an_input(x: f32[N]) -> y: f32[N]
  ret %x
.end

; bind y: allocator
; plan y: rewired
.func case_allocator(x: f32[N]) -> y: f32[N]
  %y = invoke grow(%x)
  ret %y
.end

; bind y: allocator
; plan y: copied: it is a constant or a parameter
.func case_allocator_for_a_constant() -> y: f32[4]
  %y = load_const k
  ret %y
.end

; bind y: allocator null
; plan y: rewired
; fails: case_allocator_that_has_nothing@5 (ret %1): output y: its allocator gave no 16 bytes
.func case_allocator_that_has_nothing(x: f32[N]) -> y: f32[N]
  %y = invoke grow(%x)
  ret %y
.end

; bind y: over x
; plan y: rewired
; run y: copied: the bound memory overlaps an input of the same call
.func case_over_the_input(x: f32[4]) -> y: f32[4]
  %y = invoke make(%x)
  ret %y
.end

; bind y: over x + 4
; plan y: rewired
; run y: copied: the bound memory overlaps an input of the same call
.func case_over_part_of_the_input(x: f32[8]) -> y: f32[4]
  %s = alloc_storage _, alignment=64, f32[4], cpu
  %y = alloc_tensor %s, _, f32[4]
  invoke_packed fill_1(%y), outputs=1
  invoke_packed add(%y, %x, %y), outputs=1
  ret %y
.end

; bind y: over t
; plan y: rewired
; run y: copied: the bound memory overlaps an input of the same call
.func case_over_a_field_of_the_input(t: (f32[4], f32[4])) -> y: f32[4]
  %a = get_field %t, index=0
  %s = alloc_storage _, alignment=64, f32[4], cpu
  %y = alloc_tensor %s, _, f32[4]
  invoke_packed fill_1(%y), outputs=1
  invoke_packed add(%y, %a, %y), outputs=1
  ret %y
.end

; bind y: over x
; plan y: copied: it is an input, or part of one
; run y: in place
; made by an instruction: y
.func case_the_input_onto_itself(x: f32[4]) -> y: f32[4]
  ret %x
.end

; bind a: over x
; bind b: over y
; plan a: copied: it is an input, or part of one
; plan b: copied: it is an input, or part of one
; run a: copied: the bound memory overlaps an input of the same call
; run b: copied: the bound memory overlaps an input of the same call
.func case_two_inputs_change_places(x: f32[4], y: f32[4]) -> (a: f32[4], b: f32[4])
  %r = alloc_adt tag=0(%y, %x)
  ret %r
.end

; bind a: over x
; bind b: unbound
; plan a: rewired
; plan b: copied: it is an input, or part of one
; fails: function case_over_an_input_that_is_returned, output 0 (a): the bound memory overlaps input x, which output b may return; bind that output too, or use other memory
.func case_over_an_input_that_is_returned(x: f32[4]) -> (a: f32[4], b: f32[4])
  %a = invoke make(%x)
  %r = alloc_adt tag=0(%a, %x)
  ret %r
.end

; bind b: over output a
; plan a: rewired
; plan b: rewired
; fails: function case_over_another_output, output 1 (b): the bound memory overlaps that of output a
.func case_over_another_output(x: f32[4]) -> (a: f32[4], b: f32[4])
  %a = invoke make(%x)
  %b = invoke make(%a)
  %r = alloc_adt tag=0(%a, %b)
  ret %r
.end

; bind y: over constant k
; plan y: rewired
; fails: function case_over_a_constant, output 0 (y): the bound memory overlaps constant k
.func case_over_a_constant(x: f32[4]) -> y: f32[4]
  %y = invoke make(%x)
  ret %y
.end

; bind y: donate x
; plan y: rewired
; zero copy
.func case_donation(x: f32[4]) -> y: f32[4]
  %s = alloc_storage _, alignment=64, f32[4], cpu
  %y = alloc_tensor %s, _, f32[4]
  invoke_packed inc_over(%x, %y), outputs=1
  ret %y
.end

; bind y: donate x
; plan y: rewired
; run y: copied: the donated input is still read when the output is first written
.func case_donation_to_a_kernel_that_does_not_work_in_place(x: f32[4]) -> y: f32[4]
  %s = alloc_storage _, alignment=64, f32[4], cpu
  %y = alloc_tensor %s, _, f32[4]
  invoke_packed inc(%x, %y), outputs=1
  ret %y
.end

; bind y: donate x
; plan y: rewired
; run y: copied: the donated input is still read when the output is first written
.func case_donation_of_what_is_read_later(x: f32[4]) -> y: f32[4]
  %s = alloc_storage _, alignment=64, f32[4], cpu
  %y = alloc_tensor %s, _, f32[4]
  invoke_packed fill_1(%y), outputs=1
  invoke_packed add(%y, %x, %y), outputs=1
  ret %y
.end

; bind y: donate x
; plan y: rewired
.func case_donation_after_the_last_read(x: f32[4]) -> y: f32[4]
  %s = alloc_storage _, alignment=64, f32[4], cpu
  %a = alloc_tensor %s, _, f32[4]
  invoke_packed inc(%x, %a), outputs=1
  %t = alloc_storage _, alignment=64, f32[4], cpu
  %y = alloc_tensor %t, _, f32[4]
  invoke_packed inc(%a, %y), outputs=1
  ret %y
.end

; bind y: donate x
; plan y: copied: it is an input, or part of one
; run y: in place
; made by an instruction: y
.func case_donation_of_what_is_returned(x: f32[4]) -> y: f32[4]
  ret %x
.end

; bind a: donate x
; bind b: unbound
; plan a: rewired
; plan b: copied: it is an input, or part of one
; fails: function case_donation_of_what_another_output_returns, output 0 (a): input x cannot be donated, output b may return it too
.func case_donation_of_what_another_output_returns(x: f32[4]) -> (a: f32[4], b: f32[4])
  %a = invoke make(%x)
  %r = alloc_adt tag=0(%a, %x)
  ret %r
.end

; bind y: donate x
; plan y: rewired
; fails: case_donation_of_too_little@24 (ret %2): output y: f32[8] takes 32 bytes, the bound memory has 16
.func case_donation_of_too_little(x: f32[4]) -> y: f32[8]
  %s = alloc_storage _, alignment=64, f32[8], cpu
  %y = alloc_tensor %s, _, f32[8]
  invoke_packed inc(%x, %y), outputs=1
  ret %y
.end

; bind y: donate t
; plan y: rewired
; fails: function case_donation_of_a_tuple, output 0 (y): the donated input t is not a tensor that may be written
.func case_donation_of_a_tuple(t: (f32[4], f32[4])) -> y: f32[4]
  %s = alloc_storage _, alignment=64, f32[4], cpu
  %y = alloc_tensor %s, _, f32[4]
  invoke_packed fill_1(%y), outputs=1
  ret %y
.end

.func make(x: f32[4]) -> y: f32[4]
  %s = alloc_storage _, alignment=64, f32[4], cpu
  %a = alloc_tensor %s, _, f32[4]
  invoke_packed inc(%x, %a), outputs=1
  ret %a
.end

.func grow(x: f32[N]) -> y: f32[N]
  %shape = shape_of %x
  %bytes = load_consti 4096
  %s = alloc_storage %bytes, alignment=64, f32, cpu
  %a = alloc_tensor_reg %s, _, %shape, f32
  invoke_packed inc(%x, %a), outputs=1
  ret %a
.end
