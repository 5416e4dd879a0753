# SPDX-License-Identifier: Apache-2.0
"""Arrays of other libraries, and the interfaces of ONNX Runtime, TVM and ONNX."""

import gc

import tiny_models as models
import numpy
import pytest
import rewire
import rewire.tvm


def test_jax_in_and_out_without_a_copy():
    jax = pytest.importorskip("jax")
    program = rewire.load(models.identity())
    x = jax.numpy.arange(4, dtype=jax.numpy.float32)
    y = program(x)["y"]
    assert y.ctypes.data == x.unsafe_buffer_pointer()
    result = rewire.load(models.add((4,)))(x, x)["sum"]
    back = jax.dlpack.from_dlpack(result)
    assert back.unsafe_buffer_pointer() == result.ctypes.data
    numpy.testing.assert_array_equal(numpy.asarray(back), [0, 2, 4, 6])


def test_torch_in_and_out_without_a_copy():
    torch = pytest.importorskip("torch")
    program = rewire.load(models.add((4,)))
    x, mine = torch.arange(4, dtype=torch.float32), torch.zeros(4)
    result = program.run([x, x], out={"sum": mine}, require_zero_copy=True)["sum"]
    assert result is mine and mine[3] == 6
    tensor = rewire.tensor(x)
    assert tensor.data_ptr == x.data_ptr()
    assert torch.from_dlpack(tensor).data_ptr() == x.data_ptr()


def test_dlpack_both_ways():
    x = numpy.arange(4, dtype=numpy.float32)

    class OnlyDLPack:
        def __dlpack__(self, **arguments):
            return x.__dlpack__(**arguments)

        def __dlpack_device__(self):
            return x.__dlpack_device__()

    tensor = rewire.tensor(OnlyDLPack())
    assert tensor.data_ptr == x.ctypes.data and tensor.dtype == "f32" and tensor.shape == (4,) and tensor.nbytes == 16
    assert numpy.from_dlpack(tensor).ctypes.data == x.ctypes.data
    assert tensor.numpy().ctypes.data == x.ctypes.data
    assert memoryview(tensor).format == "f" and repr(tensor) == "rewire.Tensor(f32[4])"
    mine = numpy.zeros(4, numpy.float32)

    class Writable(OnlyDLPack):
        def __dlpack__(self, **arguments):
            return mine.__dlpack__(**arguments)

    program = rewire.load(models.add((4,)))
    program.run([OnlyDLPack(), x], out={"sum": Writable()}, require_zero_copy=True)
    numpy.testing.assert_array_equal(mine, 2 * x)


def test_another_device_is_refused():
    class Elsewhere:
        def __dlpack__(self, **arguments):
            raise AssertionError("not asked")

        def __dlpack_device__(self):
            return (2, 0)

    with pytest.raises(rewire.InvalidArgumentError, match="device of DLPack's type 2"):
        rewire.tensor(Elsewhere())


def test_bfloat16():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    program = rewire.load(models.add((4,), models.onnx.TensorProto.BFLOAT16))
    x = numpy.arange(4).astype(ml_dtypes.bfloat16)
    result = program(x, x)["sum"]
    assert result.dtype == ml_dtypes.bfloat16 and result[3] == 6


def test_the_calls_of_onnx_runtime():
    session_file = models.data_of(models.linear()[0])
    x = numpy.random.default_rng(1).standard_normal((3, 8)).astype(numpy.float32)

    def script(ort):
        options = ort.SessionOptions()
        options.intra_op_num_threads = 1
        session = ort.InferenceSession(session_file, sess_options=options, providers=["CPUExecutionProvider"])
        feed = session.get_inputs()[0]
        first = session.run([session.get_outputs()[0].name], {feed.name: x})
        binding = session.io_binding()
        binding.bind_cpu_input("x", x)
        target = ort.OrtValue.ortvalue_from_numpy(numpy.zeros((3, 4), numpy.float32), "cpu", 0)
        binding.bind_output("y", "cpu", 0, numpy.float32, (3, 4), target.data_ptr())
        session.run_with_iobinding(binding)
        value = ort.OrtValue.ortvalue_from_numpy(x)
        third = session.run_with_ort_values(["y"], {"x": value})[0]
        return (first, session.run(None, {"x": x}), target.numpy(), binding.copy_outputs_to_cpu(), third.numpy(), feed.name,
                feed.type, feed.shape, value.data_type(), list(value.shape()), session.get_providers())

    ours = script(rewire)
    theirs = script(pytest.importorskip("onnxruntime"))
    for mine, other in zip(ours[:5], theirs[:5]):
        numpy.testing.assert_allclose(mine, other, rtol=1e-5)
    assert ours[5:] == theirs[5:]
    session = rewire.InferenceSession(session_file)
    with pytest.raises(rewire.InvalidArgumentError, match="the outputs: y"):
        session.run(["z"], {"x": x})


