.const pair: f32[2] = {1, 2}
.const size: i32[] = 8
.kernel expect_equal = "test.expect_equal"
.kernel add_one = "test.add_one"
.kernel aligned = "test.add_one" align=4096

.func opaque(x: value) -> value
  ret %x
.end

.func test_by_size() -> value
  %pair = load_const pair
  %size = load_const size
  %storage = alloc_storage %size, alignment=64, f32, cpu
  %x = alloc_tensor %storage, _, f32[2]
  invoke_packed add_one(%pair, %x), outputs=1
  invoke_packed expect_equal(%x, %x), outputs=0
  ret %x
.end

; Without a size register: the bytes of f32[2].
.func test_by_shape() -> value
  %pair = load_const pair
  %storage = alloc_storage _, alignment=64, f32[2], cpu
  %x = alloc_tensor %storage, _, f32[2]
  invoke_packed add_one(%pair, %x), outputs=1
  ret %x
.end

.func test_alignment() -> value
  %pair = load_const pair
  %storage = alloc_storage _, alignment=4096, f32[2], cpu
  %x = alloc_tensor %storage, _, f32[2]
  invoke_packed aligned(%pair, %x), outputs=1
  ret %x
.end

.func test_no_bytes() -> value
  %zero = load_consti 0
  %storage = alloc_storage %zero, alignment=64, f32, cpu
  %x = alloc_tensor %storage, _, f32[0]
  ret %x
.end

; Reserving takes no memory: only a tensor on the storage does.
; limits: bytes=100000000
.func test_reserves_only() -> value
  %bytes = load_consti 90000000
  %a = alloc_storage %bytes, alignment=64, f32, cpu
  %b = alloc_storage %bytes, alignment=64, f32, cpu
  %c = alloc_storage %bytes, alignment=64, f32, cpu
  ret %bytes
.end

; fails: run-time error: fail_negative_size@4 (%1 = alloc_storage %0, alignment=64, f32, cpu): a storage of -1 bytes asked for
.func fail_negative_size() -> value
  %size = load_consti -1
  %storage = alloc_storage %size, alignment=64, f32, cpu
  ret %storage
.end

; limits: bytes=1000000
; fails: memory limit: fail_over_the_byte_limit@4 (%1 = alloc_storage %0, alignment=64, f32, cpu): 1000001 bytes more asked for, <n> of the limit of 1000000 are in use; raise Limits::bytes if the program needs more
.func fail_over_the_byte_limit() -> value
  %size = load_consti 1000001
  %storage = alloc_storage %size, alignment=64, f32, cpu
  ret %storage
.end

; fails: run-time error: fail_tensor_size@8 (%2 = alloc_storage %1, alignment=64, f32, cpu): size is a tensor f32[2], an integer scalar is expected
.func fail_tensor_size() -> value
  %pair = load_const pair
  %size = invoke opaque(%pair)
  %storage = alloc_storage %size, alignment=64, f32, cpu
  ret %storage
.end
