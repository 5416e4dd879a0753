; A register and its copy hold the same object.
.const pair: f32[2] = {1, 2}
.kernel expect_equal = "test.expect_equal"
.kernel add_one = "test.add_one"

.func test_copies_a_tensor() -> value
  %x = load_const pair
  %y = move %x
  kill %x
  %pair = load_const pair
  invoke_packed expect_equal(%y, %pair), outputs=0
  ret %y
.end

.func test_both_are_one_object() -> value
  %zero = load_const pair
  %bytes = load_consti 8
  %storage = alloc_storage %bytes, alignment=64, f32, cpu
  %x = alloc_tensor %storage, _, f32[2]
  %y = move %x
  invoke_packed add_one(%zero, %x), outputs=1
  invoke_packed expect_equal(%x, %y), outputs=0
  ret %y
.end

.func test_onto_itself() -> value
  %x = load_const pair
  %x = move %x
  %pair = load_const pair
  invoke_packed expect_equal(%x, %pair), outputs=0
  ret %x
.end

.func test_releases_what_was_there() -> value
  %bytes = load_consti 4096
  %storage = alloc_storage %bytes, alignment=64, f32, cpu
  %x = alloc_tensor %storage, _, f32[1024]
  %storage = move %bytes
  %x = move %bytes
  ret %x
.end

; limits: steps=1
; fails: step limit: fail_at_the_step_limit@4 (%1 = move %0): the limit of 1 instructions is used up; raise Limits::steps if the program needs more
.func fail_at_the_step_limit() -> value
  %x = load_consti 1
  %y = move %x
  ret %y
.end
