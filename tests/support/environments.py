#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the virtual environments that hold what tests compare with (peers, example models), once each, under a cache
directory outside the source tree.

    environments.py REQUIREMENTS...      files such as tests/tvm/requirements/tvm-ffi.txt

    environments.py --run REQUIREMENTS SCRIPT [ARGUMENT...]      makes one and runs a script in it

    environments.py --python REQUIREMENTS      prints the path of one's Python

Prints one line per environment. Exits with 1 when one could not be made, after trying the others. One whose Python the
machine lacks is left out; when that holds for all, or the package index does not answer, the exit status is 77.
"""

import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77


class NoPython(RuntimeError):
    """The machine lacks the Python that an environment is made of."""


def environment(requirements):
    """Where the environment lives; another list of requirements gives another directory."""
    base = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    cache = pathlib.Path(os.environ.get("REWIRE_TEST_CACHE") or pathlib.Path(base) / "rewire")
    requirements = pathlib.Path(requirements).resolve()
    digest = hashlib.sha256(requirements.read_bytes()).hexdigest()[:12]
    return cache / requirements.parent.parent.name / f"{requirements.stem}-{digest}"


def python_of(requirements):
    return environment(requirements) / "bin" / "python"


def python_version(requirements):
    """The version that the environment's wheels are for: the first line of its requirements says it."""
    first = pathlib.Path(requirements).read_text().splitlines()[0]
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
    raise NoPython(f"no Python {version} with venv on PATH or under {pyenv}; install one")


def is_ready(requirements):
    return (environment(requirements) / "ready").exists()


def make(requirements):
    """Makes one environment; raises RuntimeError with pip's last lines."""
    target = environment(requirements)
    if is_ready(requirements):
        return
    shutil.rmtree(target, ignore_errors=True)
    target.parent.mkdir(parents=True, exist_ok=True)
    pip = [target / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    # The lists are complete: what the packages ask for beyond them is for uses that no test has.
    steps = [
        [find_python(python_version(requirements)), "-m", "venv", target],
        pip + ["--no-deps", "-r", requirements],
    ]
    for step in steps:
        done = subprocess.run(step, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            tail = "\n".join((done.stdout + done.stderr).strip().splitlines()[-5:])
            raise RuntimeError(f"{' '.join(map(str, step))} failed:\n{tail}")
    (target / "ready").touch()


def index_answers():
    """Whether the package index gives anything at all."""
    with tempfile.TemporaryDirectory() as folder:
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--retries", "1", "--timeout", "10"]
        command = pip + ["download", "--quiet", "--no-deps", "--dest", folder, "typing_extensions==4.12.2"]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0


def main(files):
    failed, without_python = 0, 0
    for requirements in files:
        name = pathlib.Path(requirements).stem
        try:
            make(requirements)
            print(f"{name}: {environment(requirements)}")
        except (RuntimeError, OSError) as error:
            failed += 1
            without_python += isinstance(error, NoPython)
            print(f"{name}: FAILED: {error}")
    if failed == without_python < len(files):
        return 0
    if failed > without_python and index_answers():
        return 1
    print("skipped: " + ("no such Python" if failed == without_python else "the package index does not answer"))
    return SKIPPED


def run(requirements, command):
    """Replaces this process by the environment's Python. -B: no compiled files beside the scripts."""
    make(requirements)
    python = str(python_of(requirements))
    os.execv(python, [python, "-B", *command])


if __name__ == "__main__":
    if sys.argv[1:2] in ([], ["-h"], ["--help"]):
        print(__doc__)
        sys.exit(0 if sys.argv[1:] else 2)
    if sys.argv[1:2] == ["--run"]:
        run(sys.argv[2], sys.argv[3:])
    if sys.argv[1:2] == ["--python"]:
        print(python_of(sys.argv[2]))
        sys.exit(0)
    sys.exit(main(sys.argv[1:]))
