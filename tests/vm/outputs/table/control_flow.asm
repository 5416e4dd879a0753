; Loops, recursion and closures.
.const minus_one: i64[] = -1
.kernel fill_1 = "fill_1"
.kernel inc = "inc"
.kernel add = "add"
.kernel mean = "mean"
.kernel previous = "previous"

; set c = 2
; plan y: rewired
.func case_recursion_that_ends_in_a_new_tensor(x: f32[4], c: i64[]) -> y: f32[4]
  %y = invoke countdown(%x, %c)
  ret %y
.end

; set c = 3
; plan y: rewired
.func case_recursion_of_which_the_outermost_call_makes_the_result(x: f32[4], c: i64[]) -> y: f32[4]
  %y = invoke deepen(%x, %c)
  ret %y
.end

; set c = 2
; plan y: copied: it is an input, or part of one
.func case_recursion_that_may_return_its_input(x: f32[4], c: i64[]) -> y: f32[4]
  %y = invoke pass_down(%x, %c)
  ret %y
.end

; set c = 2
; plan y: copied: it is an input, or part of one
; run y: in place
.func case_two_functions_that_call_each_other(x: f32[4], c: i64[]) -> y: f32[4]
  %y = invoke even(%x, %c)
  ret %y
.end

; plan y: copied: it is an input, or part of one
.func case_a_closure_of_the_input(x: f32[4]) -> y: f32[4]
  %f = alloc_closure make(%x)
  %y = invoke_closure %f()
  ret %y
.end

; plan y: copied: a kernel or a closure returns it
.func case_a_closure_that_captures_a_new_tensor(x: f32[4]) -> y: f32[4]
  %a = invoke make(%x)
  %f = alloc_closure make(%a)
  %y = invoke_closure %f()
  ret %y
.end

; plan y: rewired
.func case_made_after_a_closure_has_run(x: f32[4]) -> y: f32[4]
  %f = alloc_closure make(%x)
  %a = invoke_closure %f()
  %y = invoke make(%a)
  ret %y
.end

; plan y: rewired
; bind f: unbound
; plan f: copied: it is part of an output of unknown structure
.func case_beside_a_closure(x: f32[4]) -> (y: f32[4], f: closure)
  %f = alloc_closure make(%x)
  %y = invoke make(%x)
  %r = alloc_adt tag=0(%y, %f)
  ret %r
.end

; bind f: unbound
; plan y: copied: it is part of an output of unknown structure
; plan f: copied: it is part of an output of unknown structure
.func case_captured_by_a_closure_that_is_returned(x: f32[4]) -> (y: f32[4], f: closure)
  %y = invoke make(%x)
  %f = alloc_closure make(%y)
  %r = alloc_adt tag=0(%y, %f)
  ret %r
.end

; set c = 1
; plan y: rewired
.func case_a_loop_with_a_sum_beside_it(x: f32[4], c: i64[]) -> y: f32[4]
  %i = move %c
  %zero = load_consti 0
  %s = alloc_storage _, alignment=64, f32[4], cpu
  %y = alloc_tensor %s, _, f32[4]
  invoke_packed fill_1(%y), outputs=1
again:
  invoke_packed add(%y, %x, %y), outputs=1
  %t = alloc_storage _, alignment=64, i64[], cpu
  %j = alloc_tensor %t, _, i64[]
  invoke_packed previous(%i, %j), outputs=1
  %i = move %j
  if %i == %zero goto done else again
done:
  ret %y
.end

; set c = 3
; plan y: copied: an earlier tensor in the same memory may still be read when it is made
.func case_two_buffers_that_take_turns(x: f32[4], c: i64[]) -> y: f32[4]
  %i = move %c
  %zero = load_consti 0
  %y = invoke make(%x)
again:
  %s = alloc_storage _, alignment=64, f32[4], cpu
  %a = alloc_tensor %s, _, f32[4]
  invoke_packed mean(%y, %x, %a), outputs=1
  %y = move %a
  %t = alloc_storage _, alignment=64, i64[], cpu
  %j = alloc_tensor %t, _, i64[]
  invoke_packed previous(%i, %j), outputs=1
  %i = move %j
  if %i == %zero goto done else again
done:
  ret %y
.end

; set c = 3
; plan y: rewired
.func case_made_once_the_loop_is_over(x: f32[4], c: i64[]) -> y: f32[4]
  %i = move %c
  %zero = load_consti 0
  %b = invoke make(%x)
again:
  %s = alloc_storage _, alignment=64, f32[4], cpu
  %a = alloc_tensor %s, _, f32[4]
  invoke_packed mean(%b, %x, %a), outputs=1
  %b = move %a
  %t = alloc_storage _, alignment=64, i64[], cpu
  %j = alloc_tensor %t, _, i64[]
  invoke_packed previous(%i, %j), outputs=1
  %i = move %j
  if %i == %zero goto done else again
done:
  %y = invoke make(%b)
  ret %y
.end

; plan y: rewired
.func case_an_arm_that_stops_the_program(x: f32[4], c: i64[]) -> y: f32[4]
  %one = load_consti 1
  %y = invoke make(%x)
  if %c == %one goto stop else go
stop:
  fatal "stopped"
go:
  ret %y
.end

; plan y: rewired
.func case_a_register_used_again(x: f32[4]) -> y: f32[4]
  %a = invoke make(%x)
  %b = invoke make(%a)
  %a = invoke make(%b)
  ret %a
.end

.func make(x: f32[4]) -> y: f32[4]
  %s = alloc_storage _, alignment=64, f32[4], cpu
  %a = alloc_tensor %s, _, f32[4]
  invoke_packed inc(%x, %a), outputs=1
  ret %a
.end

.func down(i: i64[]) -> j: i64[]
  %t = alloc_storage _, alignment=64, i64[], cpu
  %j = alloc_tensor %t, _, i64[]
  invoke_packed previous(%i, %j), outputs=1
  ret %j
.end

.func countdown(x: f32[4], i: i64[]) -> y: f32[4]
  %zero = load_consti 0
  if %i == %zero goto base else more
base:
  %y = invoke make(%x)
  ret %y
more:
  %j = invoke down(%i)
  %y = invoke countdown(%x, %j)
  ret %y
.end

.func deepen(x: f32[4], i: i64[]) -> y: f32[4]
  %zero = load_consti 0
  if %i == %zero goto base else more
base:
  %y = invoke make(%x)
  ret %y
more:
  %j = invoke down(%i)
  %z = invoke deepen(%x, %j)
  %y = invoke make(%z)
  ret %y
.end

.func pass_down(x: f32[4], i: i64[]) -> y: f32[4]
  %zero = load_consti 0
  if %i == %zero goto base else more
base:
  ret %x
more:
  %j = invoke down(%i)
  %z = invoke make(%x)
  %y = invoke pass_down(%z, %j)
  ret %y
.end

.func even(x: f32[4], i: i64[]) -> y: f32[4]
  %zero = load_consti 0
  if %i == %zero goto base else more
base:
  ret %x
more:
  %j = invoke down(%i)
  %y = invoke odd(%x, %j)
  ret %y
.end

.func odd(x: f32[4], i: i64[]) -> y: f32[4]
  %j = invoke down(%i)
  %z = invoke make(%x)
  %y = invoke even(%z, %j)
  ret %y
.end
