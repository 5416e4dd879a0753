# SPDX-License-Identifier: Apache-2.0
"""python -m rewire: the tools, without a second parser of their options."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
DIGITS = ROOT / "examples/digits"
TOOLS = {"compile": "vm-compile", "run": "vm-run", "inspect": "vm-inspect", "debug": "vm-debug"}


def rewire(folder, *words, text=None):
    return subprocess.run([sys.executable, "-m", "rewire", *map(str, words)], cwd=folder, input=text or "", capture_output=True,
                          text=True, check=False)


def test_a_model_from_compiling_to_its_page(tmp_path):
    made = rewire(tmp_path, "compile", DIGITS / "digits.onnx", "-o", "digits.rwx", "--max-dim", "N=8")
    assert made.returncode == 0 and "wrote digits.rwx" in made.stdout, made.stderr
    done = rewire(tmp_path, "run", "digits.rwx", "--random", "--dim", "N=2")
    assert done.returncode == 0 and "probabilities" in done.stdout, done.stderr
    done = rewire(tmp_path, "inspect", "digits.rwx")
    assert done.returncode == 0 and "image" in done.stdout, done.stderr
    done = rewire(tmp_path, "report", "digits.rwx", "--random", "--dim", "N=2")
    assert done.returncode == 0 and "<html" in (tmp_path / "digits.html").read_text()[:200].lower(), done.stderr
    done = rewire(tmp_path, "report", "digits.rwx", "--random", "--dim", "N=2", "--report", "mine.html")
    assert done.returncode == 0 and (tmp_path / "mine.html").exists(), done.stderr
    done = rewire(tmp_path, "debug", "digits.rwx", "--random", "--dim", "N=2", text="start\nnext\n")
    assert done.returncode == 0 and "main" in done.stdout, done.stderr


def test_the_wheel_has_a_command_that_is_the_module():
    scripts = re.search(r"^\[project\.scripts\]\n(.*?)\n\n", (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.M | re.S)
    (entry,) = scripts.group(1).splitlines()
    module, function = re.fullmatch(r'rewire = "(.*):(.*)"', entry).groups()
    done = subprocess.run([sys.executable, "-c", f"import sys; from {module} import {function}; sys.exit({function}(['--version']))"],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stdout.startswith("rewire "), done.stderr


@pytest.mark.parametrize("command", TOOLS)
def test_options_are_the_tools(command, tmp_path):
    program = pathlib.Path(os.environ.get("REWIRE_BUILD", "")) / "bin" / TOOLS[command]
    if not program.exists():
        pytest.skip(f"{TOOLS[command]} is not built")
    theirs = subprocess.run([program, "--help"], capture_output=True, text=True, check=True).stdout
    assert rewire(tmp_path, command, "--help").stdout == theirs


@pytest.mark.parametrize("words, code, text", [
    ([], 0, "usage: python -m rewire COMMAND"),
    (["--help"], 0, "usage: python -m rewire COMMAND"),
    (["--version"], 0, "rewire "),
    (["complie"], 11, "rewire: error: there is no command 'complie'; did you mean 'compile'"),
    (["run", "none.rwx"], 12, "vm-run: error: cannot open 'none.rwx'"),
    (["run", "--randon"], 11, "did you mean '--random'"),
    (["report"], 11, "FILE is required"),
])
def test_answers_and_mistakes(words, code, text, tmp_path):
    done = rewire(tmp_path, *words)
    assert done.returncode == code and text in done.stdout + done.stderr, done.stderr
    assert "Traceback" not in done.stderr
