.const pair: f32[2] = {1, 2}
.const pair_plus_one: f32[2] = {2, 3}
.const empty: f32[0] = {}
.kernel expect_equal = "test.expect_equal"
.kernel add_one = "test.add_one"
.kernel add_one_aligned = "test.add_one" align=4096
.kernel writes_first = "test.expect_equal" writes(0)
.kernel count = "test.count"
.kernel seven = "test.seven"
.kernel echo = "test.echo"
.kernel echo_object = "test.echo" objects
.kernel fail = "test.fail"

.func opaque(x: value) -> value
  ret %x
.end

.func test_writes_its_output() -> value
  %x = load_const pair
  %bytes = load_consti 8
  %storage = alloc_storage %bytes, alignment=64, f32, cpu
  %y = alloc_tensor %storage, _, f32[2]
  invoke_packed add_one(%x, %y), outputs=1
  %expected = load_const pair_plus_one
  invoke_packed expect_equal(%y, %expected), outputs=0
  ret %y
.end

.func test_in_place() -> value
  %x = load_const pair
  %bytes = load_consti 8
  %storage = alloc_storage %bytes, alignment=64, f32, cpu
  %y = alloc_tensor %storage, _, f32[2]
  %z = alloc_tensor %storage, _, f32[2]
  invoke_packed add_one(%x, %y), outputs=1
  invoke_packed add_one(%y, %y), outputs=1
  invoke_packed expect_equal(%y, %y), outputs=0
  ret %y
.end

.func test_returns_a_value() -> value
  %n = invoke_packed seven(), outputs=0
  %seven = load_consti 7
  if %n == %seven goto good else bad
good:
  ret %n
bad:
  fatal "it did not return 7"
.end

.func test_a_returned_value_may_be_dropped() -> value
  %x = load_const pair
  invoke_packed echo(%x), outputs=0
  invoke_packed seven(), outputs=0
  ret %x
.end

.func test_returns_its_argument() -> value
  %x = load_const pair
  %y = invoke_packed echo(%x), outputs=0
  invoke_packed expect_equal(%x, %y), outputs=0
  ret %y
.end

.func test_flattens_adts_by_one_level() -> value
  %x = load_const pair
  %tuple = alloc_adt tag=0 (%x, %x, %x)
  %none = alloc_adt tag=0 ()
  %n = invoke_packed count(%x, %tuple, %none, %x), outputs=0
  %five = load_consti 5
  invoke_packed expect_equal(%n, %five), outputs=0
  ret %n
.end

; The last `outputs` arguments are counted after flattening.
.func test_writes_a_field() -> value
  %x = load_const pair
  %bytes = load_consti 8
  %storage = alloc_storage %bytes, alignment=64, f32, cpu
  %y = alloc_tensor %storage, _, f32[2]
  %tuple = alloc_adt tag=0 (%x, %y)
  invoke_packed add_one(%tuple), outputs=1
  %expected = load_const pair_plus_one
  invoke_packed expect_equal(%y, %expected), outputs=0
  ret %y
.end

.func test_objects_are_passed_whole() -> value
  %x = load_const pair
  %tuple = alloc_adt tag=9 (%x)
  %same = invoke_packed echo_object(%tuple), outputs=0
  %tag = get_tag %same
  %nine = load_consti 9
  if %tag == %nine goto good else bad
good:
  ret %same
bad:
  fatal "the ADT came back with another tag"
.end

.func test_integers_become_scalar_tensors() -> value
  %n = load_consti 7
  %seven = invoke_packed seven(), outputs=0
  invoke_packed expect_equal(%n, %seven), outputs=0
  ret %n
.end

; What may be an ADT may also be one tensor: then there are fewer arguments than outputs.
; fails: run-time error: fail_to_write_more_than_one_tensor@24 (invoke_packed count(%3), outputs=2): 2 outputs declared, 1 arguments given after ADTs were flattened
.func fail_to_write_more_than_one_tensor() -> value
  %bytes = load_consti 8
  %storage = alloc_storage %bytes, alignment=64, f32, cpu
  %y = alloc_tensor %storage, _, f32[2]
  %same = invoke opaque(%y)
  invoke_packed count(%same), outputs=2
  ret %same
.end

; With one output that has no elements there is nothing to compute: the kernel, which would fail, is not called.
.func test_is_skipped_for_an_empty_output() -> value
  %bytes = load_consti 0
  %storage = alloc_storage %bytes, alignment=64, f32, cpu
  %y = alloc_tensor %storage, _, f32[0, 3]
  invoke_packed fail(%y), outputs=1
  ret %y
.end

; A tensor that lies less aligned than a kernel needs is copied for the call.
.func test_aligns_what_a_kernel_reads() -> value
  %x = load_const pair
  %bytes = load_consti 8192
  %storage = alloc_storage %bytes, alignment=4096, f32, cpu
  %four = load_consti 4
  %read = alloc_tensor %storage, %four, f32[2]
  %page = load_consti 4096
  %written = alloc_tensor %storage, %page, f32[2]
  invoke_packed add_one(%x, %read), outputs=1
  invoke_packed add_one_aligned(%x, %written), outputs=1
  invoke_packed expect_equal(%read, %written), outputs=0
  ret %written
