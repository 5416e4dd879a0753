; Loops, recursion, closures, tags and fields; what is made is passed through all of them.
.const one: f32[3] = {1, 1, 1}
.kernel add = "rewire.add"

.func main(x: f32[3]) -> y: f32[3]
  %n = load_consti 3
  %y = invoke repeat(%x, %n)
  ret %y
.end

; Adds one n times, in tensors of its own.
.func repeat(x: f32[3], n: integer) -> y: f32[3]
  %zero = load_consti 0
  if %n == %zero goto done else more
more:
  %one = load_const one
  %storage = alloc_storage _, alignment=64, f32[3], cpu
  %next = alloc_tensor %storage, _, f32[3]
  invoke_packed add(%x, %one, %next), outputs=1
  %list = alloc_adt tag=7 (%next, %n)
  %tag = get_tag %list
  %seven = load_consti 7
  if %tag == %seven goto again else wrong
again:
  %less = invoke decrement(%n)
  %field = get_field %list, index=0
  %y = invoke repeat(%field, %less)
  ret %y
wrong:
  fatal "the tag is another"
done:
  ret %x
.end

.func decrement(n: integer) -> m: integer
  %one = load_consti 1
  %two = load_consti 2
  %three = load_consti 3
  %zero = load_consti 0
  if %n == %three goto was_three else next
next:
  if %n == %two goto was_two else was_less
was_three:
  ret %two
was_two:
  ret %one
was_less:
  ret %zero
.end

.func closures(x: f32[3]) -> y: f32[3]
  %one = load_const one
  %f = alloc_closure apply(%one)
  %a = invoke_closure %f(%x)
  %g = alloc_closure twice(%f)
  %b = invoke_closure %g(%a)
  ret %b
.end

.func apply(by: f32[3], x: f32[3]) -> y: f32[3]
  %storage = alloc_storage _, alignment=64, f32[3], cpu
  %y = alloc_tensor %storage, _, f32[3]
  invoke_packed add(%x, %by, %y), outputs=1
  ret %y
.end

.func twice(f: closure, x: f32[3]) -> y: value
  %a = invoke_closure %f(%x)
  %b = invoke_closure %f(%a)
  kill %a
  ret %b
.end

; The sum of a loop whose tensor is carried in one register.
.func loop(x: f32[3]) -> y: f32[3]
  %count = load_consti 0
  %end = load_consti 1
  %y = move %x
head:
  %storage = alloc_storage _, alignment=64, f32[3], cpu
  %next = alloc_tensor %storage, _, f32[3]
  invoke_packed add(%y, %x, %next), outputs=1
  %y = move %next
  if %count == %end goto out else body
body:
  %count = move %end
  goto head
out:
  ret %y
.end
