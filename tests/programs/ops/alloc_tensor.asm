.const pair: f32[2] = {1, 2}
.const shape: i64[3] = {2, 0, 3}
.const scalar_shape: i64[0] = {}
.kernel expect_equal = "test.expect_equal"
.kernel add_one = "test.add_one"

.func opaque(x: value) -> value
  ret %x
.end

.func test_shape() -> value
  %bytes = load_consti 0
  %storage = alloc_storage %bytes, alignment=64, f32, cpu
  %x = alloc_tensor %storage, _, f32[2, 0, 3]
  %given = shape_of %x
  %expected = load_const shape
  invoke_packed expect_equal(%given, %expected), outputs=0
  ret %x
.end

.func test_scalar() -> value
  %bytes = load_consti 4
  %storage = alloc_storage %bytes, alignment=64, f32, cpu
  %x = alloc_tensor %storage, _, f32
  %given = shape_of %x
  %expected = load_const scalar_shape
  invoke_packed expect_equal(%given, %expected), outputs=0
  ret %x
.end

; Two tensors side by side in one storage do not touch each other.
.func test_offset() -> value
  %pair = load_const pair
  %bytes = load_consti 16
  %storage = alloc_storage %bytes, alignment=64, f32, cpu
  %eight = load_consti 8
  %low = alloc_tensor %storage, _, f32[2]
  %high = alloc_tensor %storage, %eight, f32[2]
  invoke_packed add_one(%pair, %low), outputs=1
  invoke_packed add_one(%low, %high), outputs=1
  invoke_packed add_one(%pair, %low), outputs=1
  invoke_packed add_one(%low, %low), outputs=1
  invoke_packed expect_equal(%low, %high), outputs=0
  ret %high
.end

.func test_outlives_its_storage_register() -> value
  %pair = load_const pair
  %bytes = load_consti 8
  %storage = alloc_storage %bytes, alignment=64, f32, cpu
  %x = alloc_tensor %storage, _, f32[2]
  kill %storage
  invoke_packed add_one(%pair, %x), outputs=1
  invoke_packed expect_equal(%x, %x), outputs=0
  ret %x
.end

; fails: run-time error: fail_past_the_end@11 (%2 = alloc_tensor %1, _, f32[2, 5]): f32[2, 5] at offset 0 takes 40 bytes, the storage has 39
.func fail_past_the_end() -> value
  %bytes = load_consti 39
  %storage = alloc_storage %bytes, alignment=64, f32, cpu
  %x = alloc_tensor %storage, _, f32[2, 5]
  ret %x
.end

; fails: run-time error: fail_offset_past_the_end@15 (%3 = alloc_tensor %1, %2, f32[0]): f32[0] at offset 44 takes 0 bytes, the storage has 40
.func fail_offset_past_the_end() -> value
  %bytes = load_consti 40
  %storage = alloc_storage %bytes, alignment=64, f32, cpu
  %offset = load_consti 44
  %x = alloc_tensor %storage, %offset, f32[0]
  ret %x
.end

; fails: run-time error: fail_negative_offset@15 (%3 = alloc_tensor %1, %2, f32[1]): f32[1] at offset -4 takes 4 bytes, the storage has 40
.func fail_negative_offset() -> value
  %bytes = load_consti 40
  %storage = alloc_storage %bytes, alignment=64, f32, cpu
  %offset = load_consti -4
  %x = alloc_tensor %storage, %offset, f32[1]
  ret %x
.end

; fails: run-time error: fail_misaligned_offset@15 (%3 = alloc_tensor %1, %2, f32[1]): offset 2 is no multiple of the 4 bytes of an element
.func fail_misaligned_offset() -> value
  %bytes = load_consti 40
  %storage = alloc_storage %bytes, alignment=64, f32, cpu
  %offset = load_consti 2
  %x = alloc_tensor %storage, %offset, f32[1]
  ret %x
.end

; fails: run-time error: fail_float_offset@19 (%4 = alloc_tensor %1, %3, f32[1]): offset is a tensor f32[2], an integer scalar is expected
.func fail_float_offset() -> value
  %bytes = load_consti 40
  %storage = alloc_storage %bytes, alignment=64, f32, cpu
  %pair = load_const pair
  %offset = invoke opaque(%pair)
  %x = alloc_tensor %storage, %offset, f32[1]
  ret %x
.end

; fails: run-time error: fail_not_a_storage@8 (%2 = alloc_tensor %1, _, f32[1]): %1 holds a tensor f32[2], a storage is expected
.func fail_not_a_storage() -> value
  %pair = load_const pair
  %storage = invoke opaque(%pair)
  %x = alloc_tensor %storage, _, f32[1]
  ret %x
.end

; limits: bytes=100000
; fails: memory limit: fail_over_the_byte_limit@11 (%2 = alloc_tensor %1, _, u8[99999]): 99999 bytes more asked for, <n> of the limit of 100000 are in use; raise Limits::bytes if the program needs more
.func fail_over_the_byte_limit() -> value
  %bytes = load_consti 99999
  %storage = alloc_storage %bytes, alignment=64, f32, cpu
  %x = alloc_tensor %storage, _, u8[99999]
  ret %x
.end
