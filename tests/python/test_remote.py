# SPDX-License-Identifier: Apache-2.0
"""Models on a server, by rewire.connect. The server is vm-serve of the same build."""

import contextlib
import os
import pathlib
import pickle
import signal
import subprocess
import sys

import numpy
import pytest
import tiny_models as models

import rewire

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "serve"))
from certificates import make_certificate  # noqa: E402

ROWS = 2000  # so many bytes that memory is shared where the URL asks for it


@contextlib.contextmanager
def serving(folder, *arguments):
    """The addresses of a server of `add`, for HTTP and for gRPC."""
    program = pathlib.Path(os.environ.get("REWIRE_BUILD", "")) / "bin" / "vm-serve"
    if not program.exists():
        pytest.skip(f"{program} is not built")
    models_in = folder / "models"
    models_in.mkdir()
    rewire.compile(models.add()).executable.save(models_in / "add.rwx")
    command = [program, models_in, "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        yield [process.stdout.readline().split()[-1] for _ in range(2)]
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """The URLs of a server of `add`, without the model's name."""
    with serving(tmp_path_factory.mktemp("server")) as (http, grpc):
        yield [f"http://{http}", f"grpc://{grpc}"]


def urls(server):
    return [f"{each}/add{query}" for each in server for query in ("", "?shared_memory")]


def inputs():
    a = numpy.arange(ROWS * 4, dtype=numpy.float32).reshape(ROWS, 4)
    return {"a": a, "b": a + 1}


def test_a_model_on_a_server_is_a_program(server):
    for url in urls(server):
        program = rewire.connect(url)
        assert [str(each) for each in program.inputs] == [str(each) for each in rewire.load(models.add()).inputs]
        given = inputs()
        assert (program(given)["sum"] == given["a"] + given["b"]).all()


def test_results_are_received_where_out_says(server):
    for url in urls(server):
        program, given, out = rewire.connect(url), inputs(), numpy.zeros((ROWS, 4), numpy.float32)
        assert program.run(given, out=out)["sum"] is out
        assert (out == given["a"] + given["b"]).all()


def test_results_outlive_the_program(server):
    for url in urls(server):
        given = inputs()
        result = rewire.connect(url)(given)["sum"]
        assert (result == given["a"] + given["b"]).all()


def test_a_program_is_pickled_as_its_url(server):
    program = pickle.loads(pickle.dumps(rewire.connect(urls(server)[0])))
    given = inputs()
    assert (program(given)["sum"] == given["a"] + given["b"]).all()


def test_what_cannot_be_connected_to(server):
    with pytest.raises(rewire.NotFoundError, match="there is no model 'none'"):
        rewire.connect(server[0] + "/none")
    with pytest.raises(rewire.InvalidArgumentError, match="model.onnx"):
        rewire.connect("model.onnx")
    for timeout in (0, -1, float("nan"), 2e9):
        with pytest.raises(rewire.InvalidArgumentError, match="timeout: seconds, above 0 and at most 1e9 expected"):
            rewire.connect(server[0] + "/add", timeout=timeout)
    with pytest.raises(rewire.IoError):
        rewire.connect("http://127.0.0.1:1/add", timeout=1)


def test_models_by_tls(tmp_path, monkeypatch):
    certificate, key = make_certificate(tmp_path)
    with serving(tmp_path, "--tls-cert", certificate, "--tls-key", key) as (http, grpc):
        # Both protocols are at the port of HTTP.
        addresses = [f"https://{http}", f"grpcs://{http}", f"grpcs://{grpc}"]
        for address in addresses:
            with pytest.raises(rewire.IoError, match="the certificate is refused: self-signed certificate"):
                rewire.connect(f"{address}/add")
        monkeypatch.setenv("REWIRE_SERVER_CA", str(certificate))
        for address in addresses:
            given, out = inputs(), numpy.zeros((ROWS, 4), numpy.float32)
            assert rewire.connect(f"{address}/add").run(given, out=out)["sum"] is out
            assert (out == given["a"] + given["b"]).all()
