#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares docs/vm-convert.md with the functions of TVM's runtime that an installed TVM can have its compiled code call.

    environments.py --run requirements/relay-0.19.txt runtime_functions.py

Finds them in TVM's own sources: the names that call_packed gets. Prints the names that the page lacks and those that it
has for nothing; exits with 1 when there are any. That the page is right about which of them Rewire provides is tested
by vm_loader_test, without TVM.
"""

import ast
import importlib.util
import pathlib
import re
import sys

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "vm-convert.md"
CALLS = {"call_packed", "call_packed_lowered", "call_cpacked", "call_cpacked_lowered"}
# What lowers operators; the rest of the package calls its own functions while it compiles.
FOLDERS = ("contrib", "relay", "te", "tir", "topi")


def called_in(path):
    """The names of functions that code of this file makes compiled code call."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        places = []
        if isinstance(node, ast.Call) and node.args:
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            places = node.args[:1] if called in CALLS else []
        elif isinstance(node, ast.List):
            places = node.elts[:1]  # arguments that are collected before the call
        elif isinstance(node, ast.Dict):
            places = node.values  # the name of each operator's function
        for place in places:
            # The name may be one of two: "a" if condition else "b".
            for part in ast.walk(place):
                if isinstance(part, ast.Constant) and str(part.value).startswith("tvm.contrib."):
                    yield part.value


def main():
    package = pathlib.Path(importlib.util.find_spec("tvm").origin).parent
    files = [path for folder in FOLDERS for path in (package / folder).rglob("*.py") if "hexagon" not in path.parts]
    called = {name for path in files for name in called_in(path)}
    listed = set()
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if re.match(r"\| `tvm\.", line):
            listed |= set(re.findall(r"`(tvm\.[\w.+]+)`", line.split("|")[1]))
    for name in sorted(called - listed):
        print(f"{PAGE.name} lacks {name}")
    for name in sorted(listed - called):
        print(f"{PAGE.name} has {name}, which nothing calls")
    print(f"{len(called)} functions in {package}, {len(listed)} on the page")
    return 0 if called and called == listed else 1


if __name__ == "__main__":
    sys.exit(main())
