# SPDX-License-Identifier: Apache-2.0
"""The package and the Python of every page are clean under mypy --strict and pyright, and wrong calls are told by both."""

import ast
import json
import pathlib
import re
import subprocess
import sys
import textwrap

import pytest
import rewire

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGES = pathlib.Path(rewire.__file__).resolve().parents[1]  # where the checkers find the package
FENCED = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INDENTED = re.compile(r"(?:^(?: {4}.*)?\n)+", re.MULTILINE)

# What pages use and leave to the reader.
GIVEN = {
    "README.md": """
        import torch
        model = torch.nn.Linear(3, 10)
        image = torch.zeros(1, 3, 64, 64)
        """,
    "docs/from-pytorch.md": """
        import torch
        class MyModel(torch.nn.Module): ...  # type: ignore[misc]
        """,
    "docs/python.md": """
        import asyncio
        from typing import Any
        import numpy
        from numpy.typing import NDArray
        import rewire
        pixels = mine = samples = array = numpy.zeros((1, 4), numpy.float32)
        """,
    "docs/serving.md": """
        import numpy
        import rewire
        x = scores = numpy.zeros((1, 4), numpy.float32)
        """,
}
# What is not installed where the tests run. Calls of these are not checked, and all others are.
ABSENT = ["torch"]


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


def is_python(part):
    """An indented part is a script of Python, and no command, that uses the package."""
    try:
        names = {node.id for node in ast.walk(ast.parse(part)) if isinstance(node, ast.Name)}
    except SyntaxError:
        return False
    return not names.isdisjoint({"program", "rewire", "vm"})


def parts_of(page):
    """The Python of a page: fenced blocks of `python`, or else indented parts, as one script; empty if it has none."""
    text = (ROOT / page).read_text()
    parts = FENCED.findall(text) or [textwrap.dedent(part) for part in INDENTED.findall(text)]
    python = [part for part in parts if is_python(part)] if not FENCED.search(text) else parts
    return textwrap.dedent(GIVEN.get(page, "")) + "\n".join(python) if python else ""


# A new page with Python is in by itself. Pages of the integrations need engines: tests/integrations runs those.
PAGES = [page for page in ["README.md", *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))] if parts_of(page)]


def run_mypy(checkers, script):
    settings = script.parent / "mypy.ini"
    settings.write_text("[mypy]\n" + "".join(f"[mypy-{name}.*]\nignore_missing_imports = True\n" for name in ABSENT))
    return subprocess.run(
        [checkers / "mypy", "--strict", "--config-file", settings, "--python-executable", sys.executable,
         "--no-error-summary", "--cache-dir", script.parent / "cache", script],
        capture_output=True, text=True, check=False, cwd=script.parent,
        env={"MYPYPATH": str(PACKAGES), "PATH": str(checkers)})


def run_pyright(checkers, script):
    settings = {"include": [script.name], "extraPaths": [str(PACKAGES)], "typeCheckingMode": "standard",
                "pythonVersion": f"{sys.version_info.major}.{sys.version_info.minor}",
                "reportMissingImports": not any(f"import {name}\n" in script.read_text() for name in ABSENT)}
    (script.parent / "pyrightconfig.json").write_text(json.dumps(settings))
    return subprocess.run([checkers / "basedpyright", "--pythonpath", sys.executable, "--project", script.parent],
                          capture_output=True, text=True, check=False, cwd=script.parent)


CHECKERS = {"mypy": run_mypy, "pyright": run_pyright}


@pytest.mark.parametrize("checker", CHECKERS)
@pytest.mark.parametrize("page", PAGES)
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
