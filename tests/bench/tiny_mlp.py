# SPDX-License-Identifier: Apache-2.0
"""The tiny model of benches of the server, and an input of it."""
import numpy as np

X = np.linspace(-1, 1, 64, dtype=np.float32)


def mlp():
    """y = relu(x w1) w2, f32[1, 64] to f32[1, 10]."""
    random = np.random.default_rng(1)
    weights = [", ".join(f"{each:.6f}" for each in random.standard_normal(64 * columns) / 8) for columns in (64, 10)]
    return f""".const w1: f32[64, 64] = {{{weights[0]}}}
.const w2: f32[64, 10] = {{{weights[1]}}}
.kernel matmul = "rewire.matmul"
.kernel relu = "rewire.relu"
.func main(x: f32[1, 64]) -> y: f32[1, 10]
  %s = alloc_storage _, alignment=64, f32[1, 64], cpu
  %h = alloc_tensor %s, _, f32[1, 64]
  %w1 = load_const w1
  invoke_packed matmul(%x, %w1, %h), outputs=1
  %r = alloc_storage _, alignment=64, f32[1, 64], cpu
  %a = alloc_tensor %r, _, f32[1, 64]
  invoke_packed relu(%h, %a), outputs=1
  %t = alloc_storage _, alignment=64, f32[1, 10], cpu
  %y = alloc_tensor %t, _, f32[1, 10]
  %w2 = load_const w2
  invoke_packed matmul(%a, %w2, %y), outputs=1
  ret %y
.end
"""
