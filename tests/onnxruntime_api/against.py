#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the test of ONNX Runtime's C interface against ONNX Runtime's own library, and against Rewire's, and compares
the failures that it provokes: their codes and texts are equal, except for the texts that differences.def lists.

    against.py --build BUILD      in an environment of requirements/onnxruntime.txt
"""
import argparse
import difflib
import importlib.util
import pathlib
import re
import subprocess
import sys
import tempfile


def library_of_onnxruntime():
    """The library in the installed package, which need not be imported."""
    spec = importlib.util.find_spec("onnxruntime")
    if spec is None or spec.origin is None:
        sys.exit("against.py: the package onnxruntime is not installed: run it by tests/support/environments.py")
    found = sorted(pathlib.Path(spec.origin).parent.glob("capi/libonnxruntime.so*"))
    if not found:
        sys.exit(f"against.py: {spec.origin} has no capi/libonnxruntime.so beside it")
    return found[0]


def transcript(path):
    """(code, call, text) of each failure, in order."""
    return [tuple(line.split("\t", 2)) for line in path.read_text(encoding="utf-8").splitlines()]


def allowed_texts():
    """The calls whose texts may differ."""
    rows = (pathlib.Path(__file__).parent / "differences.def").read_text(encoding="utf-8")
    return set(re.findall(r'^TEXT_DIFFERS\((.*), "[^"]+"\)$', rows, re.MULTILINE))


def compare(theirs, ours, allowed):
    """Sentences of what differs and is not allowed. Calls that only one library's run makes stand behind a difference that
    the test itself asks for, so they have no counterpart."""
    matcher = difflib.SequenceMatcher(a=[row[:2] for row in theirs], b=[row[:2] for row in ours], autojunk=False)
    pairs = [(theirs[block.a + i], ours[block.b + i]) for block in matcher.get_matching_blocks() for i in range(block.size)]
    differing = {one[1] for one, other in pairs if one[2] != other[2]}
    wrong = [f"{one[1]}\n  ONNX Runtime: {one[2]}\n  Rewire:       {other[2]}"
             for one, other in pairs if one[2] != other[2] and one[1] not in allowed]
    wrong += [f"differences.def: the text of {call} does not differ" for call in sorted(allowed - differing)]
    if len(pairs) < 0.9 * len(theirs):
        wrong.append(f"only {len(pairs)} of {len(theirs)} failures have a counterpart")
    return wrong, len(pairs)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True, help="the folder of a build")
    build = parser.parse_args().build
    program = build / "tests/bin/onnxruntime_api_test"
    failed = False
    transcripts = []
    with tempfile.TemporaryDirectory() as folder:
        for library in (library_of_onnxruntime(), build / "lib/onnxruntime/libonnxruntime.so.1"):
            print(library.name, flush=True)
            written = pathlib.Path(folder) / library.name
            done = subprocess.run([program, library.resolve(), written], check=False, timeout=300)
            failed |= done.returncode != 0
            transcripts.append(transcript(written) if written.exists() else [])
    wrong, count = compare(*transcripts, allowed_texts())
    print("\n".join([*wrong, f"{count} failures compared, {len(wrong)} differ"]))
    return 1 if failed or wrong else 0


if __name__ == "__main__":
    sys.exit(main())
