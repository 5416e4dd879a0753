; Shapes that programs compute: shape functions, sizes in registers, empty tensors, lists of tensors.
.const zero_rows: i64[2] = {0, 4}
.const rows: i64[2] = {-1, 2}
.const axes: i64[1] = {0}
.kernel shape_of_sum = "rewire.shape.broadcast"
.kernel shape_of_view = "rewire.shape.reshape"
.kernel bytes = "rewire.shape.bytes" {element_bytes=4}
.kernel add = "rewire.add"
.kernel copy = "rewire.copy"
.kernel softmax = "rewire.softmax"
.kernel length = "rewire.seq.length" objects

.func main(a: f32[N, 1], b: f32[?, ?]) -> (sum: f32[?, ?], view: f32[*])
  %a_shape = shape_of %a
  %b_shape = shape_of %b
  %storage = alloc_storage _, alignment=64, i64[2], cpu
  %shape = alloc_tensor %storage, _, i64[2]
  invoke_packed shape_of_sum(%a_shape, %b_shape, %shape), outputs=1
  %size_storage = alloc_storage _, alignment=64, i64[], cpu
  %size = alloc_tensor %size_storage, _, i64[]
  invoke_packed bytes(%shape, %size), outputs=1
  %memory = alloc_storage %size, alignment=64, f32, cpu
  %sum = alloc_tensor_reg %memory, _, %shape, f32
  invoke_packed add(%a, %b, %sum), outputs=1
  %memory2 = alloc_storage %size, alignment=64, f32, cpu
  %soft = alloc_tensor_reg %memory2, _, %shape, f32
  invoke_packed softmax(%sum, %soft), outputs=1
  %flat = shape_of %soft
  %view = reshape_tensor %soft, %flat
  %all = alloc_adt tag=0 (%sum, %view)
  ret %all
.end

.func empty() -> y: f32[0, 4]
  %shape = load_const zero_rows
  %none = load_consti 0
  %storage = alloc_storage %none, alignment=64, f32, cpu
  %y = alloc_tensor_reg %storage, _, %shape, f32
  ret %y
.end

.func sizes(n: integer) -> y: f32[?]
  %storage = alloc_storage %n, alignment=64, f32, cpu
  %shape = load_const axes
  %y = alloc_tensor_reg %storage, _, %n, f32
  ret %y
.end

.func list(x: f32[2], y: f32[2]) -> (n: value, items: value)
  %items = alloc_adt tag=0 (%x, %y, %x)
  %storage = alloc_storage _, alignment=64, i64[], cpu
  %n = alloc_tensor %storage, _, i64[]
  invoke_packed length(%items, %n), outputs=1
  %all = alloc_adt tag=0 (%n, %items)
  ret %all
.end

.func copies(x: f32[4]) -> (a: f32[4], b: f32[4])
  %a = device_copy %x, cpu, cpu
  %storage = alloc_storage _, alignment=64, f32[4], cpu
  %b = alloc_tensor %storage, _, f32[4]
  invoke_packed copy(%a, %b), outputs=1
  %all = alloc_adt tag=0 (%a, %b)
  ret %all
.end
