# SPDX-License-Identifier: Apache-2.0
"""Loading and running: what goes in and comes out, and where it lies."""

import gc
import json
import threading
import time

import tiny_models as models
import numpy
import pytest
import rewire


@pytest.fixture(scope="module")
def add():
    return rewire.load(models.add())


def rows(n=3, start=0):
    return numpy.arange(start, start + 4 * n, dtype=numpy.float32).reshape(n, 4)


def test_load_takes_paths_bytes_protos_and_executables(tmp_path):
    proto = models.add()
    onnx_file, rwx_file = tmp_path / "m.onnx", tmp_path / "m.rwx"
    onnx_file.write_bytes(models.data_of(proto))
    rewire.compile(onnx_file, rwx_file)
    executable = rewire.compile(proto).executable
    for model in (proto, models.data_of(proto), onnx_file, str(onnx_file), rwx_file, rwx_file.read_bytes(),
                  bytearray(rwx_file.read_bytes()), executable, rewire.compile(proto)):
        assert rewire.load(model)({"a": rows(), "b": rows()})["sum"][2, 3] == 22


def test_signature(add):
    assert [str(info) for info in add.inputs] == ["a: f32[N, 4]", "b: f32[N, 4]"]
    assert add.outputs[0] == rewire.TensorInfo("sum", "f32[N, 4]", "f32", ("N", 4))
    assert add.parameters == ()
    assert add.functions == ("main",)
    assert repr(add) == "<rewire.Program (a: f32[N, 4], b: f32[N, 4]) -> (sum: f32[N, 4])>"
    fixed = rewire.load(models.add(), dims={"N": 3})
    assert fixed.inputs[0].shape == (3, 4)


def test_inputs_by_name_by_place_and_as_a_dict(add):
    a, b = rows(), rows(start=5)
    for result in (add({"a": a, "b": b}), add(a, b), add(a, b=b), add(a=a, b=b), add.run([a, b]), add.run({"a": a, "b": b})):
        numpy.testing.assert_array_equal(result["sum"], a + b)


def test_outputs_are_not_copied_and_not_written_again(add):
    first = add(rows(), rows())["sum"]
    kept = first.copy()
    address = first.ctypes.data
    second = add(rows(start=7), rows())["sum"]
    assert second.ctypes.data != address
    numpy.testing.assert_array_equal(first, kept)
    # The array lies over the program's own memory.
    assert isinstance(first.base, (rewire.Tensor, memoryview))


def test_inputs_are_not_copied():
    program = rewire.load(models.identity())
    x = numpy.arange(4, dtype=numpy.float32)
    y = program(x)["y"]
    numpy.testing.assert_array_equal(y, x)
    vm = program.vm()
    vm.set_input("x", x)
    x[0] = 9  # the elements are read when it runs
    vm.invoke()
    assert vm.output("y")[0] == 9


def test_a_kernel_sees_the_callers_memory():
    seen = []

    @rewire.kernel("mine.copy")
    def copy(x, out):
        seen.append((x.ctypes.data, out.ctypes.data))
        out[...] = x

    program = rewire.load(rewire.assemble(COPY), kernels=[copy])
    x, y = numpy.arange(4, dtype=numpy.float32), numpy.zeros(4, numpy.float32)
    assert program.run([x], out={"y": y}, require_zero_copy=True)["y"] is y
    assert seen == [(x.ctypes.data, y.ctypes.data)]
    numpy.testing.assert_array_equal(x, y)


COPY = """
.kernel copy = "mine.copy"
.func main(x: f32[4]) -> y: f32[4]
  %storage = alloc_storage _, alignment=64, f32[4], cpu
  %y = alloc_tensor %storage, _, f32[4]
  invoke_packed copy(%x, %y), outputs=1
  ret %y
.end
"""


def test_outputs_land_in_the_callers_array(add):
    mine = numpy.zeros((3, 4), numpy.float32)
    result = add.run({"a": rows(), "b": rows()}, out={"sum": mine}, require_zero_copy=True)
    assert result["sum"] is mine
    numpy.testing.assert_array_equal(mine, 2 * rows())
    # Strided memory: copied there.
    wide = numpy.zeros((3, 8), numpy.float32)
    add.run([rows(), rows()], out={0: wide[:, ::2]})
    numpy.testing.assert_array_equal(wide[:, ::2], 2 * rows())
    assert not wide[:, 1::2].any()
    with pytest.raises(rewire.Error, match="sum"):
        add.run([rows(), rows()], out={"sum": wide[:, ::2]}, require_zero_copy=True)


