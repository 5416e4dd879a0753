#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""page.py BUILD: runs the commands with which docs/aot.md makes a program of a model, as they stand there.

The model is examples/digits, and the program sees its images. Fails if a command fails or an image is seen as another digit than
ONNX Runtime sees. Needs the targets vm-compile, vm-aot and rewire_kernels_embedded.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import digits
import processors

COMMANDS = ("vm-compile model.onnx", "vm-aot model.rwx", "cc ")


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    lines = [line.strip() for line in (digits.ROOT / "docs/aot.md").read_text().splitlines() if line.startswith("    ")]
    commands = [line.split("#")[0] for line in lines if line.startswith(COMMANDS)]
    if [word for word in COMMANDS if not any(line.startswith(word) for line in commands)]:
        raise SystemExit(f"docs/aot.md lacks one of its commands: {', '.join(COMMANDS)}")
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "build").mkdir()
        (folder / "build/release").symlink_to(build)
        (folder / "include").symlink_to(digits.ROOT / "include")
        shutil.copy(digits.ROOT / "examples/digits/digits.onnx", folder / "model.onnx")
        digits.write_images(folder)
        (folder / "main.c").write_text(processors.HOSTED + processors.MAIN.replace("digits", "model"))
        path = f"{build / 'bin'}:{os.environ['PATH']}"
        for command in [*commands, "./a.out"]:
            done = subprocess.run(command, shell=True, cwd=folder, env={**os.environ, "PATH": path}, capture_output=True, text=True, timeout=170)
            if done.returncode:
                raise SystemExit(f"docs/aot.md: {command}\n{done.stderr[-3000:]}")
    seen = [int(line) for line in done.stdout.split()]
    print(f"docs/aot.md: {len(commands)} commands; {len(seen)} images seen")
    raise SystemExit(0 if seen == digits.expected_digits() else "docs/aot.md: the program sees other digits than ONNX Runtime")


if __name__ == "__main__":
    main()
