# SPDX-License-Identifier: Apache-2.0
"""The package and the scripts of its pages are clean under mypy --strict and pyright, and wrong calls are told by both."""

import json
import pathlib
import re
import subprocess
import sys

import pytest
import rewire

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGES = pathlib.Path(rewire.__file__).resolve().parents[1]  # where the checkers find the package
FENCED = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INDENTED = re.compile(r"(?:^(?: {4}.*)?\n)+", re.MULTILINE)

# What the parts of docs/python.md use and leave to the reader.
GIVEN = """
import asyncio
from typing import Any
import numpy
from numpy.typing import NDArray
import rewire
pixels = mine = samples = array = numpy.zeros((1, 4), numpy.float32)
"""


@pytest.fixture(scope="module")
def checkers():
    """The folder with the programs mypy and basedpyright."""
    requirements = ROOT / "tests/python/requirements/typing.txt"
    tool = ROOT / "tests/support/environments.py"
    made = subprocess.run([sys.executable, tool, requirements], capture_output=True, text=True, check=False)
    if made.returncode == 77:
        pytest.skip("mypy and basedpyright are not there: the package index does not answer")
    assert made.returncode == 0, made.stderr
    found = subprocess.run([sys.executable, tool, "--python", requirements], capture_output=True, text=True, check=True)
    return pathlib.Path(found.stdout.strip()).parent


def parts_of(page):
    """The Python of a page: fenced blocks of `python`, or else indented parts, as one script."""
    text = (ROOT / "docs" / page).read_text()
    fenced = FENCED.findall(text)
    if fenced:
        return "\n".join(fenced)
    parts = [re.sub("^ {4}", "", part, flags=re.MULTILINE) for part in INDENTED.findall(text)]
    python = [part for part in parts if re.search(r"\brewire\.|\bprogram\.|\bvm\.", part) and "pip wheel" not in part]
    assert len(python) >= 5
    return GIVEN + "\n".join(re.sub(r"^ {4}(?=program\.run)", "", part, flags=re.MULTILINE) for part in python)


def run_mypy(checkers, script):
    return subprocess.run(
        [checkers / "mypy", "--strict", "--python-executable", sys.executable, "--no-error-summary",
         "--cache-dir", script.parent / "cache", script],
        capture_output=True, text=True, check=False, cwd=script.parent,
        env={"MYPYPATH": str(PACKAGES), "PATH": str(checkers)})


def run_pyright(checkers, script):
    settings = {"include": [script.name], "extraPaths": [str(PACKAGES)], "typeCheckingMode": "standard",
                "pythonVersion": f"{sys.version_info.major}.{sys.version_info.minor}"}
    (script.parent / "pyrightconfig.json").write_text(json.dumps(settings))
    return subprocess.run([checkers / "basedpyright", "--pythonpath", sys.executable, "--project", script.parent],
                          capture_output=True, text=True, check=False, cwd=script.parent)


CHECKERS = {"mypy": run_mypy, "pyright": run_pyright}


@pytest.mark.parametrize("checker", CHECKERS)
@pytest.mark.parametrize("page", ["own-operators.md", "python.md", "start-python.md"])
def test_the_scripts_of_pages_are_clean(page, checker, checkers, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(parts_of(page))
    done = CHECKERS[checker](checkers, script)
    assert done.returncode == 0, done.stdout + script.read_text()


def test_the_package_is_clean(checkers, tmp_path):
    done = subprocess.run([checkers / "mypy", "--strict", "--python-executable", sys.executable, "--cache-dir", tmp_path,
                           "-p", "rewire"], capture_output=True, text=True, check=False, cwd=ROOT / "python")
    assert done.returncode == 0, done.stdout


WRONG = """
import rewire
program = rewire.load("model.onnx")
program.runn()
rewire.load("model.onnx", threads="2")
rewire.load("model.onnx", dims={"N": "a"})
program.vm().invoke(tmeout=3)
program.memory_bound().bites
rewire.compile("model.onnx").report.kernel_call
for each in program.inputs: each.name.nonsense()
rewire.ParameterSet.from_file(3)
"""


@pytest.mark.parametrize("checker", CHECKERS)
def test_wrong_calls_are_told(checker, checkers, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(WRONG)
    done = CHECKERS[checker](checkers, script)
    lines = {int(number) for number in re.findall(r"script\.py:(\d+)", done.stdout)}
    assert lines >= set(range(4, 12)), done.stdout
