#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""voice_detector.py BUILD: a detector of voices, from the package of that name, as C source on an emulated Cortex-M4.

The package has the model in float32, and quantized with QuantizeLinear and DequantizeLinear. Each is compiled as docs/aot.md says and
called on SAMPLES random inputs under qemu-system-arm. Fails if a score is another than vm-run's (that of the quantized model to the bit),
or if arena and stack take more than MOST_BYTES. Prints the figures. Needs third_party/install.sh boards, and the environment of
tests/compiler/aot/requirements/wasmtime.txt:

    tests/support/environments.py --run tests/compiler/aot/requirements/wasmtime.txt tests/compiler/aot/voice_detector.py build/release
"""
import argparse
import importlib.util
import json
import math
import pathlib
import struct
import tempfile

import digits
import emulated_board

MODELS = {"f32": "pulsevad_2.1k.onnx", "int8": "pulsevad_2.1k_int8.onnx"}
SAMPLES = 8
MOST_BYTES = 10_000
# Floats may be rounded otherwise on the board.
MOST_DIFFERENCE = {"f32": 1e-6, "int8": 0}

MAIN = emulated_board.WRITE_LINE + """
#include <string.h>

#include "pulsevad.h"
#include "samples.h"

int main(void) {
  static float scores[SCORES];
  int i, k;
  for (i = 0; i < SAMPLES; ++i) {
    board_paint_stack();
    board_start_clock();
    if (pulsevad_main((const void *)(samples + i * FEATURES), (void *)scores) != 0) return 1;
    line("ticks", board_ticks());
    line("stack", board_stack_depth());
    for (k = 0; k < SCORES; ++k) {
      uint32_t bits;
      memcpy(&bits, scores + k, sizeof(bits));
      line("bits", bits);
    }
  }
  return 0;
}
"""


def write_samples(tools, folder):
    """samples.h: inputs that vm-run draws; returns the scores that it gives, and the bytes of an input."""
    listed = json.loads(digits.run(tools / "vm-run", folder / "pulsevad.rwx", "--list", "--json"))["functions"][0]
    if len(listed["inputs"]) != 1 or len(listed["outputs"]) != 1:
        raise SystemExit("voice_detector.py: the model has not one input and one output")
    samples, scores = [], []
    for seed in range(SAMPLES):
        digits.run(tools / "vm-run", folder / "pulsevad.rwx", "--random", "--seed", seed, "--record", folder / f"call{seed}", "--quiet")
        samples.append(digits.read_floats(folder / f"call{seed}/input-0.npy")[1])
        scores.append(digits.read_floats(folder / f"call{seed}/output-0.npy")[1])
    elements = ",\n".join(",".join(f"{float(x).hex()}f" for x in sample) for sample in samples)
    (folder / "samples.h").write_text(f"#define SAMPLES {SAMPLES}\n#define FEATURES {len(samples[0])}\n#define SCORES {len(scores[0])}\n"
                                      f"static const float samples[SAMPLES * FEATURES] = {{\n{elements}\n}};\n")
    return [score for row in scores for score in row], 4 * len(samples[0])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    tools = parser.parse_args().build.resolve() / "bin"
    package = importlib.util.find_spec("pulsevad")
    if package is None or package.origin is None:
        raise SystemExit("voice_detector.py: the package pulsevad is not installed: run this by tests/support/environments.py")
    faults = []
    for precision, model in MODELS.items():
        for level in ("-Os", "-O2"):
            with tempfile.TemporaryDirectory() as temporary:
                folder = pathlib.Path(temporary)
                options = [word for name in digits.PASSES for word in ("--disable-pass", name)]
                digits.run(tools / "vm-compile", pathlib.Path(package.origin).parent / "data" / model, "--dim", "batch=1", *options, "-o",
                           folder / "pulsevad.rwx")
                expected, input_bytes = write_samples(tools, folder)
                arena = digits.emit(tools, folder, name="pulsevad")["arena_bytes"]
                elf, code, deepest_stack = emulated_board.build(tools, folder, level, MAIN, "pulsevad")
                found = emulated_board.emulate(elf)
            scores = [struct.unpack("<f", struct.pack("<I", bits))[0] for bits in found["bits"]]
            difference = max(abs(a - b) for a, b in zip(scores, expected, strict=True))
            stack, name = max(found["stack"]), f"pulsevad {precision} {level}"
            print(f"{name}: {len(scores)} scores of {len(set(scores))} values, at most {difference:.1e} from vm-run's; code {code:,}, arena {arena:,}, "
                  f"stack {stack}, stack at most {deepest_stack}, the caller's input {input_bytes:,}, "
                  f"instructions {max(found['ticks']) * emulated_board.INSTRUCTIONS_A_TICK:,}", flush=True)
            if not difference <= MOST_DIFFERENCE[precision] or len(set(scores)) < SAMPLES or not all(map(math.isfinite, scores)):
                faults.append(f"{name}: scores {scores}, expected {expected}")
            if stack > deepest_stack:
                faults.append(f"{name}: the stack is {stack} B deep, the header says {deepest_stack}")
            if arena + stack > MOST_BYTES:
                faults.append(f"{name}: arena and stack take {arena + stack:,} B, at most {MOST_BYTES:,} expected")
    raise SystemExit("\n".join(faults) or 0)


if __name__ == "__main__":
    main()
