#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""board.py BUILD: examples/digits as C source on an emulated Cortex-M4 without an operating system.

Compiles the network as docs/aot.md says, for the board of examples/board, and runs it on all images under qemu-system-arm.
Fails if an image is seen as another digit than ONNX Runtime sees (examples/digits/expected.npy), or if the program is larger,
slower, or needs more memory than LIMITS allow. Prints the figures. Needs third_party/install.sh boards.
"""
import argparse
import array
import ast
import json
import pathlib
import re
import struct
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
PASSES = ["pack-onednn", "winograd"]
ARM = ["arm-none-eabi-gcc", "-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16", "-std=c99"]
# Bytes, and instructions of one image. Each is a little above what GCC 12.2 gives, so that growth is seen.
LIMITS = {"code": 2200, "arena": 5120, "stack": 400, "instructions": 700_000}

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


def run(*command, errors=subprocess.PIPE):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=errors, text=True, timeout=170)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command[:4]))} ...: exit {done.returncode}\n{(done.stderr or '')[-3000:]}{done.stdout[-1000:]}")
    return done.stdout


def read_floats(path):
    """The shape and the elements of an .npy file."""
    data = path.read_bytes()
    begin = 10 + struct.unpack("<H", data[8:10])[0]
    shape = ast.literal_eval(data[10:begin].decode())["shape"]
    return shape, array.array("f", data[begin:])


def code_bytes(text, objects):
    """Bytes of code that the linker took from these objects, by its map."""
    used = text[text.index("Linker script and memory map"):]  # before it stands what was left out
    sizes = re.findall(r"^ \.text\S*\s+0x[0-9a-f]+\s+(0x[0-9a-f]+) (\S+)$", used, re.M)
    names = {str(each) for each in objects}
    return sum(int(size, 16) for size, name in sizes if name in names)


def build(tools, folder, level):
    """Compiles the network into a program for the board; returns it, the arena's bytes and the code's."""
    run(tools / "vm-compile", ROOT / "examples/digits/digits.onnx", "--dim", "N=1",
        *[word for name in PASSES for word in ("--disable-pass", name)], "-o", folder / "digits.rwx")
    told = json.loads(run(tools / "vm-aot", folder / "digits.rwx", "-o", folder / "digits.c", "--prefix", "digits", "--json"))
    (folder / "main.c").write_text(MAIN)
    kernels = sorted(ROOT.glob("kernels/embedded/*.c")) + sorted(ROOT.glob("kernels/embedded/*/*.c"))
    board = [ROOT / "examples/board" / name for name in ("board.c", "startup.c")]
    objects = {}
    for source in [*kernels, *board, folder / "digits.c", folder / "main.c"]:
        objects[source] = folder / (source.stem + ".o")
        run(*ARM, level, "-ffunction-sections", "-fdata-sections", "-Wall", "-Werror", f"-I{ROOT}/include", f"-I{folder}", "-c", source,
            "-o", objects[source])
    elf, listing = folder / "digits.elf", folder / "digits.map"
    run(*ARM, "-nostartfiles", "--specs=nano.specs", "-Wl,--gc-sections", f"-Wl,-Map={listing}", "-T", ROOT / "examples/board/mps2-an386.ld",
        *objects.values(), "-lm", "-o", elf)
    return elf, told["arena_bytes"], code_bytes(listing.read_text(), [objects[each] for each in [*kernels, folder / "digits.c"]])


def emulate(elf):
    """What the program writes, by the first word of each line."""
    out = run("qemu-system-arm", "-M", "mps2-an386", "-nographic", "-monitor", "none", "-serial", "none", "-semihosting-config",
              "enable=on,target=native", "-icount", "shift=0", "-kernel", elf, errors=subprocess.STDOUT)  # qemu writes what semihosting asks for to its errors
    found = {}
    for line in out.splitlines():
        name, number = line.split()
        found.setdefault(name, []).append(int(number))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    tools = parser.parse_args().build.resolve() / "bin"
    (count, *_), images = read_floats(ROOT / "examples/digits/images.npy")
    (_, classes), expected = read_floats(ROOT / "examples/digits/expected.npy")
    digits = [max(range(classes), key=lambda k: expected[i * classes + k]) for i in range(count)]
    faults = []
    for level in ("-Os", "-O3"):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            pixels = ",\n".join(",".join(f"{value:.9g}f" if "." in f"{value:.9g}" else f"{value:.9g}.0f" for value in images[i * 64:(i + 1) * 64])
                                for i in range(count))
            (folder / "images.h").write_text(f"#define IMAGES {count}\nstatic const float images[IMAGES * 64] = {{\n{pixels}\n}};\n")
            elf, arena, code = build(tools, folder, level)
            found = emulate(elf)
        figures = {"code": code, "arena": arena, "stack": found["stack"][0], "instructions": found["ticks"][0] * 40}
        right = sum(a == b for a, b in zip(found["digit"], digits))
        print(f"{level}: {right} of {count} as expected; " + ", ".join(f"{name} {value:,}" for name, value in figures.items()), flush=True)
        if found["digit"] != digits:
            faults.append(f"{level}: {right} of {count} images are seen as expected")
        # The smallest code and the fastest one are two builds.
        for name in ("code", "arena", "stack") if level == "-Os" else ("instructions",):
            if figures[name] > LIMITS[name]:
                faults.append(f"{level}: {name} {figures[name]:,}, at most {LIMITS[name]:,} expected")
    raise SystemExit("\n".join(faults) or 0)


if __name__ == "__main__":
    main()
