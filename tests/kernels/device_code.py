#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles the stock kernels for devices by NVIDIA's own NVRTC, which needs no GPU, in every form and for several
generations of GPUs.

usage: device_code.py FOLDER   FOLDER has the sources (kernels/device/code)

Exits with 77, which counts as skipped, where NVRTC is not installed.
"""
import argparse
import ctypes
import ctypes.util
import pathlib
import sys

ARCHITECTURES = ("sm_80", "sm_90", "sm_100")
REALS = ("", "-DREWIRE_F16")
WORDS = ("-DWORD=u8", "-DWORD=ushort", "-DWORD=uint", "-DWORD=ulong")
# As programs.cc compiles them.
PROGRAMS = {"elementwise": REALS, "movement": WORDS, "product": REALS, "window": REALS, "reduction": REALS,
            "quantization": ("",), "integer": ("",), "lines": REALS, "recurrent": REALS,
            "indexing": WORDS, "scatter": ("",), "trees": ("",), "attention": ("",)}


def nvrtc():
    names = [f"libnvrtc.so.{major}" for major in (13, 12)]
    folders = ["", "/usr/local/cuda/lib64/"]
    for name in [folder + name for folder in folders for name in names]:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None


def compiled(library, source, options):
    """The number of bytes of the cubin, and the compiler's words if there is none."""
    program = ctypes.c_void_p()
    library.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"device.cu", 0, None, None)
    list_of = (ctypes.c_char_p * len(options))(*[option.encode() for option in options])
    result = library.nvrtcCompileProgram(program, len(options), list_of)
    size = ctypes.c_size_t()
    library.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(max(size.value, 1))
    library.nvrtcGetProgramLog(program, log)
    if result == 0:
        library.nvrtcGetCUBINSize(program, ctypes.byref(size))
    library.nvrtcDestroyProgram(ctypes.byref(program))
    return (size.value if result == 0 else 0), log.value.decode()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, help="kernels/device/code")
    folder = parser.parse_args().folder
    library = nvrtc()
    if library is None:
        print("skipped: NVRTC is not installed")
        return 77
    programs = {path.stem for path in folder.glob("*.h")} - {"dialect", "arguments", "tiles"}
    if programs != set(PROGRAMS):
        print(f"this script compiles {sorted(PROGRAMS)}, the folder has {sorted(programs)}")
        return 1
    failed = count = 0
    for name, forms in PROGRAMS.items():
        parts = [folder / f"{part}.h" for part in ("arguments", "dialect", "tiles", name)]
        parts.insert(0, folder.parents[1] / "contract" / "scalar_functions.h")
        source = "".join(part.read_text() for part in parts)
        for form in forms:
            for architecture in ARCHITECTURES:
                options = [f"--gpu-architecture={architecture}"] + ([form] if form else [])
                size, log = compiled(library, source, options)
                count += 1
                if size == 0:
                    failed += 1
                    print(f"{name} {form} {architecture}:\n{log}")
    print(f"{count} compilations, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