def test_strided_read_only_and_foreign_inputs(add):
    wide = numpy.arange(24, dtype=numpy.float32).reshape(3, 8)
    frozen = rows()
    frozen.flags.writeable = False
    numpy.testing.assert_array_equal(add(wide[:, ::2], frozen)["sum"], wide[:, ::2] + frozen)
    numpy.testing.assert_array_equal(add(rows()[::-1], frozen)["sum"], rows()[::-1] + frozen)
    raw = memoryview(rows().tobytes()).cast("f", (3, 4))
    numpy.testing.assert_array_equal(add(raw, rewire.tensor(frozen))["sum"], 2 * rows())


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int8", "int32", "int64", "uint8"])
def test_element_types(dtype):
    onnx_type = models.onnx.helper.np_dtype_to_tensor_dtype(numpy.dtype(dtype))
    program = rewire.load(models.add((2, 3), onnx_type))
    a = numpy.arange(6).reshape(2, 3).astype(dtype)
    result = program(a, a)["sum"]
    assert result.dtype == numpy.dtype(dtype)
    numpy.testing.assert_array_equal(result, a + a)


def test_empty_and_scalar_tensors(add):
    assert add(rows(0), rows(0))["sum"].shape == (0, 4)
    program = rewire.load(models.add(()))
    one = numpy.array(1, numpy.float32)
    result = program(one, one)["sum"]
    assert result.shape == () and result == 2


BAD_CALLS = [
    (lambda p: p({"a": rows()}), rewire.InvalidArgumentError, r"input 1 \(b\) is missing"),
    (lambda p: p({"a": rows(), "c": rows()}), rewire.InvalidArgumentError, "no input 'c'; the inputs: a, b"),
    (lambda p: p(rows(), rows(), rows()), rewire.InvalidArgumentError, "has 2 inputs, 3 given"),
    (lambda p: p(rows(), a=rows()), rewire.InvalidArgumentError, r"\(a\): given by place and by name"),
    (lambda p: p(rows().astype("f8"), rows()), rewire.InvalidArgumentError, r"f32\[N, 4\] expected, f64\[3, 4\] given"),
    (lambda p: p(rows()[:, :3], rows()), rewire.InvalidArgumentError, r"f32\[N, 4\] expected, f32\[3, 3\] given"),
    (lambda p: p(rows(2), rows(3)), rewire.InvalidArgumentError, "dimension N is 2 in input 0 .* and 3 in input 1"),
    (lambda p: p("text", rows()), rewire.InvalidArgumentError, "no array of numbers"),
    (lambda p: p(rows().astype(">f4"), rows()), rewire.InvalidArgumentError, "convert them with astype"),
    (lambda p: p.run([rows(), rows()], out={"som": rows()}), rewire.NotFoundError, "did you mean 'sum'"),
    (lambda p: p.run([rows(), rows()], out={"sum": b"bytes"}), rewire.InvalidArgumentError, "read-only"),
    (lambda p: p.run([rows(), rows()], out={"sum": [1, 2]}), rewire.InvalidArgumentError, "no memory to write to"),
    (lambda p: p.run([rows(), rows()], out={"sum": rows(2)}), rewire.Error, "sum"),
    (lambda p: p.run([rows(), rows()], timeout=-1), rewire.InvalidArgumentError, "timeout: expected seconds"),
    (lambda p: p.run([rows(), rows()], function="mein"), rewire.NotFoundError, "main"),
    (lambda p: p.run([rows(), rows()], max_steps=1), rewire.StepLimitError, "1"),
    (lambda p: p.run([rows(), rows()], max_bytes=10), rewire.MemoryLimitError, "byte limit"),
    (lambda p: p.inputs_of("mein"), rewire.NotFoundError, "did you mean 'main'"),
    (lambda p: p.memory_bound(M=3), rewire.InvalidArgumentError, "M"),
    (lambda p: p.profile(rows(), rows(), repeat=0), rewire.InvalidArgumentError, "repeat"),
    (lambda p: rewire.load("no such file.rwx"), rewire.NotFoundError, "no such file.rwx"),
    (lambda p: rewire.load(b"nonsense"), rewire.InvalidFileError, "."),
    (lambda p: rewire.load(p.executable, dims={"N": 1}), rewire.InvalidArgumentError, "compiled already"),
    (lambda p: rewire.load(p.executable, threads=0), rewire.InvalidArgumentError, "threads: expected at least 1"),
    (lambda p: rewire.load(p.executable, kernels=["./none.so"]), rewire.NotFoundError, "none.so"),
    (lambda p: rewire.load(p.executable, kernels=[3]), TypeError, "rewire.kernel"),
    (lambda p: rewire.load(p.executable, parameters={"w": rows()}), rewire.LinkError, "w"),
    (lambda p: rewire.assemble("nonsense"), rewire.InvalidArgumentError, "<text>:1:1"),
]


