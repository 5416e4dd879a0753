#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds wheels and runs tests/python with each of them in fresh environments of every Python that is found.

usage: wheels.py [--keep DIR] [--only 3.10,3.13]

A Python is found on PATH, beside the one that runs this, and in pyenv's versions. Each of 3.10 and 3.11 gets a wheel of its own;
one wheel of the stable ABI serves 3.12 and all later ones. An environment has the wheel, numpy, pytest, and of the
packages below what has a wheel for that Python; tests of others are skipped by name. Prints a line for each Python.
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PINNED = ROOT / "tests/python/requirements/python.txt"
OPTIONAL = ("ml_dtypes", "onnx", "onnxruntime", "jax")
OLDEST, FIRST_OF_STABLE_ABI = (3, 10), (3, 12)


def pythons():
    """The path of one CPython for each version from OLDEST on, the smallest version first."""
    candidates = [sys.executable]
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        candidates += sorted(str(path) for path in pathlib.Path(folder or ".").glob("python3*"))
    pyenv = pathlib.Path(os.environ.get("PYENV_ROOT", pathlib.Path.home() / ".pyenv"))
    candidates += [str(path) for path in sorted(pyenv.glob("versions/*/bin/python3"))]
    found = {}
    ask = "import sys, venv, ensurepip; print(sys.implementation.name, *sys.version_info[:2])"
    for candidate in candidates:
        if not re.search(r"/python3(\.\d+)?$", candidate):
            continue
        done = subprocess.run([candidate, "-c", ask], capture_output=True, text=True)
        words = done.stdout.split()
        if done.returncode == 0 and words[:1] == ["cpython"]:
            version = tuple(int(word) for word in words[1:])
            if version >= OLDEST:
                found.setdefault(version, candidate)
    return dict(sorted(found.items()))


def run(command, log, **options):
    with open(log, "a", encoding="utf-8") as output:
        done = subprocess.run([str(word) for word in command], stdout=output, stderr=subprocess.STDOUT, **options)
    if done.returncode != 0:
        tail = "\n".join(log.read_text().splitlines()[-30:])
        raise SystemExit(f"wheels.py: {' '.join(str(word) for word in command)} failed, as {log} says:\n{tail}")


def environment(python, folder, log):
    run([python, "-m", "venv", folder], log)
    return folder / "bin/python"


def build_wheel(python, folder, log):
    """The path of the wheel that `pip wheel` makes with this Python."""
    inside = environment(python, folder / "build-env", log)
    run([inside, "-m", "pip", "wheel", "--no-deps", "--wheel-dir", folder / "wheels", ROOT], log)
    (wheel,) = (folder / "wheels").glob("rewire-*.whl")
    return wheel


def pinned(package):
    match = re.search(rf"^{package}==.*$", PINNED.read_text(), re.M)
    return match.group() if match else package


def test_wheel(python, wheel, folder, log):
    """What pytest says at the end, with the wheel in an environment of its own."""
    inside = environment(python, folder / "env", log)
    run([inside, "-m", "pip", "install", wheel, "pytest"], log)
    for package in OPTIONAL:
        with open(log, "a", encoding="utf-8") as output:
            for wanted in (pinned(package), package):
                command = [inside, "-m", "pip", "install", "--only-binary", ":all:", wanted]
                if subprocess.run(command, stdout=output, stderr=subprocess.STDOUT).returncode == 0:
                    break
    clean = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "REWIRE_BUILD", "REWIRE_LIBRARY_PATH")}
    command = [inside, "-B", "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", ROOT / "tests/python"]
    run(command, log, cwd=folder, env=clean)
    lines = log.read_text().splitlines()
    skipped = [line for line in lines if line.startswith("SKIPPED")]
    return [lines[-1], *skipped]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keep", type=pathlib.Path, help="keep wheels, environments and logs in this folder")
    parser.add_argument("--only", help="versions, with commas")
    options = parser.parse_args()
    found = pythons()
    if options.only:
        wanted = [tuple(int(part) for part in version.split(".")) for version in options.only.split(",")]
        found = {version: path for version, path in found.items() if version in wanted}
    # By the names that CMake itself would choose, so that a compiler cache knows the objects of other builds again.
    os.environ.setdefault("CC", "cc")
    os.environ.setdefault("CXX", "c++")
    with tempfile.TemporaryDirectory() as temporary:
        base = (options.keep or pathlib.Path(temporary)).resolve()
        stable = None
        for version, python in found.items():
            folder = base / ".".join(str(part) for part in version)
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            log = folder / "log.txt"
            if version < FIRST_OF_STABLE_ABI or stable is None:
                wheel = build_wheel(python, folder, log)
                stable = wheel if version >= FIRST_OF_STABLE_ABI else None
            else:
                wheel = stable
            said = test_wheel(python, wheel, folder, log)
            print(f"{folder.name}: {wheel.name}, {wheel.stat().st_size / 1e6:.0f} MB: {said[0]}", flush=True)
            for line in said[1:]:
                print(f"  {line}")
    if not found:
        raise SystemExit("wheels.py: no Python from 3.10 on was found")


if __name__ == "__main__":
    main()
