.kernel expect_equal = "test.expect_equal"

.func test_passes_arguments_in_order() -> value
  %a = load_consti 1
  %b = load_consti 2
  %tuple = invoke pair(%a, %b)
  %first = get_field %tuple, index=0
  %second = get_field %tuple, index=1
  invoke_packed expect_equal(%first, %a), outputs=0
  invoke_packed expect_equal(%second, %b), outputs=0
  ret %tuple
.end

.func pair(a: value, b: value) -> value
  %tuple = alloc_adt tag=0 (%a, %b)
  ret %tuple
.end

; The callee writes registers of its own, not the caller's, whose first registers have the same numbers.
.func test_keeps_the_callers_registers() -> value
  %a = load_consti 1
  %b = load_consti 2
  %c = invoke overwrites(%a, %b)
  %one = load_consti 1
  invoke_packed expect_equal(%a, %one), outputs=0
  %nine = load_consti 9
  invoke_packed expect_equal(%c, %nine), outputs=0
  ret %c
.end

.func overwrites(a: value, b: value) -> value
  %a = load_consti 9
  %b = load_consti 9
  ret %b
.end

.func test_result_over_an_argument() -> value
  %a = load_consti 4
  %a = invoke overwrites(%a, %a)
  %nine = load_consti 9
  invoke_packed expect_equal(%a, %nine), outputs=0
  ret %a
.end

; rebuilds a list of three cells by recursion, in front of the frames that it returns through.
.func test_recursion() -> value
  %leaf = alloc_adt tag=0 ()
  %a = alloc_adt tag=1 (%leaf)
  %b = alloc_adt tag=2 (%a)
  %c = alloc_adt tag=3 (%b)
  %copy = invoke copy_list(%c)
  %tail = get_field %copy, index=0
  %tail = get_field %tail, index=0
  %tag = get_tag %tail
  %one = load_consti 1
  if %tag == %one goto good else bad
good:
  ret %copy
bad:
  fatal "the third cell of the copy has another tag"
.end

.func copy_list(list: value) -> value
  %tag = get_tag %list
  %zero = load_consti 0
  if %tag == %zero goto leaf else cell
leaf:
  ret %list
cell:
  %tail = get_field %list, index=0
  %tail = invoke copy_list(%tail)
  %one = load_consti 1
  if %tag == %one goto one else other
one:
  %copy = alloc_adt tag=1 (%tail)
  ret %copy
other:
  %copy = alloc_adt tag=2 (%tail)
  ret %copy
.end

.func recurses(x: value) -> value
  %y = invoke recurses(%x)
  ret %y
.end

; limits: depth=100000
; fails: depth limit: recurses@0 (%1 = invoke recurses(%x)): the limit of 100000 active calls is reached; raise Limits::depth if the program needs more
.func fail_too_deep() -> value
  %x = load_consti 1
  %y = invoke recurses(%x)
  ret %y
.end

; limits: steps=1
; fails: step limit: fail_at_the_step_limit@4 (%1 = invoke recurses(%0)): the limit of 1 instructions is used up; raise Limits::steps if the program needs more
.func fail_at_the_step_limit() -> value
  %x = load_consti 1
  %y = invoke recurses(%x)
  ret %y
.end
