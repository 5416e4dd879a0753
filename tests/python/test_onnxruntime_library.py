# SPDX-License-Identifier: Apache-2.0
"""The libonnxruntime of the package, as a program that has only its path finds it."""

import os
import pathlib
import re
import subprocess
import sys

import pytest
import rewire
import rewire.libraries

SLOTS = pathlib.Path(__file__).parents[2] / "onnxruntime_api/slots.def"

# A program without Rewire: it opens the library, makes a session of a model and prints what comes out of a run.
PROGRAM = """
import ctypes, sys
path, model, slots = sys.argv[1], open(sys.argv[2], "rb").read(), sys.argv[3].split(",")
get_base = ctypes.CDLL(path).OrtGetApiBase
get_base.restype = ctypes.POINTER(ctypes.c_void_p)
get_api = ctypes.CFUNCTYPE(ctypes.POINTER(ctypes.c_void_p), ctypes.c_uint32)(get_base()[0])
table = get_api(28)

def call(name, *arguments, result=ctypes.c_void_p):
    types = [type(argument) if not isinstance(argument, bytes) else ctypes.c_char_p for argument in arguments]
    answer = ctypes.CFUNCTYPE(result, *types)(table[slots.index(name)])(*arguments)
    if result is ctypes.c_void_p and answer is not None:
        sys.exit(call("GetErrorMessage", ctypes.c_void_p(answer), result=ctypes.c_char_p).decode())
    return answer

P, N = ctypes.c_void_p, ctypes.c_size_t
env, session, memory, value = P(), P(), P(), P()
call("CreateEnv", ctypes.c_int(2), b"test", P(ctypes.addressof(env)))
call("CreateSessionFromArray", env, model, N(len(model)), P(), P(ctypes.addressof(session)))
call("CreateCpuMemoryInfo", ctypes.c_int(1), ctypes.c_int(0), P(ctypes.addressof(memory)))
data, shape = (ctypes.c_float * 3)(-1, 2, -3), (ctypes.c_int64 * 1)(3)
call("CreateTensorWithDataAsOrtValue", memory, P(ctypes.addressof(data)), N(12), P(ctypes.addressof(shape)), N(1), ctypes.c_int(1),
     P(ctypes.addressof(value)))
names_in, names_out, inputs, outputs = (ctypes.c_char_p * 1)(b"x"), (ctypes.c_char_p * 1)(b"y"), (P * 1)(value), (P * 1)()
at = lambda array: P(ctypes.addressof(array))
call("Run", session, P(), at(names_in), at(inputs), N(1), at(names_out), N(1), at(outputs))
made = P()
call("GetTensorMutableData", P(outputs[0]), at(made))
print(call("GetBuildInfoString", result=ctypes.c_char_p).decode(), list((ctypes.c_float * 3).from_address(made.value)))
"""


def slots():
    rows = re.findall(r"^(?:STATUS|REFUSED|ABSENT|EMPTY)\((\w+)|^SERVED\([^,]+, (\w+)", SLOTS.read_text(), re.MULTILINE)
    return [one or other for one, other in rows]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    onnx = pytest.importorskip("onnx")
    tensor = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph([onnx.helper.make_node("Abs", ["x"], ["y"])], "abs", [tensor("x", 1, [3])], [tensor("y", 1, [3])])
    path = tmp_path_factory.mktemp("library") / "abs.onnx"
    made = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)])
    made.ir_version = 9
    path.write_bytes(made.SerializeToString())
    return path


@pytest.mark.parametrize("name", ["libonnxruntime.so.1", "libonnxruntime.so"])
def test_a_program_runs_on_it(name, model):
    path = pathlib.Path(rewire.onnxruntime_library()).with_name(name)
    done = subprocess.run([sys.executable, "-c", PROGRAM, path, model, ",".join(slots())], capture_output=True, text=True, check=False,
                          env={key: value for key, value in os.environ.items() if not key.startswith(("LD_", "REWIRE_"))})
    assert (done.stdout.split("Rewire ")[-1].split(" ", 1)[-1], done.stderr) == ("[1.0, 2.0, 3.0]\n", "")
    assert "Rewire" in done.stdout


def test_a_package_without_it_says_so(monkeypatch, tmp_path):
    monkeypatch.setattr(rewire.libraries, "__file__", str(tmp_path / "libraries.py"))
    with pytest.raises(rewire.Error, match="built without REWIRE_WITH_ONNXRUNTIME_API"):
        rewire.onnxruntime_library()
