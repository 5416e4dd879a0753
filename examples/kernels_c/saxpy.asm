; Calls the kernel of saxpy.c: sum = 2 * x + y.
.kernel example_saxpy
.const alpha: f32[] = 2
.func main(x: f32[4], y: f32[4]) -> sum: f32[4]
  %alpha = load_const alpha
  %bytes = load_consti 16
  %storage = alloc_storage %bytes, alignment=64, f32, cpu
  %sum = alloc_tensor %storage, _, f32[4]
  invoke_packed example_saxpy(%alpha, %x, %y, %sum), outputs=1
  ret %sum
.end
