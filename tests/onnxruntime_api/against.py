#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the test of ONNX Runtime's C interface against ONNX Runtime's own library, and against Rewire's.

    against.py --build BUILD      in an environment of requirements/onnxruntime.txt
"""
import argparse
import importlib.util
import pathlib
import subprocess
import sys


def library_of_onnxruntime():
    """The library in the installed package, which need not be imported."""
    spec = importlib.util.find_spec("onnxruntime")
    if spec is None or spec.origin is None:
        sys.exit("against.py: the package onnxruntime is not installed: run it by tests/support/environments.py")
    found = sorted(pathlib.Path(spec.origin).parent.glob("capi/libonnxruntime.so*"))
    if not found:
        sys.exit(f"against.py: {spec.origin} has no capi/libonnxruntime.so beside it")
    return found[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True, help="the folder of a build")
    build = parser.parse_args().build
    program = build / "tests/bin/onnxruntime_api_test"
    failed = False
    for library in (library_of_onnxruntime(), build / "lib/onnxruntime/libonnxruntime.so.1"):
        print(library.name, flush=True)
        failed |= subprocess.run([program, library.resolve()], check=False, timeout=300).returncode != 0
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
