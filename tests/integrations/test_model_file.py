# SPDX-License-Identifier: Apache-2.0
"""Models on a machine: one executable for all processes, made once, and anew when the model has changed."""

import os
import pathlib
import subprocess
import sys
import time

import example_model
import numpy
import onnx
import pytest
import rewire
import tiny_models
from rewire_integrations import BatchModel, executable_of, model_file


@pytest.fixture
def cache(tmp_path, monkeypatch):
    folder = tmp_path / "cache"
    monkeypatch.setenv("REWIRE_MODEL_CACHE", str(folder))
    return folder


def executables(cache):
    return sorted(path.name for path in cache.glob("*.rwx"))


def test_one_of_several_processes_compiles(cache, tmp_path):
    example_model.write(tmp_path / "model.onnx")
    code = "import sys; from rewire_integrations import executable_of; print(executable_of(sys.argv[1]))"
    workers = [subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "model.onnx")], stdout=subprocess.PIPE, text=True)
               for _ in range(4)]
    said = {worker.communicate()[0].strip() for worker in workers}
    assert said == {str(cache / executables(cache)[0])}
    made = cache / executables(cache)[0]
    before = made.stat().st_mtime_ns, made.stat().st_ino
    assert executable_of(tmp_path / "model.onnx") == str(made)
    assert (made.stat().st_mtime_ns, made.stat().st_ino) == before
    assert cache.stat().st_mode & 0o077 == 0


def test_what_has_changed_is_compiled_anew(cache, tmp_path):
    path = tmp_path / "model.onnx"
    example_model.write(path)
    first = executable_of(path)
    assert executable_of(path, dims={"rows": 4}) != first
    assert executable_of(path, max_dims={"rows": 4}) != first
    example_model.write(path, rows=8)
    second = executable_of(path)
    assert second != first and rewire.load(second).inputs[0].shape == (8, 4)
    # A process may still be about to open the first one; an hour later nobody is.
    assert os.path.exists(first)
    old = time.time() - 2 * 3600
    os.utime(first, (old, old))
    example_model.write(path, rows=9)
    executable_of(path)
    assert not os.path.exists(first) and os.path.exists(second)


def test_weights_beside_the_model_count(cache, tmp_path):
    proto, weights = tiny_models.linear(64)
    path = tmp_path / "model.onnx"
    onnx.save(proto, str(path), save_as_external_data=True, all_tensors_to_one_file=True, location="w.bin", size_threshold=0)
    x = numpy.ones((2, 8), numpy.float32)
    first = executable_of(path)
    model = BatchModel(path)
    numpy.testing.assert_allclose(model({"x": x})["y"], numpy.maximum(x @ weights, 0), rtol=1e-5)
    data = numpy.fromfile(tmp_path / "w.bin", numpy.float32)
    (2 * data).tofile(tmp_path / "w.bin")
    os.utime(tmp_path / "w.bin", ns=(1, 1))
    assert executable_of(path) != first
    numpy.testing.assert_allclose(BatchModel(path)({"x": x})["y"], numpy.maximum(x @ (2 * weights), 0), rtol=1e-5)


def test_executables_are_taken_as_they_are(cache, tmp_path):
    example_model.write(tmp_path / "model.onnx")
    rewire.compile(tmp_path / "model.onnx", tmp_path / "model.rwx")
    assert executable_of(tmp_path / "model.rwx") == str(tmp_path / "model.rwx")
    with pytest.raises(rewire.InvalidArgumentError, match="is compiled already"):
        executable_of(tmp_path / "model.rwx", dims={"rows": 1})
    assert not cache.exists()


def test_paths_are_those_of_the_machine(cache, tmp_path, monkeypatch):
    example_model.write(tmp_path / "model.onnx")
    monkeypatch.setenv("MODELS", str(tmp_path))
    assert executable_of("$MODELS/model.onnx") == executable_of(tmp_path / "model.onnx")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert executable_of("~/model.onnx") == executable_of(tmp_path / "model.onnx")
    with pytest.raises(rewire.MissingFileError, match=r"model '\$MODELS/none.onnx': there is no file .*/none.onnx on the machine"):
        executable_of("$MODELS/none.onnx")


def test_the_folder_is_the_users_alone(tmp_path, monkeypatch):
    example_model.write(tmp_path / "model.onnx")
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    monkeypatch.setenv("REWIRE_MODEL_CACHE", str(shared))
    with pytest.raises(rewire.IoError, match="writable by that user alone.*mode 777"):
        executable_of(tmp_path / "model.onnx")
    (tmp_path / "file").touch()
    monkeypatch.setenv("REWIRE_MODEL_CACHE", str(tmp_path / "file" / "below"))
    with pytest.raises(rewire.IoError, match="cannot be made.*REWIRE_MODEL_CACHE"):
        executable_of(tmp_path / "model.onnx")
    monkeypatch.delenv("REWIRE_MODEL_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert pathlib.Path(executable_of(tmp_path / "model.onnx")).parent == tmp_path / "xdg" / "rewire" / "models"


def test_a_failed_compilation_leaves_nothing(cache, tmp_path):
    onnx.save(tiny_models.unknown_operators(), str(tmp_path / "model.onnx"))
    with pytest.raises(rewire.UnsupportedError):
        executable_of(tmp_path / "model.onnx")
    assert [path.suffix for path in cache.iterdir()] == [".lock"]


def test_programs_of_a_process_are_shared_and_few(cache, tmp_path):
    paths = [tmp_path / f"{number}.onnx" for number in range(model_file._MOST_PROGRAMS + 1)]
    for path in paths:
        example_model.write(path)
    first = BatchModel(paths[0])
    assert BatchModel(paths[0]).program is first.program
    for path in paths[1:]:
        BatchModel(path).plan()
    assert BatchModel(paths[0]).program is not first.program
