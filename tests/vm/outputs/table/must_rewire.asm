; What must be rewired, with tensors large enough to see in the bytes that a run takes: 65,536 floats are 262,144 bytes.
.const wide: i64[2] = {256, 256}
.const flat: i64[1] = {65536}
.const tall: i64[2] = {65536, 1}
.kernel fill_1 = "fill_1"
.kernel inc = "inc"
.kernel add = "add"

; set c = 1
; plan y: rewired
; saves 262144
.func case_first_arm(x: f32[65536], c: i64[]) -> y: f32[65536]
  %y = invoke arms(%x, %c)
  ret %y
.end

; set c = 0
; plan y: rewired
; saves 262144
.func case_second_arm(x: f32[65536], c: i64[]) -> y: f32[65536]
  %y = invoke arms(%x, %c)
  ret %y
.end

; set c = 1
; plan y: rewired
; saves 262144
.func case_either_arm_joined_by_move(x: f32[65536], c: i64[]) -> y: f32[65536]
  %one = load_consti 1
  if %c == %one goto yes else no
yes:
  %s = alloc_storage _, alignment=64, f32[65536], cpu
  %a = alloc_tensor %s, _, f32[65536]
  invoke_packed fill_1(%a), outputs=1
  %r = move %a
  goto done
no:
  %t = alloc_storage _, alignment=64, f32[65536], cpu
  %b = alloc_tensor %t, _, f32[65536]
  invoke_packed inc(%x, %b), outputs=1
  %r = move %b
done:
  ret %r
.end

; plan y: rewired
; saves 262144
.func case_a_return_in_each_arm(x: f32[65536], c: i64[]) -> y: f32[65536]
  %one = load_consti 1
  if %c == %one goto yes else no
yes:
  %s = alloc_storage _, alignment=64, f32[65536], cpu
  %a = alloc_tensor %s, _, f32[65536]
  invoke_packed fill_1(%a), outputs=1
  ret %a
no:
  %t = alloc_storage _, alignment=64, f32[65536], cpu
  %b = alloc_tensor %t, _, f32[65536]
  invoke_packed inc(%x, %b), outputs=1
  ret %b
.end

; plan y: rewired
; plan z: rewired
; saves 524288
.func case_two_call_sites_of_one_function(x: f32[65536]) -> (y: f32[65536], z: f32[65536])
  %a = invoke make(%x)
  %b = invoke make(%a)
  %r = alloc_adt tag=0(%a, %b)
  ret %r
.end

; set c = 1
; plan y: rewired
; saves 262144
.func case_either_of_two_call_sites(x: f32[65536], c: i64[]) -> y: f32[65536]
  %one = load_consti 1
  if %c == %one goto yes else no
yes:
  %r = invoke make(%x)
  goto done
no:
  %t = invoke make(%x)
  %r = invoke make(%t)
done:
  ret %r
.end

; plan y: rewired
; saves 262144
.func case_through_three_calls(x: f32[65536], c: i64[]) -> y: f32[65536]
  %y = invoke outer(%x, %c)
  ret %y
.end

; plan a: rewired
; plan b: rewired
; plan d: rewired
; saves 786432
.func case_nested_tuples(x: f32[65536]) -> (a: f32[65536], (b: f32[65536], (d: f32[65536])))
  %p = invoke make(%x)
  %q = invoke make(%p)
  %r = invoke make(%q)
  %one = alloc_adt tag=0(%r)
  %two = alloc_adt tag=0(%q, %one)
  %all = alloc_adt tag=0(%p, %two)
  ret %all
.end

; plan y: rewired
; saves 262144
.func case_get_field_of_a_tuple(x: f32[65536]) -> y: f32[65536]
  %p = invoke make(%x)
  %q = invoke make(%p)
  %pair = alloc_adt tag=0(%p, %q)
  kill %p
  kill %q
  %y = get_field %pair, index=1
  ret %y
.end

; plan y: rewired
; saves 262144
.func case_get_field_of_a_call(x: f32[65536]) -> y: f32[65536]
  %pair = invoke two_of_them(%x)
  %y = get_field %pair, index=1
  ret %y
