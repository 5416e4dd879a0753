#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""processors.py BUILD: examples/digits as C source for other processors than the machine's.

Compiles the network as docs/aot.md says, float32 and int8, and runs it on all images: AArch64, ARMv7 and RISC-V of 32 bits under
qemu-user, WebAssembly in wasmtime. Fails if an image is seen as another digit than ONNX Runtime sees (examples/digits/expected.npy);
one image may differ in int8. A processor whose compiler or emulator is missing is skipped by name. Needs
third_party/install.sh processors, and for WebAssembly the environment of tests/compiler/aot/requirements/wasmtime.txt:

    tests/support/environments.py --run tests/compiler/aot/requirements/wasmtime.txt tests/compiler/aot/processors.py build/release
"""
import argparse
import dataclasses
import pathlib
import shutil
import tempfile

import digits

MAIN = """
#include "digits.h"
#include "images.h"

void write_text(const char *text, int length);

int main(void) {
  int i;
  for (i = 0; i < IMAGES; ++i) {
    float scores[1][10];
    char line[2];
    int k, best = 0;
    if (digits_main((const float (*)[1][8][8])(images + 64 * i), scores) != 0) return 1;
    for (k = 1; k < 10; ++k) best = scores[0][k] > scores[0][best] ? k : best;
    line[0] = (char)('0' + best);
    line[1] = '\\n';
    write_text(line, 2);
  }
  return 0;
}
"""
HOSTED = """
#include <stdio.h>
void write_text(const char *text, int length);
void write_text(const char *text, int length) { fwrite(text, 1, (unsigned)length, stdout); }
"""
# Without an operating system's C library: Linux's calls write and exit, which qemu-user answers.
BARE_RISCV = """
int main(void);
void write_text(const char *text, int length);
void _start(void);

static long call(long number, long a, long b, long c) {
  register long a0 __asm__("a0") = a;
  register long a1 __asm__("a1") = b;
  register long a2 __asm__("a2") = c;
  register long a7 __asm__("a7") = number;
  __asm__ volatile("ecall" : "+r"(a0) : "r"(a1), "r"(a2), "r"(a7) : "memory");
  return a0;
}
void write_text(const char *text, int length) { call(64, 1, (long)text, length); }
void _start(void) {
  call(93, main(), 0, 0);
  for (;;) {
  }
}
"""


@dataclasses.dataclass
class Processor:
    name: str
    compiler: list
    runner: list  # the command in front of the program; empty: wasmtime
    system: str = HOSTED
    libraries: tuple = ("-lm",)


# Where picolibc's linker script puts a program that qemu-user loads.
MEMORY = ["-Wl,--defsym=__flash=0x100000,--defsym=__flash_size=0x800000,--defsym=__ram=0x1000000,--defsym=__ram_size=0x800000"]
PROCESSORS = [
    Processor("aarch64", ["aarch64-linux-gnu-gcc", "-static"], ["qemu-aarch64"]),
    Processor("armv7", ["arm-linux-gnueabihf-gcc", "-static"], ["qemu-arm"]),
    Processor("riscv32", ["riscv64-unknown-elf-gcc", "-march=rv32imafc", "-mabi=ilp32f", "--specs=picolibc.specs", "-nostartfiles", *MEMORY],
              ["qemu-riscv32"], BARE_RISCV),
    Processor("wasm32", ["clang-14", "--target=wasm32-wasi", "-Wl,--strip-all"], []),
]


def run_in_wasmtime(program):
    """What the program writes, without leave to open files."""
    import wasmtime

    engine = wasmtime.Engine()
    linker = wasmtime.Linker(engine)
    linker.define_wasi()
    store = wasmtime.Store(engine)
    with tempfile.TemporaryDirectory() as folder:
        written = pathlib.Path(folder) / "written"
        wasi = wasmtime.WasiConfig()
        wasi.stdout_file = str(written)
        store.set_wasi(wasi)
        start = linker.instantiate(store, wasmtime.Module.from_file(engine, str(program))).exports(store)["_start"]
        try:
            start(store)
        except wasmtime.ExitTrap as end:
            if end.code:
                raise SystemExit(f"the program ends with {end.code}") from end
        return written.read_text()


def missing(processor):
    """What is needed to build and run for it and is not there; None if all is."""
    for command in (processor.compiler[0], *processor.runner[:1]):
        if shutil.which(command) is None:
            return command
    if not processor.runner:
        try:
            import wasmtime  # noqa: F401
        except ImportError:
            return "the Python package wasmtime"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    tools = parser.parse_args().build.resolve() / "bin"
    expected = digits.expected_digits()
    faults = []
    for precision, allowed in (("f32", 0), ("int8", 1)):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            digits.write_images(folder)
            digits.write_source(tools, folder, precision)
            (folder / "main.c").write_text(MAIN)
            for processor in PROCESSORS:
                absent = missing(processor)
                if absent is not None:
                    print(f"{processor.name} {precision}: SKIPPED: {absent} is not there", flush=True)
                    continue
                (folder / "system.c").write_text(processor.system)
                program = folder / f"digits.{processor.name}"
                digits.run(*processor.compiler, "-std=c99", "-O2", "-ffunction-sections", "-fdata-sections", "-Wall", "-Werror", "-Wl,--gc-sections",
                           f"-I{digits.ROOT}/include", f"-I{folder}", folder / "digits.c", folder / "main.c", folder / "system.c", *digits.KERNELS,
                           *processor.libraries, "-o", program)
                written = digits.run(*processor.runner, program) if processor.runner else run_in_wasmtime(program)
                seen = [int(line) for line in written.split()]
                right = sum(a == b for a, b in zip(seen, expected))
                print(f"{processor.name} {precision}: {right} of {len(expected)} as expected, {program.stat().st_size:,} B of program", flush=True)
                if len(seen) != len(expected) or right < len(expected) - allowed:
                    faults.append(f"{processor.name} {precision}: {right} of {len(expected)} images are seen as expected")
    raise SystemExit("\n".join(faults) or 0)


if __name__ == "__main__":
    main()
