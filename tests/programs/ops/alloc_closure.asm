.const pair: f32[2] = {1, 2}
.kernel expect_equal = "test.expect_equal"

.func second(a: value, b: value) -> value
  ret %b
.end

.func test_keeps_what_it_captures() -> value
  %x = load_const pair
  %n = load_consti 1
  %closure = alloc_closure second(%n, %x)
  kill %x
  %y = invoke_closure %closure()
  %pair = load_const pair
  invoke_packed expect_equal(%y, %pair), outputs=0
  ret %y
.end

.func test_in_a_closure() -> value
  %n = load_consti 1
  %inner = alloc_closure second(%n)
  %outer = alloc_closure second(%n, %inner)
  %got = invoke_closure %outer()
  %pair = load_const pair
  %y = invoke_closure %got(%pair)
  invoke_packed expect_equal(%y, %pair), outputs=0
  ret %y
.end

; limits: bytes=1000000
; fails: memory limit: fail_over_the_byte_limit@4 (%0 = alloc_closure second(%0)): <n> bytes more asked for, <n> of the limit of 1000000 are in use; raise Limits::bytes if the program needs more
.func fail_over_the_byte_limit() -> value
  %x = load_consti 1
longer:
  %x = alloc_closure second(%x)
  goto longer
.end
