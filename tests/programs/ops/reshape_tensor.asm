.const six: f32[6] = {1, 2, 3, 4, 5, 6}
.const matrix: f32[2, 3] = {{1, 2, 3}, {4, 5, 6}}
.const shape: i64[2] = {2, 3}
.const shape32: i32[2] = {2, 3}
.const column: i64[2] = {6, 1}
.const small: i64[2] = {2, 2}
.const negative: i64[2] = {-2, -3}
.const overflow: i64[3] = {6, 4611686018427387904, 4}
.const hollow: i64[3] = {0, 4294967296, 4294967296}
.const hollow_in_bytes: i64[3] = {0, 2147483648, 2147483648}
.const floats: f32[2] = {2, 3}
.const one: f32[1] = {9}
.const scalar: f32[] = 9
.const no_dims: i64[0] = {}
.const empty: f32[0] = {}
.const empty_shape: i64[2] = {5, 0}
.const empty_matrix: f32[5, 0] = {}
.kernel expect_equal = "test.expect_equal"
.kernel add_one = "test.add_one"

.func opaque(x: value) -> value
  ret %x
.end

.func reshaped(x: value, shape: value) -> value
  %y = reshape_tensor %x, %shape
  ret %y
.end

.func test_int64_shape() -> value
  %x = load_const six
  %shape = load_const shape
  %y = reshape_tensor %x, %shape
  %expected = load_const matrix
  invoke_packed expect_equal(%y, %expected), outputs=0
  ret %y
.end

.func test_int32_shape() -> value
  %x = load_const six
  %shape = load_const shape32
  %y = reshape_tensor %x, %shape
  %expected = load_const matrix
  invoke_packed expect_equal(%y, %expected), outputs=0
  ret %y
.end

.func test_an_integer_is_a_shape() -> value
  %x = load_const matrix
  %n = load_consti 6
  %y = reshape_tensor %x, %n
  %expected = load_const six
  invoke_packed expect_equal(%y, %expected), outputs=0
  ret %y
.end

.func test_to_and_from_a_scalar() -> value
  %x = load_const one
  %no_dims = load_const no_dims
  %y = reshape_tensor %x, %no_dims
  %expected = load_const scalar
  invoke_packed expect_equal(%y, %expected), outputs=0
  %n = load_consti 1
  %z = reshape_tensor %y, %n
  invoke_packed expect_equal(%z, %x), outputs=0
  ret %z
.end

.func test_empty() -> value
  %x = load_const empty
  %shape = load_const empty_shape
  %y = reshape_tensor %x, %shape
  %expected = load_const empty_matrix
  invoke_packed expect_equal(%y, %expected), outputs=0
  ret %y
.end

; A view shares its tensor's memory, and keeps it.
.func test_is_a_view() -> value
  %six = load_const six
  %storage = alloc_storage _, alignment=64, f32[6], cpu
  %x = alloc_tensor %storage, _, f32[6]
  %shape = load_const column
  %view = reshape_tensor %x, %shape
  invoke_packed add_one(%six, %x), outputs=1
  kill %storage
  %n = load_consti 6
  %back = reshape_tensor %view, %n
  invoke_packed expect_equal(%x, %back), outputs=0
  kill %x
  kill %view
  invoke_packed expect_equal(%back, %back), outputs=0
  ret %back
.end

; fails: run-time error: reshaped@0 (%2 = reshape_tensor %x, %shape): a tensor f32[6] has 6 elements, shape [2, 2] has 4
.func fail_fewer_elements() -> value
  %x = load_const six
  %shape = load_const small
  %y = invoke reshaped(%x, %shape)
  ret %y
.end

; fails: run-time error: reshaped@0 (%2 = reshape_tensor %x, %shape): a tensor f32[6] has 6 elements, shape [-2, -3] has a negative dimension, or more than 64 bits can count
.func fail_negative() -> value
  %x = load_const six
  %shape = load_const negative
  %y = invoke reshaped(%x, %shape)
  ret %y
.end

; fails: run-time error: reshaped@0 (%2 = reshape_tensor %x, %shape): a tensor f32[6] has 6 elements, shape [6, 4611686018427387904, 4] has a negative dimension, or more than 64 bits can count
.func fail_overflow() -> value
  %x = load_const six
  %shape = load_const overflow
  %y = invoke reshaped(%x, %shape)
  ret %y
.end

; fails: run-time error: reshaped@0 (%2 = reshape_tensor %x, %shape): a tensor f32[0] has 0 elements, shape [0, 4294967296, 4294967296] has a negative dimension, or more than 64 bits can count
.func fail_overflow_behind_a_zero() -> value
  %x = load_const empty
  %shape = load_const hollow
  %y = invoke reshaped(%x, %shape)
  ret %y
.end

; fails: run-time error: reshaped@0 (%2 = reshape_tensor %x, %shape): a tensor f32[0] has 0 elements, shape [0, 2147483648, 2147483648] has a negative dimension, or more than 64 bits can count
.func fail_bytes_overflow_behind_a_zero() -> value
  %x = load_const empty
  %shape = load_const hollow_in_bytes
  %y = invoke reshaped(%x, %shape)
  ret %y
.end

; fails: run-time error: reshaped@0 (%2 = reshape_tensor %x, %shape): the shape is a tensor f32[2], int32 or int64 of rank 1 with at most 32 elements is expected
.func fail_float_shape() -> value
  %x = load_const six
  %shape = load_const floats
  %y = invoke reshaped(%x, %shape)
  ret %y
.end

; fails: run-time error: reshaped@0 (%2 = reshape_tensor %x, %shape): the shape is a tensor f32[], int32 or int64 of rank 1 with at most 32 elements is expected
.func fail_scalar_shape() -> value
  %x = load_const six
  %shape = load_const scalar
  %y = invoke reshaped(%x, %shape)
  ret %y
.end

; fails: run-time error: reshaped@0 (%2 = reshape_tensor %x, %shape): %x holds an ADT with tag 0 and 0 fields, a tensor is expected
.func fail_not_a_tensor() -> value
  %x = alloc_adt tag=0 ()
  %shape = load_const shape
  %y = invoke reshaped(%x, %shape)
  ret %y
.end
