.const pair: f32[2] = {1, 2}
.const large: u8[100000] = zeros
.kernel expect_equal = "test.expect_equal"
.kernel add_one = "test.add_one"

.func opaque(x: value) -> value
  ret %x
.end

.func test_has_the_same_elements() -> value
  %x = load_const pair
  %y = device_copy %x, cpu, cpu
  invoke_packed expect_equal(%x, %y), outputs=0
  ret %y
.end

; A copy of a constant may be written.
.func test_is_a_copy() -> value
  %x = load_const pair
  %y = device_copy %x, cpu, cpu
  invoke_packed add_one(%x, %y), outputs=1
  %expected = device_copy %y, cpu, cpu
  invoke_packed expect_equal(%y, %expected), outputs=0
  ret %y
.end

.func test_an_integer_becomes_a_scalar() -> value
  %n = load_consti 5
  %y = device_copy %n, cpu, cpu
  %five = load_consti 5
  invoke_packed expect_equal(%y, %five), outputs=0
  ret %y
.end

; fails: run-time error: fail_of_an_adt@9 (%2 = device_copy %1, cpu, cpu): %1 holds an ADT with tag 1 and 0 fields, a tensor is expected
.func fail_of_an_adt() -> value
  %x = alloc_adt tag=1 ()
  %hidden = invoke opaque(%x)
  %y = device_copy %hidden, cpu, cpu
  ret %y
.end

; limits: bytes=50000
; fails: memory limit: fail_over_the_byte_limit@3 (%1 = device_copy %0, cpu, cpu): 100000 bytes more asked for, <n> of the limit of 50000 are in use; raise Limits::bytes if the program needs more
.func fail_over_the_byte_limit() -> value
  %x = load_const large
  %y = device_copy %x, cpu, cpu
  ret %y
.end
