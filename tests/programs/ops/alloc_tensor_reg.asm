.const shape64: i64[2] = {2, 3}
.const shape32: i32[2] = {2, 3}
.const scalar: i64[] = 5
.const five: i64[1] = {5}
.const no_dims: i64[0] = {}
.const negative: i64[2] = {2, -3}
.const huge: i64[2] = {4611686018427387904, 4}
.const hollow: i64[3] = {0, 4294967296, 4294967296}
.const floats: f32[2] = {2, 3}
.const matrix: i64[1, 2] = {2, 3}
.kernel expect_equal = "test.expect_equal"
.kernel size = "test.size"

.func opaque(x: value) -> value
  ret %x
.end

.func with_shape(shape: value) -> value
  %bytes = load_consti 64
  %storage = alloc_storage %bytes, alignment=64, f32, cpu
  %x = alloc_tensor_reg %storage, _, %shape, f32
  ret %x
.end

.func test_int64_shape() -> value
  %shape = load_const shape64
  %x = invoke with_shape(%shape)
  %given = shape_of %x
  invoke_packed expect_equal(%given, %shape), outputs=0
  %bytes = load_consti 24
  %storage = alloc_storage %bytes, alignment=64, f32, cpu
  %y = alloc_tensor_reg %storage, _, %shape, f32
  ret %y
.end

.func test_int32_shape() -> value
  %shape = load_const shape32
  %bytes = load_consti 48
  %offset = load_consti 24
  %storage = alloc_storage %bytes, alignment=64, f32, cpu
  %x = alloc_tensor_reg %storage, %offset, %shape, f32
  %given = shape_of %x
  %expected = load_const shape64
  invoke_packed expect_equal(%given, %expected), outputs=0
  ret %x
.end

.func test_scalar_gives_rank_1() -> value
  %shape = load_const scalar
  %x = invoke with_shape(%shape)
  %given = shape_of %x
  %expected = load_const five
  invoke_packed expect_equal(%given, %expected), outputs=0
  ret %x
.end

.func test_integer_gives_rank_1() -> value
  %shape = load_consti 5
  %x = invoke with_shape(%shape)
  %given = shape_of %x
  %expected = load_const five
  invoke_packed expect_equal(%given, %expected), outputs=0
  ret %x
.end

.func test_no_dimensions_give_a_scalar() -> value
  %shape = load_const no_dims
  %x = invoke with_shape(%shape)
  %n = invoke_packed size(%x), outputs=0
  %one = load_consti 1
  invoke_packed expect_equal(%n, %one), outputs=0
  %given = shape_of %x
  invoke_packed expect_equal(%given, %shape), outputs=0
  ret %x
.end

; The shape is read where a view of it begins.
.func test_shape_of_a_shape() -> value
  %shape = load_const shape64
  %rank = shape_of %shape
  %x = invoke with_shape(%rank)
  %n = invoke_packed size(%x), outputs=0
  %two = load_consti 2
  invoke_packed expect_equal(%n, %two), outputs=0
  ret %x
.end

; fails: run-time error: with_shape@11 (%3 = alloc_tensor_reg %2, _, %shape, f32): a dimension of shape [2, -3] is negative, or its size overflows
.func fail_negative_dimension() -> value
  %shape = load_const negative
  %x = invoke with_shape(%shape)
  ret %x
.end

; fails: run-time error: with_shape@11 (%3 = alloc_tensor_reg %2, _, %shape, f32): a dimension of shape [4611686018427387904, 4] is negative, or its size overflows
.func fail_size_overflows() -> value
  %shape = load_const huge
  %x = invoke with_shape(%shape)
  ret %x
.end

; fails: run-time error: with_shape@11 (%3 = alloc_tensor_reg %2, _, %shape, f32): a dimension of shape [0, 4294967296, 4294967296] is negative, or its size overflows
.func fail_size_overflows_behind_a_zero() -> value
  %shape = load_const hollow
  %x = invoke with_shape(%shape)
  ret %x
.end

; fails: run-time error: with_shape@11 (%3 = alloc_tensor_reg %2, _, %shape, f32): f32[17] at offset 0 takes 68 bytes, the storage has 64
.func fail_past_the_end() -> value
  %n = load_consti 17
  %x = invoke with_shape(%n)
  ret %x
.end

; fails: run-time error: with_shape@11 (%3 = alloc_tensor_reg %2, _, %shape, f32): the shape is a tensor f32[2], int32 or int64 of rank 1 with at most 32 elements is expected
.func fail_float_shape() -> value
  %shape = load_const floats
  %x = invoke with_shape(%shape)
  ret %x
.end

; fails: run-time error: with_shape@11 (%3 = alloc_tensor_reg %2, _, %shape, f32): the shape is a tensor i64[1, 2], int32 or int64 of rank 1 with at most 32 elements is expected
.func fail_matrix_shape() -> value
  %shape = load_const matrix
  %x = invoke with_shape(%shape)
  ret %x
.end

; fails: run-time error: with_shape@11 (%3 = alloc_tensor_reg %2, _, %shape, f32): %shape holds an ADT with tag 0 and 0 fields, a tensor is expected
.func fail_not_a_tensor() -> value
  %tuple = alloc_adt tag=0 ()
  %x = invoke with_shape(%tuple)
  ret %x
.end
