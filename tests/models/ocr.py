#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Renders lines of text, has examples/ocr and the reference pipeline read them, and compares line by line.

    ocr.py --bin build/release/bin --cases CASES [--keep FOLDER]

The reference is the rapidocr-onnxruntime package: the same networks in ONNX Runtime, with that package's own cutting
of lines, which may tilt a box by a degree where ours are upright. Exits with 1 when fewer than 20 lines are the same.
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile

import onnx
from PIL import Image, ImageDraw, ImageFont
from rapidocr_onnxruntime import RapidOCR

import check

NEEDED = 20
LINES = """The quick brown fox jumps over
the lazy dog near the river bank.
Invoice 2024-1187, due 31 March
Total amount: 1,284.50 EUR
Please ship to 42 Baker Street
Room 7B, third floor, left door
Flight LH 1234 departs at 18:45
Boarding gate C17 closes early
Serial number: ZX-99-4410-K
Keep refrigerated below 5 degrees
Best before end of October
Registers hold sixteen bytes
Kernels write where they are told
Every output lands in its place
Batch size 16, sequence 128
Error rate fell to 0.38 percent
Call us on 555 0199 today
Open Monday to Friday, 9 to 5
Copyright notice on last page
Chapter 12: Control flow
Answers are on page 314
Mind the gap between the trains
Water boils at 100 degrees
A stitch in time saves nine""".splitlines()


def render(path):
    size, step = 40, 88  # smaller, the networks lose spaces: both pipelines then, but not always the same ones
    font = ImageFont.load_default(size=size)
    page = Image.new("RGB", (27 * size, step * len(LINES) + size), "white")
    draw = ImageDraw.Draw(page)
    for number, line in enumerate(LINES):
        draw.text((size, 30 + step * number), line, fill=(20, 20, 30), font=font)
    page.save(path)


def write_characters(model, path):
    """The recognizer's alphabet stands in its metadata, a character a line."""
    metadata = {entry.key: entry.value for entry in onnx.load(model).metadata_props}
    path.write_text(metadata["character"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", type=pathlib.Path, required=True, help="folder of vm-compile and ocr")
    parser.add_argument("--cases", type=pathlib.Path, required=True, help="what reference.py wrote")
    parser.add_argument("--keep", type=pathlib.Path, help="where to leave page.png, det.rwx, rec.rwx, characters.txt")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.keep or pathlib.Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        render(folder / "page.png")
        write_characters(options.cases / "ocr_rec" / "model.onnx", folder / "characters.txt")
        for part in ("det", "rec"):
            check.call([options.bin / "vm-compile", options.cases / f"ocr_{part}" / "model.onnx",
                        "-o", folder / f"{part}.rwx"])
        ours = check.call([options.bin / "ocr", folder / "page.png", "--detector", folder / "det.rwx",
                           "--recognizer", folder / "rec.rwx", "--characters", folder / "characters.txt"]).splitlines()
        found, _ = RapidOCR()(str(folder / "page.png"))
    theirs = [text for _, text, _ in found]
    same = sum(a == b for a, b in zip(ours, theirs)) if len(ours) == len(theirs) else 0
    for a, b in zip(ours, theirs):
        print(f"{'same  ' if a == b else 'DIFFER'} {a}" + ("" if a == b else f"   (reference: {b})"))
    right = sum(a == b for a, b in zip(ours, LINES)), sum(a == b for a, b in zip(theirs, LINES))
    print(f"{len(LINES)} lines: {len(ours)} found, reference {len(theirs)}; {same} read the same;"
          f" right: ours {right[0]}, reference {right[1]}")
    return 0 if same >= NEEDED else 1


if __name__ == "__main__":
    sys.exit(main())
