; Shapes that show at run time.
.const two: i64[1] = {2}
.const three_four: i64[2] = {3, 4}
.kernel inc = "inc"
.kernel add = "add"
.kernel fill_1 = "fill_1"

; plan y: rewired
.func case_of_the_inputs_shape(x: f32[N, M]) -> y: f32[N, M]
  %shape = shape_of %x
  %bytes = load_consti 1024
  %s = alloc_storage %bytes, alignment=64, f32, cpu
  %y = alloc_tensor_reg %s, _, %shape, f32
  invoke_packed inc(%x, %y), outputs=1
  ret %y
.end

; plan y: rewired
; plan n: rewired
; made by an instruction: n
.func case_of_a_shape_that_is_an_output_too(x: f32[N, M]) -> (y: f32[N, M], n: i64[2])
  %n = shape_of %x
  %bytes = load_consti 1024
  %s = alloc_storage %bytes, alignment=64, f32, cpu
  %y = alloc_tensor_reg %s, _, %n, f32
  invoke_packed inc(%x, %y), outputs=1
  %r = alloc_adt tag=0(%y, %n)
  ret %r
.end

; set c = 1
; plan y: rewired
.func case_of_another_shape_in_each_arm(x: f32[4], c: i64[]) -> y: f32[*]
  %one = load_consti 1
  if %c == %one goto yes else no
yes:
  %a = load_const two
  %shape = move %a
  goto done
no:
  %b = load_const three_four
  %shape = move %b
done:
  %bytes = load_consti 1024
  %s = alloc_storage %bytes, alignment=64, f32, cpu
  %y = alloc_tensor_reg %s, _, %shape, f32
  invoke_packed inc(%x, %y), outputs=1
  ret %y
.end

; bind y: allocator
; plan y: rewired
.func case_a_smaller_one_first(x: f32[4], c: i64[]) -> y: f32[*]
  %shape = load_const three_four
  %y = invoke sized(%x, %shape)
  ret %y
.end

; bind y: capacity 64
; plan y: rewired
.func case_a_view_of_another_rank(x: f32[N]) -> y: f32[?, ?]
  %square = load_const three_four
  %bytes = load_consti 48
  %s = alloc_storage %bytes, alignment=64, f32, cpu
  %a = alloc_tensor %s, _, f32[12]
  invoke_packed inc(%x, %a), outputs=1
  %y = reshape_tensor %a, %square
  ret %y
.end

; plan y: rewired
.func case_a_scalar(x: f32[4]) -> y: f32[]
  %s = alloc_storage _, alignment=64, f32[], cpu
  %y = alloc_tensor %s, _, f32[]
  invoke_packed inc(%x, %y), outputs=1
  ret %y
.end

.func sized(x: f32[4], shape: i64[?]) -> y: f32[*]
  %bytes = load_consti 1024
  %s = alloc_storage %bytes, alignment=64, f32, cpu
  %y = alloc_tensor_reg %s, _, %shape, f32
  invoke_packed inc(%x, %y), outputs=1
  ret %y
.end
