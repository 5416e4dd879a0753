# SPDX-License-Identifier: Apache-2.0
"""Programs for a Cortex-M4 without an operating system, as docs/aot.md builds them for the board of examples/board, and the emulator that runs them.

They need third_party/install.sh boards.
"""
import re
import subprocess

import digits

ROOT = digits.ROOT
BOARD = [ROOT / "examples/board" / name for name in ("board.c", "startup.c")]
ARM = ["arm-none-eabi-gcc", "-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16"]
# What a function of the C library is taken to need, of which the compiler says nothing.
LIBRARY_STACK = 32
INSTRUCTIONS_A_TICK = 40  # as board.h has it

# For a main.c: a number with its name.
WRITE_LINE = """
#include "rewire/examples/board/board.h"

static void line(const char *name, uint32_t number) {
  board_write(name);
  board_write(" ");
  board_write_number(number);
  board_write("\\n");
}
"""


def code_bytes(text, objects):
    """Bytes of code that the linker took from these objects, by its map."""
    used = text[text.index("Linker script and memory map"):]  # before it stands what was left out
    sizes = re.findall(r"^ \.text\S*\s+0x[0-9a-f]+\s+(0x[0-9a-f]+) (\S+)$", used, re.M)
    names = {str(each) for each in objects}
    return sum(int(size, 16) for size, name in sizes if name in names)


def link(folder, level, sources, counted, options=()):
    """A program of these sources and those of the board; returns it, and the bytes of code of the sources in `counted`."""
    objects = {}
    for i, source in enumerate([*sources, *BOARD]):
        objects[source] = folder / f"{i}-{source.stem}.o"
        digits.run(*ARM, level, "-ffunction-sections", "-fdata-sections", *options, f"-I{ROOT}/include", f"-I{folder}", "-c", source, "-o",
                   objects[source])
    elf, listing = folder / "program.elf", folder / "program.map"
    digits.run(*ARM, "-nostartfiles", "--specs=nano.specs", "-Wl,--gc-sections", f"-Wl,-Map={listing}", "-T",
               ROOT / "examples/board/mps2-an386.ld", *objects.values(), "-lm", "-o", elf)
    return elf, code_bytes(listing.read_text(), [objects[each] for each in counted])


def build(tools, folder, level, main, name="digits"):
    """The program of NAME.c, which vm-aot has made in the folder, and this main.c; returns it, the bytes of code, and the stack that the header states."""
    source = folder / f"{name}.c"
    (folder / "main.c").write_text(main)
    elf, code = link(folder, level, [*digits.KERNELS, source, folder / "main.c"], [*digits.KERNELS, source],
                     ["-std=c99", "-fcallgraph-info=su", "-Wall", "-Werror"])
    stack = digits.emit(tools, folder, "--stack-usage", folder, "--library-stack", LIBRARY_STACK, name=name)["stack_bytes"]
    if f"#define {name.upper()}_STACK_BYTES {stack}\n" not in (folder / f"{name}.h").read_text():
        raise SystemExit("the header does not state the stack")
    return elf, code, stack


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