@pytest.mark.parametrize("call, error, words", BAD_CALLS)
def test_mistakes_are_named(add, call, error, words):
    with pytest.raises(error, match=words) as raised:
        call(add)
    if isinstance(raised.value, rewire.Error):
        assert raised.value.code != 0 and raised.value.code_name
    # And the program is as it was.
    assert add(rows(), rows())["sum"][0, 1] == 2


def test_errors_are_a_tree():
    assert issubclass(rewire.InvalidArgumentError, (rewire.Error, ValueError))
    assert issubclass(rewire.DeadlineExceededError, TimeoutError)
    assert (rewire.InvalidArgumentError.code, rewire.InternalError.code) == (1, 17)
    assert rewire.BusyError("x").code_name == "busy"


def test_a_timeout_ends_a_run():
    program = rewire.load(models.slow())
    x = numpy.zeros((512, 512), numpy.float32)
    start = time.monotonic()
    with pytest.raises(TimeoutError) as raised:
        program.run([x], timeout=0.1)
    assert raised.value.code == 13
    assert time.monotonic() - start < 5


def test_the_gil_is_not_held():
    program = rewire.load(models.slow())
    vm = program.vm()
    vm.set_input("x", numpy.zeros((512, 512), numpy.float32))
    failed = []

    def run():
        try:
            vm.invoke()
        except rewire.CancelledError as error:
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    time.sleep(0.2)  # this thread goes on meanwhile
    assert thread.is_alive()
    with pytest.raises(rewire.BusyError):
        vm.invoke()
    vm.cancel()
    thread.join(10)
    assert not thread.is_alive() and failed[0].code_name == "cancelled"


def test_sixteen_threads_over_one_program(add):
    wrong = []

    def run(seed):
        for i in range(200):
            a = numpy.full((1 + (seed + i) % 5, 4), seed, numpy.float32)
            if not (add(a, a)["sum"] == 2 * seed).all():
                wrong.append(seed)

    threads = [threading.Thread(target=run, args=(seed,)) for seed in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_results_outlive_program_and_inputs():
    x = numpy.arange(4, dtype=numpy.float32)
    program = rewire.load(models.identity())
    y = program(x.copy())["y"]
    del program
    gc.collect()
    numpy.testing.assert_array_equal(y, x)


def test_what_the_program_lets_go_of_is_freed():
    class Held(numpy.ndarray):
        pass

    import weakref

    program = rewire.load(models.add())
    a = rows().view(Held)
    gone = weakref.ref(a)
    program(a, rows())
    del a
    gc.collect()
    assert gone() is None


def test_a_map_of_names_gives_a_stripped_program_its_names_back(tmp_path):
    stripped = rewire.assemble('''
.kernel rewire.add
.func "0"("0": f32[2], "1": f32[3]) -> "0": f32[2]
  %s = alloc_storage _, alignment=64, f32[2], cpu
  %y = alloc_tensor %s, _, f32[2]
  invoke_packed rewire.add(%0, %1, %y), outputs=1
  ret %y
.end
''')
    names = tmp_path / "names.json"
    names.write_text(json.dumps({
        "rewire_names": 1, "symbols": [], "strings": [], "constants": [], "kernels": ["sum"], "metadata": [],
        "functions": [{"name": "main", "inputs": ["left", "right"], "outputs": ["total"], "notes": []}]}))
    program = rewire.load(stripped, name_map=names)
    assert [value.name for value in program.inputs] == ["left", "right"]
    with pytest.raises(rewire.Error, match="main@.*sum"):
        program({"left": numpy.zeros(2, numpy.float32), "right": numpy.zeros(3, numpy.float32)})
    names.write_text("{}")
    with pytest.raises(rewire.InvalidArgumentError, match="names.json: the map of names is malformed"):
        rewire.load(stripped, name_map=names)
    with pytest.raises(rewire.NotFoundError):
        rewire.load(stripped, name_map=tmp_path / "none.json")
