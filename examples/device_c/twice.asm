; Two kernels of worker.c one after the other, on its device: y = 4 x. `there` leaves the result on the device.
.device worker = ext_dev:0
.kernel example_worker_twice
.func main(x: f32[4]) -> y: f32[4]
  %d = device_copy %x, cpu, worker
  %s = alloc_storage _, alignment=64, f32[4], worker
  %a = alloc_tensor %s, _, f32[4]
  invoke_packed example_worker_twice(%d, %a), outputs=1
  %t = alloc_storage _, alignment=64, f32[4], worker
  %b = alloc_tensor %t, _, f32[4]
  invoke_packed example_worker_twice(%a, %b), outputs=1
  %y = device_copy %b, worker, cpu
  ret %y
.end
.func there(x: f32[4]) -> y: f32[4] on worker
  %d = device_copy %x, cpu, worker
  %s = alloc_storage _, alignment=64, f32[4], worker
  %a = alloc_tensor %s, _, f32[4]
  invoke_packed example_worker_twice(%d, %a), outputs=1
  ret %a
.end
