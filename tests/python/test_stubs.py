# SPDX-License-Identifier: Apache-2.0
"""The type stubs say what the extension module has."""

import pathlib
import subprocess
import sys

import pytest
import rewire
from rewire._native import _rewire


def test_the_stub_is_that_of_the_module(tmp_path):
    pytest.importorskip("nanobind")
    stub = pathlib.Path(rewire.__file__).parent / "_native" / "_rewire.pyi"
    made = tmp_path / "_rewire.pyi"
    subprocess.run([sys.executable, "-m", "nanobind.stubgen", "-P", "-m", "rewire._native._rewire", "-o", made],
                   check=True, capture_output=True)
    assert made.read_text() == stub.read_text(), "print it again: python -m nanobind.stubgen -P -m rewire._native._rewire -o FILE"


def test_everything_public_is_documented():
    for name in rewire.__all__:
        assert getattr(rewire, name).__doc__, name
    for name in _rewire.VirtualMachine.__dict__:
        if not name.startswith("_"):
            assert getattr(_rewire.VirtualMachine, name).__doc__, name