.end

; plan a: rewired
; plan b: rewired
; saves 524288
.func case_tuple_of_a_call_returned_whole(x: f32[65536]) -> (a: f32[65536], b: f32[65536])
  %pair = invoke two_of_them(%x)
  ret %pair
.end

; plan y: rewired
; saves 262144
.func case_reshape_chain(x: f32[65536]) -> y: f32[65536, 1]
  %s = alloc_storage _, alignment=64, f32[65536], cpu
  %a = alloc_tensor %s, _, f32[65536]
  %wide = load_const wide
  %b = reshape_tensor %a, %wide
  invoke_packed inc(%x, %b), outputs=1
  %flat = load_const flat
  %d = reshape_tensor %b, %flat
  %tall = load_const tall
  %e = reshape_tensor %d, %tall
  ret %e
.end

; plan y: rewired
; saves 262144
.func case_alloc_tensor_reg(x: f32[N]) -> y: f32[M]
  %flat = load_const flat
  %bytes = load_consti 262144
  %s = alloc_storage %bytes, alignment=64, f32, cpu
  %a = alloc_tensor_reg %s, _, %flat, f32
  invoke_packed inc(%x, %a), outputs=1
  ret %a
.end

; plan y: rewired
; made by an instruction: y
; saves 262144
.func case_device_copy(x: f32[65536]) -> y: f32[65536]
  %y = device_copy %x, cpu, cpu
  ret %y
.end

; plan y: rewired
; saves 262144
.func case_offset_into_a_storage(x: f32[65536]) -> y: f32[65536]
  %bytes = load_consti 262208
  %offset = load_consti 64
  %s = alloc_storage %bytes, alignment=64, f32, cpu
  %a = alloc_tensor %s, %offset, f32[65536]
  invoke_packed inc(%x, %a), outputs=1
  ret %a
.end

; plan y: rewired
; saves 262144
.func case_loop(x: f32[65536], c: i64[]) -> y: f32[65536]
  %one = load_consti 1
again:
  %s = alloc_storage _, alignment=64, f32[65536], cpu
  %a = alloc_tensor %s, _, f32[65536]
  invoke_packed inc(%x, %a), outputs=1
  if %c == %one goto again else done
done:
  ret %a
.end

; plan y: rewired
; run y: in place
; bind y: capacity 300000
; saves 262144
.func case_in_a_larger_buffer(x: f32[65536]) -> y: f32[N]
  %y = invoke make(%x)
  ret %y
.end

; bind y: allocator
; plan y: rewired
; saves 262144
.func case_in_memory_that_is_asked_for(x: f32[65536]) -> y: f32[N]
  %y = invoke make(%x)
  ret %y
.end

; bind y: donate x
; plan y: rewired
; saves 262144
.func case_in_the_input(x: f32[65536]) -> y: f32[65536]
  %s = alloc_storage _, alignment=64, f32[65536], cpu
  %a = alloc_tensor %s, _, f32[65536]
  invoke_packed fill_1(%a), outputs=1
  ret %a
.end

.func make(x: f32[65536]) -> y: f32[65536]
  %s = alloc_storage _, alignment=64, f32[65536], cpu
  %a = alloc_tensor %s, _, f32[65536]
  invoke_packed inc(%x, %a), outputs=1
  ret %a
.end

.func two_of_them(x: f32[65536]) -> (a: f32[65536], b: f32[65536])
  %p = invoke make(%x)
  %q = invoke make(%p)
  %pair = alloc_adt tag=0(%p, %q)
  ret %pair
.end

.func outer(x: f32[65536], c: i64[]) -> y: f32[65536]
  %p = invoke make(%x)
  %y = invoke arms(%p, %c)
  ret %y
.end

.func arms(x: f32[65536], c: i64[]) -> y: f32[65536]
  %one = load_consti 1
  if %c == %one goto yes else no
yes:
  %y = invoke make(%x)
  ret %y
no:
  %s = alloc_storage _, alignment=64, f32[65536], cpu
  %a = alloc_tensor %s, _, f32[65536]
  invoke_packed add(%x, %x, %a), outputs=1
  ret %a
.end
