.const pair: f32[2] = {1, 2}
.kernel expect_equal = "test.expect_equal"

; Four storages, of which the limit allows two at once: each is released before the next.
; limits: bytes=250000
.func test_releases() -> value
  %round = alloc_adt tag=0 ()
  %round = alloc_adt tag=1 (%round)
  %round = alloc_adt tag=1 (%round)
  %round = alloc_adt tag=1 (%round)
  %round = alloc_adt tag=1 (%round)
  %one = load_consti 1
  %bytes = load_consti 100000
again:
  %tag = get_tag %round
  if %tag == %one goto body else done
body:
  %storage = alloc_storage %bytes, alignment=64, f32, cpu
  %tensor = alloc_tensor %storage, _, u8[100000]
  kill %storage
  kill %tensor
  %round = get_field %round, index=0
  goto again
done:
  ret %bytes
.end

.func test_others_keep_the_object() -> value
  %x = load_const pair
  %y = device_copy %x, cpu, cpu
  %z = move %y
  kill %y
  invoke_packed expect_equal(%z, %x), outputs=0
  ret %z
.end

; An input may be killed, and a register may be killed twice.
.func kills_its_input(x: value) -> value
  kill %x
  kill %x
  %n = load_consti 1
  ret %n
.end

.func test_inputs_and_twice() -> value
  %x = load_const pair
  %n = invoke kills_its_input(%x)
  %pair = load_const pair
  invoke_packed expect_equal(%x, %pair), outputs=0
  ret %n
.end

; limits: steps=1
; fails: step limit: fail_at_the_step_limit@4 (kill %0): the limit of 1 instructions is used up; raise Limits::steps if the program needs more
.func fail_at_the_step_limit() -> value
  %x = load_consti 1
  kill %x
  %y = load_consti 2
  ret %y
.end
