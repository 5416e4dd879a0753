.const smallest: i64[] = -9223372036854775808
.const largest: i64[] = 9223372036854775807
.kernel expect_equal = "test.expect_equal"

.func test_extremes() -> value
  %x = load_consti -9223372036854775808
  %expected = load_const smallest
  invoke_packed expect_equal(%x, %expected), outputs=0
  %x = load_consti 0x7fffffffffffffff
  %expected = load_const largest
  invoke_packed expect_equal(%x, %expected), outputs=0
  ret %x
.end

; limits: steps=1
; fails: step limit: fail_at_the_step_limit@4 (%1 = load_consti -2): the limit of 1 instructions is used up; raise Limits::steps if the program needs more
.func fail_at_the_step_limit() -> value
  %x = load_consti 1
  %y = load_consti -2
  ret %y
.end
