#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the virtual environments that hold each TVM, once, under a cache directory outside the source tree.

    environments.py [NAME...]      default: all of requirements/*.txt

Prints one line per environment. Exits with 1 when one could not be made, after trying the others.
"""

import hashlib
import os
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent


def cache_directory():
    base = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(os.environ.get("REWIRE_TVM_CACHE") or pathlib.Path(base) / "rewire" / "tvm")


def names():
    return sorted(path.stem for path in (HERE / "requirements").glob("*.txt"))


def requirements(name):
    return HERE / "requirements" / f"{name}.txt"


def environment(name):
    """Where the environment lives; another list of requirements gives another directory."""
    digest = hashlib.sha256(requirements(name).read_bytes()).hexdigest()[:12]
    return cache_directory() / f"{name}-{digest}"


def python_of(name):
    return environment(name) / "bin" / "python"


def is_ready(name):
    return (environment(name) / "ready").exists()


def python_version(name):
    """The version that the environment's wheels are for: the first line of its requirements says it."""
    first = requirements(name).read_text().splitlines()[0]
    return first.removeprefix("# python ")


def find_python(version):
    """A Python of that version: from PATH, else from pyenv."""
    found = shutil.which(f"python{version}")
    candidates = [found] if found else []
    pyenv = pathlib.Path(os.environ.get("PYENV_ROOT") or pathlib.Path.home() / ".pyenv")
    candidates += sorted(pyenv.glob(f"versions/{version}.*/bin/python"), reverse=True)
    for candidate in candidates:
        # A pyenv shim exists for versions that are not active, so running it is the only proof.
        probe = subprocess.run([candidate, "-m", "venv", "-h"], capture_output=True, check=False)
        if probe.returncode == 0:
            return candidate
    raise RuntimeError(f"no Python {version} with venv on PATH or under {pyenv}; install one")


def make(name):
    """Makes one environment; raises RuntimeError with pip's last lines."""
    if is_ready(name):
        return
    target = environment(name)
    shutil.rmtree(target, ignore_errors=True)
    target.parent.mkdir(parents=True, exist_ok=True)
    pip = [target / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    # The lists are complete: what the packages ask for beyond them is for frontends that no case uses.
    steps = [[find_python(python_version(name)), "-m", "venv", target], pip + ["--no-deps", "-r", requirements(name)]]
    for step in steps:
        done = subprocess.run(step, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            tail = "\n".join((done.stdout + done.stderr).strip().splitlines()[-5:])
            raise RuntimeError(f"{' '.join(map(str, step))} failed:\n{tail}")
    (target / "ready").touch()


def main(arguments):
    failed = False
    for name in arguments or names():
        try:
            make(name)
            print(f"{name}: {environment(name)}")
        except (RuntimeError, OSError) as error:
            failed = True
            print(f"{name}: FAILED: {error}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
