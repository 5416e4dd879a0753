#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""board.py BUILD: examples/digits as C source on an emulated Cortex-M4 without an operating system.

Compiles the network as docs/aot.md says, for the board of examples/board, and runs it on all images under qemu-system-arm.
Fails if an image is seen as another digit than ONNX Runtime sees (examples/digits/expected.npy), or if the program is larger,
slower, or needs more memory than LIMITS allow. Prints the figures. Needs third_party/install.sh boards.
"""
import argparse
import pathlib
import tempfile

import digits
import emulated_board

# Bytes, and instructions of one image, by precision. Each is a little above what GCC 12.2 gives, so that growth is seen.
LIMITS = {
    "f32": {"code": 2000, "arena": 4096, "stack": 400, "instructions": 650_000},
    "int8": {"code": 2320, "arena": 1056, "stack": 400, "instructions": 500_000},
}
# Images that may be seen as another digit.
ALLOWED = {"f32": 0, "int8": 1}

MAIN = emulated_board.WRITE_LINE + """
#include "digits.h"
#include "images.h"

int main(void) {
  float scores[1][10];
  int i, k, best;
  board_paint_stack();
  board_start_clock();
  if (digits_main((const float (*)[1][8][8])images, scores) != 0) return 1;
  line("ticks", board_ticks());
  line("stack", board_stack_depth());
  for (i = 0; i < IMAGES; ++i) {
    if (digits_main((const float (*)[1][8][8])(images + 64 * i), scores) != 0) return 1;
    best = 0;
    for (k = 1; k < 10; ++k) best = scores[0][k] > scores[0][best] ? k : best;
    line("digit", (uint32_t)best);
  }
  return 0;
}
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    tools = parser.parse_args().build.resolve() / "bin"
    expected = digits.expected_digits()
    faults = []
    for precision, limits in LIMITS.items():
        for level in ("-Os", "-O2", "-O3"):
            with tempfile.TemporaryDirectory() as folder:
                folder = pathlib.Path(folder)
                digits.write_images(folder)
                arena = digits.write_source(tools, folder, precision)["arena_bytes"]
                elf, code, deepest_stack = emulated_board.build(tools, folder, level, MAIN)
                found = emulated_board.emulate(elf)
            figures = {"code": code, "arena": arena, "stack": found["stack"][0], "stack at most": deepest_stack,
                       "instructions": found["ticks"][0] * emulated_board.INSTRUCTIONS_A_TICK}
            right = sum(a == b for a, b in zip(found["digit"], expected))
            name = f"{precision} {level}"
            print(f"{name}: {right} of {len(expected)} as expected; " + ", ".join(f"{key} {value:,}" for key, value in figures.items()), flush=True)
            if len(found["digit"]) != len(expected) or right < len(expected) - ALLOWED[precision]:
                faults.append(f"{name}: {right} of {len(expected)} images are seen as expected")
            if figures["stack"] > figures["stack at most"]:
                faults.append(f"{name}: the stack is {figures['stack']} B deep, the header says {figures['stack at most']}")
            # The smallest code and the fastest one are two builds.
            for key in ("code", "arena", "stack") if level == "-Os" else ("instructions",):
                if figures[key] > limits[key]:
                    faults.append(f"{name}: {key} {figures[key]:,}, at most {limits[key]:,} expected")
    raise SystemExit("\n".join(faults) or 0)


if __name__ == "__main__":
    main()
