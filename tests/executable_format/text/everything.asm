; Every directive and every kind of operand. Not a program that makes sense: the verifier refuses it.
.metadata producer "hand"
.device gpu = cuda:0
.device cuda:1 "global.texture"
.symbol N max 64
.symbol "batch size"
.const w: f32[2, 3] = {{1, 2, 3}, {4, 5.5, -inf}}
.const n: f32[3] = {nan, nan:0x7fc00001, -0.0}
.const scalar: i64[] = -7
.const flags: bool[2] = {true, 0}
.const halves: f16[3] = {0.1, 65504, 6e-8}
.const brain: bf16[2] = {1.5, -3e38}
.const big: f32[10, 10] codec=zstd = fill 2.5
.const empty: f32[0, 4] = zeros
.const complex: c64[1] = base64 "AACAPwAAAEA="
.const #9: i8[3] = {-128, 0x7f, 0}
.const coded: f32[2] codec=300 = stored 8 "AAEC"
.param scale: f32[N, ?] on gpu
.computed packed: f32[3, 2]
.kernel add = "rewire.add"
.kernel rewire.softmax {axis=-1, eps=1e-5, mode="same", pads=[1, 2], scales=[1.0, nan], none=floats[], yes=true} objects align=64 writes(1, 2)
.kernel #2 add = "rewire.add_again" flags=6
.code source codec=zstd = text {
  "__kernel void f(__global float* x) {\n"
  "\tx[0] = 1; // \"quoted\"\n"
  "}"
}
.code machine = base64 "AAECAwD/"
.code #15 = text "a text\n"
.code nothing = text {}
.device_code both opencl_c = source
.device_code both cubin "sm_90" = machine
.device_code "other code" form=77 "an architecture" = #15
.device_code both spirv = nothing
.device_code both ptx = #99
.device_kernel dev.f(x: f32[N, 4] on gpu, local: i8[] on gpu) -> ("f32": f32[M] on gpu) = both "kernel f" groups(ceildiv(mul(N, 4), 64), 2) threads(64, 1, max(M, -3)) shared(mul(4, N)) args(x, "local", "f32", i32 N, u64 add(N, sub(M, div(7, 2))), f32 -0.5, f64 nan:0x7ff8000000000001, local mod(N, min(8, N)), #9)
.device_kernel dev.g() -> () = none symbol groups(words(), words(0, 1, 2), 3) threads(words(1, -1)) args()
.func main(image: f32[N, 3], k: i64[] on *, tree: adt 3 (value, (integer, closure), ()), any: ?[*]) -> (scores: f32[N, "batch size"], (a: f32[2] on cuda:1 "global.texture", b: storage))
  %size = load_consti -0x28
  %s = alloc_storage %size, alignment=64, f32, cpu
  %s2 = alloc_storage _, alignment=64, f32[4, 10], gpu @ "conv_3" @ "a \"quoted\" note"
  %t = alloc_tensor %s, _, f32[4, 10]
  invoke_packed add(%image, %image, %t), outputs=1
  %v = invoke_packed #2(%t), outputs=0
  if %size == %v goto yes else no
yes:
  %adt = alloc_adt tag=3 (%t, %v)
  %f = get_field %adt, index=1
  %g = get_tag %adt
  %closure = alloc_closure helper(%t)
  %r = invoke_closure %closure(%v)
  %r = invoke helper(%v, %v)
  goto no
no: %c = load_const w
  %shape = shape_of %c
  %view = reshape_tensor %c, %shape
  %40 = alloc_tensor_reg %s, %size, %shape, i32x4
  %d = device_copy %view, cpu, gpu
  kill %s
  %m = move %d
  goto -7
  .words 0x00000215, 7
  .registers 60
end:
  fatal "stop"
  fatal
  ret %m
.end
.func helper(a: value, "b c": value) -> value
  ret %1
.end
