#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Shows what device code for CUDA was compiled ahead: in every form machine code for each generation of GPUs, and PTX.

usage: device_images.py SOURCES IMAGES   kernels/device/code, and the folder of the .fatbin files

Exits with 77, which counts as skipped, where Rewire was built without nvcc.
"""
import argparse
import pathlib
import re
import struct
import sys

import device_code

# As nvcc 13 writes a fatbin: u32 magic, u16 version, u16 bytes of this header, u64 bytes that follow. An entry: u16 kind,
# u16 version, u32 bytes of its header, u64 bytes of its content, then at byte 28 a u32 with the architecture.
MAGIC = 0xBA55ED50
KINDS = {1: "PTX", 2: "cubin"}


def entries(image):
    """("cubin", 90, content) and so on."""
    magic, _, header, size = struct.unpack_from("<IHHQ", image)
    if magic != MAGIC or header + size != len(image):
        raise ValueError("it is no fatbin")
    at = header
    while at < len(image):
        kind, _, header, size = struct.unpack_from("<HHIQ", image, at)
        (architecture,) = struct.unpack_from("<I", image, at + 28)
        yield KINDS.get(kind, kind), architecture, image[at + header : at + header + size]
        at += header + size


def wrong_in(image, source):
    """What the image lacks."""
    found = {(kind, architecture): content for kind, architecture, content in entries(image)}
    wanted = {("cubin", int(each.removeprefix("sm_"))) for each in device_code.ARCHITECTURES} | {("PTX", 80)}
    lacks = [f"{kind} for {architecture}" for kind, architecture in sorted(wanted - set(found))]
    # nvcc compresses some parts; this one it does not.
    symbols = found.get(("cubin", 80), b"")
    kernels = re.findall(r"^KERNEL\((\w+)\)", source, re.MULTILINE)
    return lacks + [name for name in kernels if b"\0" + name.encode() + b"\0" not in symbols]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", type=pathlib.Path, help="kernels/device/code")
    parser.add_argument("images", type=pathlib.Path, help="the folder of the .fatbin files")
    options = parser.parse_args()
    sources, images = options.sources, options.images
    found = {path.stem: path for path in images.glob("*.fatbin")}
    if not found:
        print("skipped: Rewire was built without nvcc")
        return 77
    expected = sum(map(len, device_code.PROGRAMS.values()))
    failed = [f"{len(found)} images, expected {expected}"] if len(found) != expected else []
    for name, image in found.items():
        lacks = wrong_in(image.read_bytes(), (sources / f"{name.split('_')[0]}.h").read_text())
        if lacks:
            failed.append(f"{name} lacks {', '.join(lacks)}")
    print("\n".join(failed))
    print(f"{len(found)} images, {sum(path.stat().st_size for path in found.values()):,} bytes, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
