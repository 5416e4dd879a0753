; Outputs of every kind: made in place, views, fields, inputs, constants, integers, lists, two of one tensor.
.const pair: f32[2, 2] = {{1, -2}, {3, 0.5}}
.const flat: i64[1] = {4}
.const lens: i32[1] = {3}
.param scale: f32[4]
.kernel add = "rewire.add"
.kernel mul = "rewire.mul"
.kernel relu = "rewire.relu"
.kernel concat = "rewire.concat" {axis=0}

.func main(x: f32[N, 4], k: integer) -> (sum: f32[N, 4], (same: f32[N, 4], first: f32[N, 4]), count: integer, fixed: f32[2, 2])
  %scale = load_const scale
  %shape = shape_of %x
  %bytes = load_consti 4096
  %storage = alloc_storage %bytes, alignment=64, f32, cpu
  %sum = alloc_tensor_reg %storage, _, %shape, f32
  invoke_packed mul(%x, %scale, %sum), outputs=1
  invoke_packed add(%sum, %x, %sum), outputs=1
  %storage2 = alloc_storage %bytes, alignment=64, f32, cpu
  %same = alloc_tensor_reg %storage2, _, %shape, f32
  invoke_packed relu(%sum, %same), outputs=1
  %inner = alloc_adt tag=0 (%same, %x)
  %fixed = load_const pair
  %all = alloc_adt tag=0 (%sum, %inner, %k, %fixed)
  ret %all
.end

.func view(x: f32[2, 2]) -> (flat: f32[4], y: f32[2, 2])
  %shape = load_const flat
  %storage = alloc_storage _, alignment=64, f32[2, 2], cpu
  %y = alloc_tensor %storage, _, f32[2, 2]
  invoke_packed relu(%x, %y), outputs=1
  %view = reshape_tensor %y, %shape
  %all = alloc_adt tag=0 (%view, %y)
  ret %all
.end

.func parts(x: f32[2], y: f32[3]) -> joined: f32[5]
  %storage = alloc_storage _, alignment=64, f32[5], cpu
  %joined = alloc_tensor %storage, _, f32[5]
  %eight = load_consti 8
  %a = alloc_tensor %storage, _, f32[2]
  %b = alloc_tensor %storage, %eight, f32[3]
  invoke_packed relu(%x, %a), outputs=1
  invoke_packed relu(%y, %b), outputs=1
  invoke_packed concat(%x, %y, %joined), outputs=1
  ret %joined
.end

.func opaque(x: value) -> value
  %pair = alloc_adt tag=1 (%x, %x)
  ret %pair
.end
