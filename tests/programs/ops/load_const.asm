.const pair: f32[2] = {1, 2}
.const same: f32[2] = {1, 2}
.const packed: f32[1000] codec=zstd = fill 2.5
.const plain: f32[1000] = fill 2.5
.const scalar: bool[] = true
.const empty: i32[0, 3] = {}
.const half: f16[2] = {1, 2}
.computed made: f32[2]
.computed also: f32[1000]
.kernel expect_equal = "test.expect_equal"
.kernel add_one = "test.add_one"
.kernel size = "test.size"

; Fills `made` and `also`, once for each program.
.func __init() -> (f32[2], f32[1000])
  %pair = load_const pair
  %bytes = load_consti 8
  %storage = alloc_storage %bytes, alignment=64, f32, cpu
  %made = alloc_tensor %storage, _, f32[2]
  invoke_packed add_one(%pair, %made), outputs=1
  %also = load_const packed
  %tuple = alloc_adt tag=0 (%made, %also)
  ret %tuple
.end

.func test_data() -> value
  %x = load_const pair
  %y = load_const same
  invoke_packed expect_equal(%x, %y), outputs=0
  ret %x
.end

.func test_compressed() -> value
  %x = load_const packed
  %y = load_const plain
  invoke_packed expect_equal(%x, %y), outputs=0
  ret %x
.end

.func test_computed() -> value
  %made = load_const made
  %pair = load_const pair
  %bytes = load_consti 8
  %storage = alloc_storage %bytes, alignment=64, f32, cpu
  %expected = alloc_tensor %storage, _, f32[2]
  invoke_packed add_one(%pair, %expected), outputs=1
  invoke_packed expect_equal(%made, %expected), outputs=0
  %also = load_const also
  %plain = load_const plain
  invoke_packed expect_equal(%also, %plain), outputs=0
  ret %made
.end

.func test_scalar_and_empty() -> value
  %x = load_const scalar
  %n = invoke_packed size(%x), outputs=0
  %one = load_consti 1
  invoke_packed expect_equal(%n, %one), outputs=0
  %x = load_const empty
  %n = invoke_packed size(%x), outputs=0
  %zero = load_consti 0
  invoke_packed expect_equal(%n, %zero), outputs=0
  %x = load_const half
  ret %x
.end

; limits: steps=1
; fails: step limit: fail_at_the_step_limit@4 (%1 = load_const pair): the limit of 1 instructions is used up; raise Limits::steps if the program needs more
.func fail_at_the_step_limit() -> value
  %n = load_consti 1
  %x = load_const pair
  ret %x
.end
