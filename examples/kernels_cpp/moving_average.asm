; Calls the kernel of moving_average.cc: the mean of the last three inputs.
.kernel example.moving_average {window=3}
.func main(x: f32[2]) -> mean: f32[2]
  %bytes = load_consti 8
  %storage = alloc_storage %bytes, alignment=64, f32, cpu
  %mean = alloc_tensor %storage, _, f32[2]
  invoke_packed example.moving_average(%x, %mean), outputs=1
  ret %mean
.end
