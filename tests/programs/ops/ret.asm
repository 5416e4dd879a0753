; Any kind of value can be returned; what the frame held besides goes away.
.const pair: f32[2] = {1, 2}
.kernel expect_equal = "test.expect_equal"

.func test_an_integer() -> integer
  %x = load_consti 7
  ret %x
.end

.func test_a_constant() -> pair: f32[2]
  %x = load_const pair
  ret %x
.end

.func test_a_tuple() -> (n: integer, pair: f32[2], (inner: integer))
  %n = load_consti 7
  %pair = load_const pair
  %inner = alloc_adt tag=0 (%n)
  %tuple = alloc_adt tag=0 (%n, %pair, %inner)
  ret %tuple
.end

.func test_a_closure() -> closure
  %closure = alloc_closure opaque()
  ret %closure
.end

.func test_releases_the_frame() -> value
  %kept = invoke makes_tensors()
  invoke_packed expect_equal(%kept, %kept), outputs=0
  ret %kept
.end

.func makes_tensors() -> value
  %bytes = load_consti 1024
  %storage = alloc_storage %bytes, alignment=64, f32, cpu
  %a = alloc_tensor %storage, _, u8[512]
  %tuple = alloc_adt tag=1 (%a, %a)
  %n = load_consti 3
  ret %n
.end

.func opaque(x: value) -> value
  ret %x
.end

; limits: steps=1
; fails: step limit: fail_at_the_step_limit@4 (ret %0): the limit of 1 instructions is used up; raise Limits::steps if the program needs more
.func fail_at_the_step_limit() -> value
  %x = load_consti 1
  ret %x
.end
