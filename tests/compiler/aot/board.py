#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""board.py BUILD: examples/digits as C source on an emulated Cortex-M4 without an operating system.

Compiles the network as docs/aot.md says, for the board of examples/board, and runs it on all images under qemu-system-arm.
Fails if an image is seen as another digit than ONNX Runtime sees (examples/digits/expected.npy), or if the program is larger,
slower, or needs more memory than LIMITS allow. Prints the figures. Needs third_party/install.sh boards.
"""
import argparse
import pathlib
import re
import subprocess
import tempfile

import digits

ROOT = digits.ROOT
ARM = ["arm-none-eabi-gcc", "-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16", "-std=c99"]
# Bytes, and instructions of one image, by precision. Each is a little above what GCC 12.2 gives, so that growth is seen.
LIMITS = {
    "f32": {"code": 2000, "arena": 4096, "stack": 400, "instructions": 650_000},
    "int8": {"code": 2320, "arena": 1056, "stack": 400, "instructions": 500_000},
}
# Images that may be seen as another digit.
ALLOWED = {"f32": 0, "int8": 1}
# What a function of the C library is taken to need, of which the compiler says nothing.
LIBRARY_STACK = 32

MAIN = """
#include "digits.h"
#include "rewire/examples/board/board.h"
#include "images.h"

static void line(const char *name, uint32_t number) {
  board_write(name);
  board_write(" ");
  board_write_number(number);
  board_write("\\n");
}

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


def code_bytes(text, objects):
    """Bytes of code that the linker took from these objects, by its map."""
    used = text[text.index("Linker script and memory map"):]  # before it stands what was left out
    sizes = re.findall(r"^ \.text\S*\s+0x[0-9a-f]+\s+(0x[0-9a-f]+) (\S+)$", used, re.M)
    names = {str(each) for each in objects}
    return sum(int(size, 16) for size, name in sizes if name in names)


def build(tools, folder, level, precision):
    """Compiles the network into a program for the board; returns it, the bytes of arena and code, and the stack that the header states."""
    told = digits.write_source(tools, folder, precision)
    (folder / "main.c").write_text(MAIN)
    board = [ROOT / "examples/board" / name for name in ("board.c", "startup.c")]
    objects = {}
    for source in [*digits.KERNELS, *board, folder / "digits.c", folder / "main.c"]:
        objects[source] = folder / (source.stem + ".o")
        digits.run(*ARM, level, "-ffunction-sections", "-fdata-sections", "-fcallgraph-info=su", "-Wall", "-Werror", f"-I{ROOT}/include",
                   f"-I{folder}", "-c", source, "-o", objects[source])
    elf, listing = folder / "digits.elf", folder / "digits.map"
    digits.run(*ARM, "-nostartfiles", "--specs=nano.specs", "-Wl,--gc-sections", f"-Wl,-Map={listing}", "-T",
               ROOT / "examples/board/mps2-an386.ld", *objects.values(), "-lm", "-o", elf)
    code = code_bytes(listing.read_text(), [objects[each] for each in [*digits.KERNELS, folder / "digits.c"]])
    stack = digits.emit(tools, folder, "--stack-usage", folder, "--library-stack", LIBRARY_STACK)["stack_bytes"]
    if f"#define DIGITS_STACK_BYTES {stack}\n" not in (folder / "digits.h").read_text():
        raise SystemExit("the header does not state the stack")
    return elf, told["arena_bytes"], code, stack


def emulate(elf):
    """What the program writes, by the first word of each line."""
    # qemu writes what semihosting asks for to its errors
    out = digits.run("qemu-system-arm", "-M", "mps2-an386", "-nographic", "-monitor", "none", "-serial", "none", "-semihosting-config",
                     "enable=on,target=native", "-icount", "shift=0", "-kernel", elf, errors=subprocess.STDOUT)
    found = {}
    for line in out.splitlines():
        name, number = line.split()
        found.setdefault(name, []).append(int(number))
    return found


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
                elf, arena, code, deepest_stack = build(tools, folder, level, precision)
                found = emulate(elf)
            figures = {"code": code, "arena": arena, "stack": found["stack"][0], "stack at most": deepest_stack,
                       "instructions": found["ticks"][0] * 40}
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
