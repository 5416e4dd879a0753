.const i64: i64[] = -1
.const i32: i32[] = -1
.const i16: i16[] = -1
.const i8: i8[] = -1
.const u8: u8[] = 255
.const u16: u16[] = 65535
.const u32: u32[] = 4294967295
.const yes: bool[] = true
.const one_element: i64[1] = {7}
.const two_elements: i64[2] = {7, 7}
.const float: f32[] = 1
.const wide: i64[] = 4294967301       ; 2^32 + 5

.func opaque(x: value) -> value
  ret %x
.end

; 1 when equal, otherwise 0.
.func equal(a: value, b: value) -> value
  if %a == %b goto same else other
same:
  %one = load_consti 1
  ret %one
other:
  %zero = load_consti 0
  ret %zero
.end

.func expect_equal(a: value, b: value) -> value
  %got = invoke equal(%a, %b)
  %one = load_consti 1
  if %got == %one goto good else bad
good:
  ret %got
bad:
  fatal "two values should be equal"
.end

.func expect_different(a: value, b: value) -> value
  %got = invoke equal(%a, %b)
  %zero = load_consti 0
  if %got == %zero goto good else bad
good:
  ret %got
bad:
  fatal "two values should differ"
.end

.func test_signed_types_agree() -> value
  %minus_one = load_consti -1
  %x = load_const i64
  %r = invoke expect_equal(%minus_one, %x)
  %x = load_const i32
  %r = invoke expect_equal(%minus_one, %x)
  %x = load_const i16
  %r = invoke expect_equal(%minus_one, %x)
  %x = load_const i8
  %r = invoke expect_equal(%x, %minus_one)
  if %x == %minus_one goto done else bad
done:
  ret %r
bad:
  fatal
.end

.func test_unsigned_types_are_not_negative() -> value
  %minus_one = load_consti -1
  %x = load_const u8
  %r = invoke expect_different(%minus_one, %x)
  %n = load_consti 255
  %r = invoke expect_equal(%n, %x)
  %x = load_const u16
  %n = load_consti 65535
  %r = invoke expect_equal(%n, %x)
  %x = load_const u32
  %n = load_consti 4294967295
  %r = invoke expect_equal(%n, %x)
  %r = invoke expect_different(%minus_one, %x)
  if %x == %n goto done else done
done:
  ret %r
.end

.func test_booleans_are_one_and_zero() -> value
  %x = load_const yes
  %one = load_consti 1
  %r = invoke expect_equal(%x, %one)
  ret %r
.end

; All 64 bits count.
.func test_wide_integers() -> value
  %wide = load_const wide
  %five = load_consti 5
  %r = invoke expect_different(%wide, %five)
  %same = load_consti 4294967301
  %r = invoke expect_equal(%wide, %same)
  ret %r
.end

.func test_one_element() -> value
  %x = load_const one_element
  %seven = load_consti 7
  %r = invoke expect_equal(%x, %seven)
  ret %r
.end

.func test_both_targets_in_one_place() -> value
  %x = load_consti 1
  if %x == %x goto here else here
here:
  ret %x
.end

; fails: run-time error: equal@0 (if %a == %b goto L5 else L11): test is a tensor f32[], an integer scalar is expected
.func fail_float() -> value
  %x = load_const float
  %r = invoke equal(%x, %x)
  ret %r
.end

; fails: run-time error: equal@0 (if %a == %b goto L5 else L11): test is a tensor i32x2[], an integer scalar is expected
.func fail_two_lanes() -> value
  %bytes = load_consti 8
  %storage = alloc_storage %bytes, alignment=64, u8, cpu
  %x = alloc_tensor %storage, _, i32x2[]
  %r = invoke equal(%x, %x)
  ret %r
.end

; fails: run-time error: equal@0 (if %a == %b goto L5 else L11): target is a tensor i64[2], an integer scalar is expected
.func fail_two_elements() -> value
  %x = load_const two_elements
  %n = load_consti 7
  %r = invoke equal(%n, %x)
  ret %r
.end

; fails: run-time error: equal@0 (if %a == %b goto L5 else L11): test is no integer scalar
.func fail_not_a_number() -> value
  %x = alloc_adt tag=0 ()
  %r = invoke equal(%x, %x)
  ret %r
.end
