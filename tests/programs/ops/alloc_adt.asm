.const pair: f32[2] = {1, 2}
.kernel expect_equal = "test.expect_equal"

.func test_fields_in_order() -> value
  %a = load_consti 1
  %b = load_const pair
  %tuple = alloc_adt tag=0 (%a, %b, %a)
  %x = get_field %tuple, index=0
  invoke_packed expect_equal(%x, %a), outputs=0
  %y = get_field %tuple, index=1
  invoke_packed expect_equal(%y, %b), outputs=0
  ret %tuple
.end

.func test_no_fields() -> value
  %tuple = alloc_adt tag=4294967295 ()
  ret %tuple
.end

.func test_of_everything() -> value
  %n = load_consti 1
  %tensor = load_const pair
  %storage = alloc_storage %n, alignment=64, f32, cpu
  %closure = alloc_closure test_no_fields()
  %inner = alloc_adt tag=1 (%n, %tensor, %storage, %closure)
  %outer = alloc_adt tag=2 (%inner, %inner)
  kill %inner
  %again = get_field %outer, index=1
  %field = get_field %again, index=1
  invoke_packed expect_equal(%field, %tensor), outputs=0
  ret %outer
.end

; Over the register of a field: the old value lives on in the tuple.
.func test_over_its_own_field() -> value
  %x = load_const pair
  %x = alloc_adt tag=0 (%x)
  %x = alloc_adt tag=0 (%x)
  %y = get_field %x, index=0
  %y = get_field %y, index=0
  %pair = load_const pair
  invoke_packed expect_equal(%y, %pair), outputs=0
  ret %x
.end

; A list without an end takes all the memory that there is to take, and is then released without recursion.
; limits: bytes=1000000
; fails: memory limit: fail_over_the_byte_limit@4 (%0 = alloc_adt tag=1 (%0)): <n> bytes more asked for, <n> of the limit of 1000000 are in use; raise Limits::bytes if the program needs more
.func fail_over_the_byte_limit() -> value
  %list = alloc_adt tag=0 ()
longer:
  %list = alloc_adt tag=1 (%list)
  goto longer
.end
