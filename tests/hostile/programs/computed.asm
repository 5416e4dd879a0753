; Constants that __init makes, parameters, and a constant that is compressed.
.const small: f32[64] codec=zstd = fill 2
.const lengths: i32[2] = {2, 1}
.const weight: f32[1, 2, 3] = {{{1, 0.5, -1}, {0.25, 1, 1}}}
.const recurrent: f32[1, 2, 2] = {{{1, 0}, {0, 1}}}
.const none: f32[0] = {}
.param bias: f32[64]
.computed packed: f32[64]
.computed open: f32[?]
.kernel add = "rewire.add"
.kernel rnn = "rewire.rnn" {direction="forward"}

.func __init() -> (a: f32[64], b: f32[?])
  %x = load_const small
  %bias = load_const bias
  %storage = alloc_storage _, alignment=64, f32[64], cpu
  %a = alloc_tensor %storage, _, f32[64]
  invoke_packed add(%x, %bias, %a), outputs=1
  %all = alloc_adt tag=0 (%a, %x)
  ret %all
.end

.func main(x: f32[64]) -> y: f32[64]
  %a = load_const packed
  %b = load_const open
  %storage = alloc_storage _, alignment=64, f32[64], cpu
  %y = alloc_tensor %storage, _, f32[64]
  invoke_packed add(%x, %a, %y), outputs=1
  invoke_packed add(%y, %b, %y), outputs=1
  ret %y
.end

.func steps(x: f32[2, 2, 3]) -> (y: f32[2, 1, 2, 2], last: f32[1, 2, 2])
  %w = load_const weight
  %r = load_const recurrent
  %none = load_const none
  %lengths = load_const lengths
  %storage = alloc_storage _, alignment=64, f32[2, 1, 2, 2], cpu
  %y = alloc_tensor %storage, _, f32[2, 1, 2, 2]
  %storage2 = alloc_storage _, alignment=64, f32[1, 2, 2], cpu
  %last = alloc_tensor %storage2, _, f32[1, 2, 2]
  invoke_packed rnn(%x, %w, %r, %none, %lengths, %none, %y, %last), outputs=2
  %all = alloc_adt tag=0 (%y, %last)
  ret %all
.end
