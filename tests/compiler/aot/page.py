#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""page.py BUILD: runs the commands with which docs/aot.md makes programs of a model, as they stand there.

First the section on a board: its blocks in their order, and what they must print. Then the commands for a program on this machine. There
the model is examples/digits, and the program sees its images. Fails if a command fails or an image is seen as another digit than ONNX
Runtime sees. Needs the targets vm-compile, vm-aot, rewire_kernels_cpu and rewire_kernels_embedded, third_party/install.sh boards, and
a Python with numpy:

    tests/support/environments.py --run tests/compiler/aot/requirements/survey.txt tests/compiler/aot/page.py build/release
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import digits
import processors

PAGE = digits.ROOT / "docs/aot.md"
COMMANDS = ("vm-compile model.onnx", "vm-aot model.rwx", "cc ")


def run_board(environment):
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, digits.ROOT / "tests/support/run_page.py", PAGE, folder]
        done = subprocess.run(command, env=environment, timeout=500)
    if done.returncode:
        raise SystemExit(done.returncode)


def run_here(build, environment):
    lines = [line.strip() for line in PAGE.read_text().splitlines() if line.startswith("    ")]
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
        for command in [*commands, "./a.out"]:
            done = subprocess.run(command, shell=True, cwd=folder, env=environment, capture_output=True, text=True, timeout=170)
            if done.returncode:
                raise SystemExit(f"docs/aot.md: {command}\n{done.stderr[-3000:]}")
    seen = [int(line) for line in done.stdout.split()]
    print(f"docs/aot.md: {len(commands)} commands; {len(seen)} images seen")
    if seen != digits.expected_digits():
        raise SystemExit("docs/aot.md: the program sees other digits than ONNX Runtime")


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    path = [str(build / "bin"), str(pathlib.Path(sys.executable).parent), os.environ["PATH"]]
    environment = {**os.environ, "PATH": ":".join(path), "REWIRE": str(digits.ROOT)}
    run_board(environment)
    run_here(build, environment)


if __name__ == "__main__":
    main()