.end

; fails: kernel failed: fail_with_the_kernels_message@0 (invoke_packed fail(), outputs=0) [Fail_1]: ValueError: told to fail
.func fail_with_the_kernels_message() -> value
  invoke_packed fail(), outputs=0 @ "Fail_1"
  %x = load_consti 1
  ret %x
.end

; fails: kernel failed: fail_with_a_wrong_argument_count@3 (invoke_packed expect_equal(%0), outputs=0): TypeError: expected 2 arguments, got 1
.func fail_with_a_wrong_argument_count() -> value
  %x = load_const pair
  invoke_packed expect_equal(%x), outputs=0
  ret %x
.end

; fails: kernel failed: fail_with_a_wrong_shape@7 (invoke_packed expect_equal(%0, %1), outputs=0): ValueError: f32[2] is not i64[]
.func fail_with_a_wrong_shape() -> value
  %x = load_const pair
  %n = load_consti 1
  invoke_packed expect_equal(%x, %n), outputs=0
  ret %x
.end

; fails: run-time error: fail_to_write_a_constant@8 (invoke_packed add_one(%0, %1), outputs=1): argument 1 is written by the kernel, but the tensor given, f32[2], is read-only (a constant, a parameter, the caller's input, an integer or a view of one)
.func fail_to_write_a_constant() -> value
  %x = load_const pair
  %hidden = invoke opaque(%x)
  invoke_packed add_one(%x, %hidden), outputs=1
  ret %x
.end

; fails: run-time error: fail_to_write_a_view_of_a_constant@15 (invoke_packed add_one(%0, %3), outputs=1): argument 1 is written by the kernel, but the tensor given, f32[2], is read-only (a constant, a parameter, the caller's input, an integer or a view of one)
.func fail_to_write_a_view_of_a_constant() -> value
  %x = load_const pair
  %shape = shape_of %x
  %view = reshape_tensor %x, %shape
  %hidden = invoke opaque(%view)
  invoke_packed add_one(%x, %hidden), outputs=1
  ret %x
.end

; fails: run-time error: fail_to_write_an_integer@12 (invoke_packed add_one(%0, %2), outputs=1): argument 1 is written by the kernel, but the tensor given, i64[], is read-only (a constant, a parameter, the caller's input, an integer or a view of one)
.func fail_to_write_an_integer() -> value
  %x = load_const pair
  %n = load_consti 5
  %hidden = invoke opaque(%n)
  invoke_packed add_one(%x, %hidden), outputs=1
  ret %x
.end

; fails: run-time error: fail_to_write_where_the_import_says@8 (invoke_packed writes_first(%1, %0), outputs=0): argument 0 is written by the kernel, but the tensor given, f32[2], is read-only (a constant, a parameter, the caller's input, an integer or a view of one)
.func fail_to_write_where_the_import_says() -> value
  %x = load_const pair
  %hidden = invoke opaque(%x)
  invoke_packed writes_first(%hidden, %x), outputs=0
  ret %x
.end

; fails: run-time error: fail_with_more_outputs_than_arguments@9 (invoke_packed count(%1), outputs=1): 1 outputs declared, 0 arguments given after ADTs were flattened
.func fail_with_more_outputs_than_arguments() -> value
  %none = alloc_adt tag=0 ()
  %hidden = invoke opaque(%none)
  invoke_packed count(%hidden), outputs=1
  ret %none
.end

; fails: run-time error: fail_with_a_nested_adt@9 (invoke_packed count(%1), outputs=0): field 0 of an ADT argument is an ADT itself; only one level is flattened
.func fail_with_a_nested_adt() -> value
  %none = alloc_adt tag=0 ()
  %outer = alloc_adt tag=0 (%none)
  invoke_packed count(%outer), outputs=0
  ret %none
.end

; fails: run-time error: fail_with_a_closure@9 (invoke_packed count(%1), outputs=0): argument 0 is a closure or a storage, which kernels do not take
.func fail_with_a_closure() -> value
  %closure = alloc_closure opaque()
  %hidden = invoke opaque(%closure)
  invoke_packed count(%hidden), outputs=0
  ret %closure
.end

; fails: run-time error: fail_without_a_returned_value@3 (%1 = invoke_packed expect_equal(%0, %0), outputs=0): the kernel returned nothing, a value is expected
.func fail_without_a_returned_value() -> value
  %x = load_const pair
  %y = invoke_packed expect_equal(%x, %x), outputs=0
  ret %y
.end

; fails: run-time error: fail_to_align_what_a_kernel_writes@26 (invoke_packed add_one_aligned(%0, %4), outputs=1): argument 1, a tensor f32[2], is not aligned to the 4096 bytes that the kernel needs
.func fail_to_align_what_a_kernel_writes() -> value
  %x = load_const pair
  %bytes = load_consti 64
  %storage = alloc_storage %bytes, alignment=64, f32, cpu
  %four = load_consti 4
  %y = alloc_tensor %storage, %four, f32[2]
  invoke_packed add_one_aligned(%x, %y), outputs=1
  ret %y
.end
