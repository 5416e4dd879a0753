# SPDX-License-Identifier: Apache-2.0
"""docs/start-python.md runs as it stands."""

import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_start_page(tmp_path):
    for name in ["digits.onnx", "images.npy", "labels.npy"]:
        shutil.copy(ROOT / "examples/digits" / name, tmp_path)
    page = [ROOT / "tests/support/run_page.py", ROOT / "docs/start-python.md", tmp_path]
    done = subprocess.run([sys.executable, "-B", *page], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "8 blocks" in done.stdout


def test_its_model_is_what_the_script_writes():
    subprocess.run([sys.executable, "-B", ROOT / "examples/digits/export_onnx.py", "--check"], check=True)
