.kernel expect_equal = "test.expect_equal"

.func three(a: value, b: value, c: value) -> value
  %tuple = alloc_adt tag=0 (%a, %b, %c)
  ret %tuple
.end

.func opaque(x: value) -> value
  ret %x
.end

.func test_captured_values_come_first() -> value
  %a = load_consti 1
  %b = load_consti 2
  %c = load_consti 3
  %closure = alloc_closure three(%a, %b)
  %tuple = invoke_closure %closure(%c)
  %first = get_field %tuple, index=0
  invoke_packed expect_equal(%first, %a), outputs=0
  %last = get_field %tuple, index=2
  invoke_packed expect_equal(%last, %c), outputs=0
  ret %tuple
.end

.func test_nothing_captured() -> value
  %a = load_consti 1
  %closure = alloc_closure opaque()
  %x = invoke_closure %closure(%a)
  invoke_packed expect_equal(%x, %a), outputs=0
  ret %x
.end

.func test_everything_captured() -> value
  %a = load_consti 1
  %closure = alloc_closure three(%a, %a, %a)
  %x = invoke_closure %closure()
  %y = invoke_closure %closure()
  %first = get_field %y, index=0
  invoke_packed expect_equal(%first, %a), outputs=0
  ret %x
.end

; fails: run-time error: fail_not_a_closure@9 (%2 = invoke_closure %1()): %1 holds the integer 5, a closure is expected
.func fail_not_a_closure() -> value
  %n = load_consti 5
  %closure = invoke opaque(%n)
  %x = invoke_closure %closure()
  ret %x
.end

; fails: run-time error: fail_too_few_arguments@14 (%3 = invoke_closure %2(%0)): the closure of three takes 2 arguments after its 1 captured values, given 1
.func fail_too_few_arguments() -> value
  %a = load_consti 1
  %closure = alloc_closure three(%a)
  %opaque = invoke opaque(%closure)
  %x = invoke_closure %opaque(%a)
  ret %x
.end

; fails: run-time error: fail_too_many_arguments@16 (%3 = invoke_closure %2(%0)): the closure of three takes 0 arguments after its 3 captured values, given 1
.func fail_too_many_arguments() -> value
  %a = load_consti 1
  %closure = alloc_closure three(%a, %a, %a)
  %opaque = invoke opaque(%closure)
  %x = invoke_closure %opaque(%a)
  ret %x
.end

.func calls_itself(self: value) -> value
  %x = invoke_closure %self(%self)
  ret %x
.end

; limits: depth=50
; fails: depth limit: calls_itself@0 (%1 = invoke_closure %self(%self)): the limit of 50 active calls is reached; raise Limits::depth if the program needs more
.func fail_too_deep() -> value
  %self = alloc_closure calls_itself()
  %x = invoke_closure %self(%self)
  ret %x
.end
