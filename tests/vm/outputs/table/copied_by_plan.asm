; What the plan must copy, and why.
.const k: f32[4] = {1, 2, 3, 4}
.const square: i64[2] = {2, 2}
.kernel fill_1 = "fill_1"
.kernel fill_2 = "fill_2"
.kernel fill_all = "fill_all"
.kernel inc = "inc"
.kernel add = "add"
.kernel copy = "copy"
.kernel like = "like"
.kernel give = "give"

; plan y: copied: it is an input, or part of one
.func case_an_input(x: f32[4]) -> y: f32[4]
  ret %x
.end

; plan y: copied: it is an input, or part of one
.func case_a_view_of_an_input(x: f32[4]) -> y: f32[2, 2]
  %square = load_const square
  %y = reshape_tensor %x, %square
  ret %y
.end

; plan y: copied: it is an input, or part of one
.func case_a_field_of_an_input(t: (f32[4], (f32[4], f32[4]))) -> y: f32[4]
  %inner = get_field %t, index=1
  %y = get_field %inner, index=1
  ret %y
.end

; plan a: copied: it is an input, or part of one
; plan b: rewired
.func case_an_input_beside_a_new_tensor(x: f32[4]) -> (a: f32[4], b: f32[4])
  %b = invoke make(%x)
  %r = alloc_adt tag=0(%x, %b)
  ret %r
.end

; set c = 0
; plan y: copied: an earlier tensor in the same memory may still be read when it is made
.func case_one_of_two_results_of_one_call(x: f32[4], c: i64[]) -> y: f32[4]
  %t = invoke make_two(%x)
  %one = load_consti 1
  if %c == %one goto first else second
first:
  %y = get_field %t, index=0
  goto done
second:
  %y = get_field %t, index=1
done:
  ret %y
.end

; set c = 1
; plan y: copied: it may be read before it is written
.func case_one_of_two_tensors_is_written(x: f32[4], c: i64[]) -> y: f32[4]
  %s = alloc_storage _, alignment=64, f32[4], cpu
  %y = alloc_tensor %s, _, f32[4]
  %t = alloc_storage _, alignment=64, f32[4], cpu
  %other = alloc_tensor %t, _, f32[4]
  %u = alloc_storage _, alignment=64, f32[4], cpu
  %z = alloc_tensor %u, _, f32[4]
  %one = load_consti 1
  if %c == %one goto yes else no
yes:
  %written = move %y
  goto done
no:
  %written = move %other
done:
  invoke_packed fill_1(%written), outputs=1
  invoke_packed inc(%y, %z), outputs=1
  ret %y
.end

; set c = 1
; plan y: copied: it may be read before it is written
.func case_written_in_the_first_arm_alone(x: f32[4], c: i64[]) -> y: f32[4]
  %s = alloc_storage _, alignment=64, f32[4], cpu
  %y = alloc_tensor %s, _, f32[4]
  %u = alloc_storage _, alignment=64, f32[4], cpu
  %z = alloc_tensor %u, _, f32[4]
  %one = load_consti 1
  if %c == %one goto yes else no
yes:
  invoke_packed fill_1(%y), outputs=1
  goto done
no:
  goto done
done:
  invoke_packed inc(%y, %z), outputs=1
  ret %y
.end

; set c = 0
; plan y: copied: it may be read before it is written
.func case_written_in_the_second_arm_alone(x: f32[4], c: i64[]) -> y: f32[4]
  %s = alloc_storage _, alignment=64, f32[4], cpu
  %y = alloc_tensor %s, _, f32[4]
  %u = alloc_storage _, alignment=64, f32[4], cpu
  %z = alloc_tensor %u, _, f32[4]
  %one = load_consti 1
  if %c == %one goto yes else no
yes:
  goto done
no:
  invoke_packed fill_1(%y), outputs=1
  goto done
done:
  invoke_packed inc(%y, %z), outputs=1
  ret %y
.end

; plan y: copied: it is an input, or part of one
.func case_an_input_through_a_call(x: f32[4]) -> y: f32[4]
  %y = invoke identity(%x)
  ret %y
.end

; set c = 1
; plan y: copied: it is an input, or part of one
.func case_an_input_in_one_arm(x: f32[4], c: i64[]) -> y: f32[4]
  %one = load_consti 1
  if %c == %one goto yes else no
yes:
  %y = move %x
  goto done
no:
  %y = invoke make(%x)
done:
  ret %y
.end

; plan y: copied: it is an input, or part of one
; run y: in place
.func case_the_other_arm_is_in_place_all_the_same(x: f32[4], c: i64[]) -> y: f32[4]
  %one = load_consti 1
  if %c == %one goto yes else no
yes:
  %y = move %x
  goto done
no:
  %y = invoke make(%x)
done:
  ret %y
.end

; plan y: copied: it is a constant or a parameter
.func case_a_constant() -> y: f32[4]
  %y = load_const k
  ret %y
.end

; plan y: copied: it is a constant or a parameter
.func case_a_constant_of_a_callee(x: f32[4]) -> y: f32[4]
  %y = invoke constant()
  ret %y
.end

; plan y: copied: it is an integer
.func case_an_integer() -> y: i64[]
  %y = load_consti 7
  ret %y
.end

; plan y: copied: a kernel or a closure returns it
; run y: in place
.func case_what_a_kernel_returns(x: f32[4]) -> y: f32[4]
  %a = invoke make(%x)
  %y = invoke_packed give(%a), outputs=0
  ret %y
