.const pair: f32[2] = {1, 2}
.const tag: i32[] = 7
.kernel expect_equal = "test.expect_equal"

.func opaque(x: value) -> value
  ret %x
.end

.func test_is_an_int32() -> value
  %x = alloc_adt tag=7 ()
  %tag = get_tag %x
  %expected = load_const tag
  invoke_packed expect_equal(%tag, %expected), outputs=0
  ret %tag
.end

.func test_over_its_own_object() -> value
  %x = alloc_adt tag=7 ()
  %x = get_tag %x
  %seven = load_consti 7
  if %x == %seven goto good else bad
good:
  ret %x
bad:
  fatal "the tag is not 7"
.end

; fails: run-time error: fail_of_a_tensor@8 (%2 = get_tag %1): %1 holds a tensor f32[2], an ADT is expected
.func fail_of_a_tensor() -> value
  %x = load_const pair
  %hidden = invoke opaque(%x)
  %tag = get_tag %hidden
  ret %tag
.end

; fails: run-time error: fail_of_a_closure@9 (%2 = get_tag %1): %1 holds a closure, an ADT is expected
.func fail_of_a_closure() -> value
  %x = alloc_closure opaque()
  %hidden = invoke opaque(%x)
  %tag = get_tag %hidden
  ret %tag
.end

; fails: run-time error: fail_of_an_integer@9 (%2 = get_tag %1): %1 holds the integer 7, an ADT is expected
.func fail_of_an_integer() -> value
  %x = load_consti 7
  %hidden = invoke opaque(%x)
  %tag = get_tag %hidden
  ret %tag
.end
