# SPDX-License-Identifier: Apache-2.0
"""What the tests of all engines share: models that they run, a cache of compiled models of their own, and the tiny models of tests/python."""

import pathlib
import sys

import numpy
import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
import example_model  # noqa: E402


@pytest.fixture(scope="session", autouse=True)
def cache_of_models(tmp_path_factory):
    """Compiled models go to a folder of this run, also those of worker processes."""
    import os

    os.environ["REWIRE_MODEL_CACHE"] = str(tmp_path_factory.mktemp("models"))
    return os.environ["REWIRE_MODEL_CACHE"]


@pytest.fixture(scope="session")
def classifier(tmp_path_factory):
    """The path of the model of the recipes: features [rows, 4] to scores [rows, 3]."""
    path = tmp_path_factory.mktemp("classifier") / "model.onnx"
    example_model.write(path)
    return str(path)


@pytest.fixture
def features():
    return numpy.random.default_rng(1).standard_normal((2000, 4), dtype=numpy.float32)