.end

; plan y: copied: it may be read before it is written
.func case_handed_on_before_it_is_written(x: f32[4]) -> y: f32[4]
  %s = alloc_storage _, alignment=64, f32[4], cpu
  %a = alloc_tensor %s, _, f32[4]
  %t = alloc_storage _, alignment=64, f32[4], cpu
  %b = alloc_tensor %t, _, f32[4]
  invoke_packed like(%a, %b), outputs=1
  invoke_packed add(%x, %b, %a), outputs=1
  ret %a
.end

; plan a: copied: it may be read before it is written
; plan b: copied: it may be read before it is written
.func case_written_inside_a_tuple(x: f32[4]) -> (a: f32[4], b: f32[4])
  %s = alloc_storage _, alignment=64, f32[4], cpu
  %a = alloc_tensor %s, _, f32[4]
  %t = alloc_storage _, alignment=64, f32[4], cpu
  %b = alloc_tensor %t, _, f32[4]
  %both = alloc_adt tag=0(%a, %b)
  invoke_packed fill_all(%both), outputs=2
  ret %both
.end

; plan y: copied: it may be read before it is written
.func case_passed_to_a_function_before_it_is_written(x: f32[4]) -> y: f32[4]
  %s = alloc_storage _, alignment=64, f32[4], cpu
  %a = alloc_tensor %s, _, f32[4]
  %n = invoke shape(%a)
  invoke_packed inc(%x, %a), outputs=1
  ret %a
.end

; plan a: copied: it is part of another output too
; plan b: copied: it is part of another output too
.func case_one_tensor_twice(x: f32[4]) -> (a: f32[4], b: f32[4])
  %a = invoke make(%x)
  %r = alloc_adt tag=0(%a, %a)
  ret %r
.end

; plan a: copied: it is part of another output too
; plan b: copied: it is part of another output too
.func case_a_tensor_and_a_view_of_it(x: f32[4]) -> (a: f32[4], b: f32[2, 2])
  %a = invoke make(%x)
  %square = load_const square
  %b = reshape_tensor %a, %square
  %r = alloc_adt tag=0(%a, %b)
  ret %r
.end

; plan a: copied: it is part of another output too
; plan b: copied: it is part of another output too
.func case_twice_inside_a_callee(x: f32[4]) -> (a: f32[4], b: f32[4])
  %r = invoke twice(%x)
  ret %r
.end

; bind b: unbound
; plan a: copied: it is part of an output of unknown structure
; plan b: copied: it is part of an output of unknown structure
.func case_also_inside_an_opaque_output(x: f32[4]) -> (a: f32[4], b: value)
  %a = invoke make(%x)
  %t = alloc_adt tag=3(%a, %x)
  %r = alloc_adt tag=0(%a, %t)
  ret %r
.end

; plan y: copied: it is part of an output of unknown structure
; fails: case_an_opaque_tree@11 (ret %2): output y is bound to memory, but its value is no tensor
.func case_an_opaque_tree(x: f32[4]) -> y: value
  %a = invoke make(%x)
  %r = alloc_adt tag=0(%a, %x)
  ret %r
.end

; plan y: copied: an earlier tensor in the same memory may still be read when it is made
; set c = 1
.func case_its_last_round_is_still_read(x: f32[4], c: i64[]) -> y: f32[4]
  %zero = load_consti 0
  %y = move %x
again:
  %s = alloc_storage _, alignment=64, f32[4], cpu
  %a = alloc_tensor %s, _, f32[4]
  invoke_packed inc(%y, %a), outputs=1
  %y = move %a
  if %c == %zero goto again else done
done:
  ret %a
.end

; set c = 1
; plan y: copied: an earlier tensor in the same memory may still be read when it is made
; run y: in place
.func case_the_first_of_two_that_live_at_once(x: f32[4], c: i64[]) -> y: f32[4]
  %a = invoke make(%x)
  %b = invoke make(%a)
  %one = load_consti 1
  if %c == %one goto first else second
first:
  ret %a
second:
  ret %b
.end

; plan y: copied: an earlier tensor in the same memory may still be read when it is made
.func case_the_second_of_two_that_live_at_once(x: f32[4], c: i64[]) -> y: f32[4]
  %a = invoke make(%x)
  %b = invoke make(%a)
  %one = load_consti 1
  if %c == %one goto first else second
first:
  ret %a
second:
  ret %b
.end

.func make_two(x: f32[4]) -> (a: f32[4], b: f32[4])
  %a = invoke make(%x)
  %s = alloc_storage _, alignment=64, f32[4], cpu
  %b = alloc_tensor %s, _, f32[4]
  invoke_packed fill_2(%b), outputs=1
  %r = alloc_adt tag=0(%a, %b)
  ret %r
.end

.func make(x: f32[4]) -> y: f32[4]
  %s = alloc_storage _, alignment=64, f32[4], cpu
  %a = alloc_tensor %s, _, f32[4]
  invoke_packed inc(%x, %a), outputs=1
  ret %a
.end

.func identity(x: f32[4]) -> y: f32[4]
  ret %x
.end

.func constant() -> y: f32[4]
  %y = load_const k
  ret %y
.end

.func twice(x: f32[4]) -> (a: f32[4], b: f32[4])
  %a = invoke make(%x)
  %r = alloc_adt tag=0(%a, %a)
  ret %r
.end

.func shape(x: f32[4]) -> y: i64[1]
  %y = shape_of %x
  ret %y
.end