def test_the_calls_of_tvm():
    machine = rewire.tvm.VirtualMachine(rewire.load(models.add((4,))), rewire.tvm.cpu())
    x, mine = numpy.arange(4, dtype=numpy.float32), numpy.zeros(4, numpy.float32)
    machine.set_input("main", x, x)
    numpy.testing.assert_array_equal(machine.run(), 2 * x)
    machine.set_input("main", a=x, b=2 * x)
    numpy.testing.assert_array_equal(machine.invoke("main"), 3 * x)
    machine.set_one_input("main", "a", 5 * x)
    machine.set_outputs("main", mine)
    machine.invoke_stateful("main")
    numpy.testing.assert_array_equal(machine.get_outputs()[0], 7 * x)
    numpy.testing.assert_array_equal(mine, 7 * x)
    machine.invoke_with_outputs("main", {"a": x, "b": x}, [mine])
    numpy.testing.assert_array_equal(mine, 2 * x)
    assert (machine.get_input_index("b"), machine.get_input_index("c")) == (1, -1)
    assert len(machine.benchmark(repeat=2, number=2)) == 2


def test_the_backend_of_onnx():
    import rewire.backend

    x = numpy.arange(4, dtype=numpy.float32)
    assert rewire.backend.run_model(models.add((4,)), [x, x])[0][3] == 6
    node = models.onnx.helper.make_node("Relu", ["x"], ["y"])
    assert rewire.backend.run_node(node, [-x])[0].max() == 0
    assert rewire.backend.supports_device("CPU") and not rewire.backend.supports_device("CUDA")
    assert not rewire.backend.is_compatible(models.unknown_operators())


SCALED = """
    .kernel scale = "mine.scale"
    .func main(x: f32[64, 64]) -> y: f32[64, 64]
      %storage = alloc_storage _, alignment=64, f32[64, 64], cpu
      %y = alloc_tensor %storage, _, f32[64, 64]
      invoke_packed scale(%x, %y), outputs=1
      ret %y
    .end
"""
ONES = numpy.ones((64, 64), numpy.float32)


def scaled(function):
    return rewire.load(rewire.assemble(SCALED), kernels={"mine.scale": function})(ONES)["y"]


def test_a_kernel_computes_with_jax():
    jax = pytest.importorskip("jax")
    twice = jax.jit(lambda x: 2 * x)

    def scale(x, out):
        out[...] = twice(x)  # jax lets go of x some time later

    for _ in range(20):
        assert (scaled(scale) == 2).all()


@pytest.mark.parametrize("collections", [[0], [0, 1], [0, 1, 2], [0, 1, 2, 0], [0, 1, 2, 0, 0]])
def test_others_let_go_of_an_array_when_a_collection_begins(collections):
    held, begun = [], []

    def let_go(phase, info):
        if phase == "start":
            begun.append(info["generation"])
            if len(begun) == len(collections):
                held.clear()

    def scale(x, out):
        out[...] = 2 * x
        held.append(x)

    gc.disable()  # only the collections that the call asks for
    gc.callbacks.append(let_go)
    try:
        assert (scaled(scale) == 2).all()
    finally:
        gc.callbacks.remove(let_go)
        gc.enable()
    assert begun == collections
