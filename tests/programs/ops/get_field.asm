.const pair: f32[2] = {1, 2}
.kernel expect_equal = "test.expect_equal"

.func opaque(x: value) -> value
  ret %x
.end

.func test_first_and_last() -> value
  %a = load_consti 1
  %b = load_consti 2
  %tuple = alloc_adt tag=5 (%a, %a, %b)
  %x = get_field %tuple, index=0
  invoke_packed expect_equal(%x, %a), outputs=0
  %y = get_field %tuple, index=2
  invoke_packed expect_equal(%y, %b), outputs=0
  ret %y
.end

.func test_outlives_its_adt() -> value
  %x = load_const pair
  %tuple = alloc_adt tag=0 (%x)
  kill %x
  %tuple = get_field %tuple, index=0
  %pair = load_const pair
  invoke_packed expect_equal(%tuple, %pair), outputs=0
  ret %tuple
.end

; fails: run-time error: fail_past_the_last@16 (%3 = get_field %2, index=3): field 3 asked for, the ADT (tag 5) has 3 fields
.func fail_past_the_last() -> value
  %a = load_consti 1
  %tuple = alloc_adt tag=5 (%a, %a, %a)
  %hidden = invoke opaque(%tuple)
  %x = get_field %hidden, index=3
  ret %x
.end

; fails: run-time error: fail_no_fields@9 (%2 = get_field %1, index=0): field 0 asked for, the ADT (tag 0) has 0 fields
.func fail_no_fields() -> value
  %tuple = alloc_adt tag=0 ()
  %hidden = invoke opaque(%tuple)
  %x = get_field %hidden, index=0
  ret %x
.end

; fails: run-time error: fail_of_a_tensor@8 (%2 = get_field %1, index=0): %1 holds a tensor f32[2], an ADT is expected
.func fail_of_a_tensor() -> value
  %x = load_const pair
  %hidden = invoke opaque(%x)
  %y = get_field %hidden, index=0
  ret %y
.end

; fails: run-time error: fail_of_a_closure@9 (%2 = get_field %1, index=0): %1 holds a closure, an ADT is expected
.func fail_of_a_closure() -> value
  %x = alloc_closure opaque()
  %hidden = invoke opaque(%x)
  %y = get_field %hidden, index=0
  ret %y
.end
