.const matrix: f32[2, 3] = zeros
.const matrix_shape: i64[2] = {2, 3}
.const scalar: f32[] = 1
.const no_dims: i64[0] = {}
.const empty: u8[0, 5] = {}
.const empty_shape: i64[2] = {0, 5}
.kernel expect_equal = "test.expect_equal"

.func opaque(x: value) -> value
  ret %x
.end

.func test_matrix() -> value
  %x = load_const matrix
  %shape = shape_of %x
  %expected = load_const matrix_shape
  invoke_packed expect_equal(%shape, %expected), outputs=0
  ret %shape
.end

.func test_scalar() -> value
  %x = load_const scalar
  %shape = shape_of %x
  %expected = load_const no_dims
  invoke_packed expect_equal(%shape, %expected), outputs=0
  ret %shape
.end

.func test_empty() -> value
  %x = load_const empty
  %shape = shape_of %x
  %expected = load_const empty_shape
  invoke_packed expect_equal(%shape, %expected), outputs=0
  ret %shape
.end

.func test_integer() -> value
  %n = load_consti 4
  %x = invoke opaque(%n)
  %shape = shape_of %x
  %expected = load_const no_dims
  invoke_packed expect_equal(%shape, %expected), outputs=0
  ret %shape
.end

; fails: run-time error: fail_of_an_adt@9 (%2 = shape_of %1): %1 holds an ADT with tag 3 and 0 fields, a tensor is expected
.func fail_of_an_adt() -> value
  %x = alloc_adt tag=3 ()
  %hidden = invoke opaque(%x)
  %shape = shape_of %hidden
  ret %shape
.end

; fails: run-time error: fail_of_a_storage@14 (%2 = shape_of %1): %1 holds a storage, a tensor is expected
.func fail_of_a_storage() -> value
  %storage = alloc_storage _, alignment=64, f32[2], cpu
  %hidden = invoke opaque(%storage)
  %shape = shape_of %hidden
  ret %shape
.end
