#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares forms of GroupQueryAttention with ONNX Runtime: prompts, single tokens, several tokens, windows, capped scores,
packed inputs, a bias; with a past that is a buffer, and one that grows.

    tests/support/environments.py --run tests/models/requirements/models.txt tests/models/grouped_attention.py \\
        --bin build/release/bin
"""

import argparse
import dataclasses
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

TYPES = {np.dtype(np.float32): TensorProto.FLOAT, np.dtype(np.int32): TensorProto.INT32}
TOLERANCE = 2e-5


@dataclasses.dataclass
class Form:
    name: str
    batch: int = 1
    length: int = 1
    past: int = 20  # positions; 0: the prompt
    room: int = 40  # of the buffer
    is_buffer: bool = True  # past and present are declared alike
    heads: int = 4
    kv_heads: int = 2
    size: int = 16
    is_packed: bool = False
    has_bias: bool = False
    attributes: dict = dataclasses.field(default_factory=dict)

    def totals(self):
        """How many positions each sentence has then; they differ, but for a prompt."""
        return np.array([self.past + self.length - (i % 3 if self.past else 0) for i in range(self.batch)])

    def inputs(self, random):
        def floats(*shape):
            return random.standard_normal(shape, dtype=np.float32)

        of_q, of_k = self.heads * self.size, self.kv_heads * self.size
        given = {"query": floats(self.batch, self.length, of_q + 2 * of_k if self.is_packed else of_q)}
        for name in () if self.is_packed else ("key", "value"):
            given[name] = floats(self.batch, self.length, of_k)
        for name in ("past_key", "past_value"):
            given[name] = floats(self.batch, self.kv_heads, self.room if self.is_buffer else self.past, self.size)
        given["lengths"] = (self.totals() - 1).astype(np.int32)
        given["total"] = np.array(self.totals().max(), np.int32)
        angles = random.random((64, self.size // 2), dtype=np.float32) * 6
        given["cos"], given["sin"] = np.cos(angles), np.sin(angles)
        if self.has_bias:
            given["bias"] = floats(self.batch, 1, self.length, int(self.totals().max()))
        return given

    def model(self, given):
        order = ["query", "key", "value", "past_key", "past_value", "lengths", "total", "cos", "sin", "", "bias"]
        names = [name if name in given else "" for name in order]
        node = helper.make_node("GroupQueryAttention", names[:11 if self.has_bias else 9], ["y", "present_key", "present_value"],
                                domain="com.microsoft", num_heads=self.heads, kv_num_heads=self.kv_heads,
                                **{"do_rotary": 1, **self.attributes})

        def cache(name, positions):
            return helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", self.kv_heads, positions, self.size])

        inputs = [cache(name, "room") if name.startswith("past") else
                  helper.make_tensor_value_info(name, TYPES[array.dtype], array.shape) for name, array in given.items()]
        outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [self.batch, self.length, self.heads * self.size])]
        outputs += [cache(f"present_{part}", "room" if self.is_buffer else "now") for part in ("key", "value")]
        graph = helper.make_graph([node], "attention", inputs, outputs)
        return helper.make_model(graph, ir_version=8,
                                 opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)])


def forms():
    for is_buffer in (True, False):
        for is_packed in (False, True):
            rest = {"is_buffer": is_buffer, "is_packed": is_packed}
            yield Form("one token", **rest)
            yield Form("sentences of several lengths", batch=3, **rest)
            yield Form("a window", batch=2, attributes={"local_window_size": 7}, **rest)
            yield Form("capped scores, no rotary", batch=2, kv_heads=4, attributes={"softcap": 5.0, "do_rotary": 0}, **rest)
            yield Form("a scale", kv_heads=1, attributes={"scale": 0.3}, **rest)
            yield Form("neighbors rotated", kv_heads=1, attributes={"rotary_interleaved": 1}, **rest)
            yield Form("several tokens", length=5, **rest)
            yield Form("several tokens, a window", length=5, attributes={"local_window_size": 4}, **rest)
        yield Form("a bias", has_bias=True, is_buffer=is_buffer)
    for is_packed in (False, True):
        yield Form("a prompt", length=12, past=0, is_packed=is_packed)
        yield Form("prompts, a window", batch=2, length=12, past=0, heads=8, size=32, is_packed=is_packed,
                   attributes={"local_window_size": 5})


def difference(form, work, tools, random):
    given = form.inputs(random)
    onnx.save(form.model(given), work / "model.onnx")
    session = onnxruntime.InferenceSession(str(work / "model.onnx"), providers=["CPUExecutionProvider"])
    expected = session.run(None, given)
    subprocess.run([tools / "vm-compile", work / "model.onnx", "-o", work / "model.rwx"], check=True, capture_output=True)
    command = [tools / "vm-run", work / "model.rwx"]
    for name, array in given.items():
        np.save(work / f"{name}.npy", array)
        command += ["--input", f"{name}=@{work / name}.npy"]
    names = [output.name for output in session.get_outputs()]
    for name in names:
        command += ["--output", f"{name}=@{work / name}.out.npy"]
    subprocess.run(command, check=True, capture_output=True)
    results = [np.load(work / f"{name}.out.npy") for name in names]
    most = float(np.abs(results[0] - expected[0]).max())
    for result, wanted in zip(results[1:], expected[1:]):
        for i, total in enumerate(form.totals()):  # what lies behind a sentence has no meaning
            most = max(most, float(np.abs(result[i, :, :total] - wanted[i, :, :total]).max()))
    return most


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    options = parser.parse_args()
    random, failed = np.random.default_rng(3), 0
    with tempfile.TemporaryDirectory() as folder:
        for form in forms():
            what = f"{form.name}, {'a buffer' if form.is_buffer else 'a past that grows'}{', packed' if form.is_packed else ''}"
            try:
                most = difference(form, pathlib.Path(folder), options.bin, random)
            except subprocess.CalledProcessError as error:
                most = float("inf")
                print(error.stderr.decode().strip())
            failed += not most <= TOLERANCE
            print(f"{'ok' if most <= TOLERANCE else 'FAILED'}: {what}: {most:.1e}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
