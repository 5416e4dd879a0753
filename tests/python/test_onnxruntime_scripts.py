# SPDX-License-Identifier: Apache-2.0
"""Lines of scripts that were written for ONNX Runtime run with their import changed, and give the same."""

import ast
import pathlib
import re
import time
import warnings

import numpy
import onnx
import pytest
import rewire
import tiny_models

onnxruntime = pytest.importorskip("onnxruntime")
DIGITS = pathlib.Path(__file__).resolve().parents[2] / "examples/digits/digits.onnx"

# As scripts have them, one after the other: each may use what those before it have made.
SCRIPT = """
so = ort.SessionOptions()
so.intra_op_num_threads = 1
so.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
so.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
so.log_severity_level = 3
so.add_free_dimension_override_by_name("N", 4)
ort.set_default_logger_severity(3)
device = ort.get_device()
providers = [p for p in ["CPUExecutionProvider"] if p in ort.get_available_providers()]
sess = ort.InferenceSession(path, sess_options=so, providers=providers)
free = ort.InferenceSession(open(path, "rb").read(), providers=[("CPUExecutionProvider", {})])
name, shape, kind = sess.get_inputs()[0].name, sess.get_inputs()[0].shape, sess.get_inputs()[0].type
outputs = [o.name for o in sess.get_outputs()]
used = sess.get_providers(), sess.get_provider_options()
meta = sess.get_modelmeta().graph_name, sess.get_modelmeta().custom_metadata_map, sess.get_modelmeta().description
rest = [i.name for i in sess.get_overridable_initializers()]
sess.disable_fallback()
scores = sess.run(None, {name: x})[0]
labels = sess.run(["probabilities"], {"image": x}, ort.RunOptions())[0].argmax(axis=1)
batch = free.run([free.get_outputs()[0].name], {free.get_inputs()[0].name: numpy.concatenate([x, x])})[0].shape
value = ort.OrtValue.ortvalue_from_numpy(x)
about = value.shape(), value.data_type(), value.is_tensor(), value.device_name()
same = free.run_with_ort_values(["probabilities"], {"image": value})[0].numpy()
io = free.io_binding()
io.bind_cpu_input("image", x)
io.bind_output("probabilities")
free.run_with_iobinding(io)
bound = io.copy_outputs_to_cpu()[0]
answers = []
free.run_async(["probabilities"], {"image": x}, lambda results, data, error: answers.append((results[0], data, error)), "mine")
wait_for(answers)
level = int(so.graph_optimization_level), so.get_session_config_entry("session.x") if so.add_session_config_entry("session.x", "1") else "1"
"""


def run_script(module):
    x = numpy.random.default_rng(3).random((4, 1, 8, 8), numpy.float32)

    def wait_for(answers):
        while not answers:
            time.sleep(0.001)

    names = {"ort": module, "path": str(DIGITS), "numpy": numpy, "x": x, "wait_for": wait_for}
    for line in SCRIPT.strip().splitlines():
        try:
            exec(line, names)  # pylint: disable=exec-used
        except Exception as error:
            raise AssertionError(f"{module.__name__}: {line}") from error
    return names


def close(ours, theirs):
    if isinstance(ours, numpy.ndarray):
        return numpy.allclose(ours, theirs, atol=1e-5)
    if isinstance(ours, (list, tuple)):
        return len(ours) == len(theirs) and all(map(close, ours, theirs))
    return ours == theirs


def test_scripts_give_the_same():
    assert len(SCRIPT.strip().splitlines()) >= 25
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # none of these settings is without an effect
        ours = run_script(rewire)
    theirs = run_script(onnxruntime)
    for name in ("device", "providers", "name", "shape", "kind", "outputs", "used", "meta", "rest", "scores", "labels", "batch",
                 "about", "same", "bound", "answers"):
        assert close(ours[name], theirs[name]), (name, ours[name], theirs[name])


# Names of ONNX Runtime that have no counterpart, and why.
LEFT_OUT = re.compile(
    "Ort(Device|Ep|Mem|Hardware|Arena|Allocator|Sync|Sparse|External|Compile|Execution)|Sparse|Lora|Adapter|ModelCompiler|"
    "ep_|execution_provider|copy_tensors|allocator|cuda|preload|telemetry|build_info|version|collective|capi|contextlib|"
    "validation|package_name|debug_info|global_thread|SessionIOBinding")


def public(owner):
    return {name for name in dir(owner) if not name.startswith("_")}


def test_names_of_the_module_are_here():
    missing = {name for name in public(onnxruntime) - public(rewire) if not LEFT_OUT.search(name)}
    assert not missing


@pytest.mark.parametrize("owner, left_out", [
    ("InferenceSession", "ep|memory_infos|tuning|captured_graph|ortvaluevector|graph_assignment|create_ortvalue"),
    ("SessionOptions", "provider|ep_context|cancellation|denotation"),
    ("RunOptions", "sync_stream|adapter|training"),
    ("OrtValue", "sparse|sequence|onnx_type|tensor_size|proto"),
    ("IOBinding", "vector"),
    ("ModelMetadata", "^$"),
    ("NodeArg", "^$"),
    ("GraphOptimizationLevel", "^(name|value)$"),
    ("ExecutionMode", "^(name|value)$"),
])
def test_members_are_here(owner, left_out):
    ours, theirs = getattr(rewire, owner), getattr(onnxruntime, owner)
    here = public(ours() if owner in ("SessionOptions", "RunOptions") else ours)
    here |= set(getattr(ours, "__dataclass_fields__", ()))
    missing = {name for name in public(theirs) - here if not re.search(left_out, name)}
    assert not missing


@pytest.mark.parametrize("line, words", [
    ("so.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL", r"graph_optimization_level.*no effect.*disable_passes"),
    ("so.execution_mode = ort.ExecutionMode.ORT_PARALLEL", "execution_mode.*no effect"),
    ("so.inter_op_num_threads = 4", "inter_op_num_threads.*no effect"),
    ("so.enable_profiling = True", r"enable_profiling.*program\.profile"),
    ("so.optimized_model_filepath = 'x.onnx'", r"optimized_model_filepath.*rewire\.compile"),
    ("so.enable_mem_pattern = False", "enable_mem_pattern.*no effect"),
    ("so.add_session_config_entry('session.a', '1')", "'session.a' has no effect"),
])
def test_settings_without_an_effect_warn(line, words):
    so = rewire.SessionOptions()
    exec(line, {"so": so, "ort": rewire})  # pylint: disable=exec-used
    with pytest.warns(UserWarning, match=words) as seen:
        rewire.InferenceSession(DIGITS, so)
    assert seen[0].filename == __file__  # the line of the user


@pytest.mark.parametrize("call, words", [
    (lambda: rewire.InferenceSession(DIGITS, providers=["CUDAExecutionProvider", "CPUExecutionProvider"]), "'CUDAExecutionProvider'"),
    (lambda: rewire.InferenceSession(DIGITS, enable_fallback=True), "enable_fallback"),
    (lambda: rewire.set_seed(3), "set_seed"),
    (lambda: rewire.InferenceSession(DIGITS).set_providers(["TensorrtExecutionProvider"]), "Tensorrt"),
    (lambda: rewire.InferenceSession(DIGITS).end_profiling(), "profile"),
])
def test_calls_without_an_effect_warn(call, words):
    with pytest.warns(UserWarning, match=words) as seen:
        call()
    assert seen[0].filename == __file__


def test_mistakes():
    with pytest.raises(AttributeError):
        rewire.SessionOptions().graph_level = 1
    with pytest.raises(rewire.UnsupportedError, match=r"rewire.load\(kernels="):
        rewire.SessionOptions().register_custom_ops_library("libmine.so")
    session = rewire.InferenceSession(DIGITS)
    with pytest.raises(rewire.InvalidArgumentError, match="'probabilites'; did you mean 'probabilities'"):
        session.run(["probabilites"], {"image": numpy.zeros((1, 1, 8, 8), numpy.float32)})
    assert ast.literal_eval(repr(session.get_modelmeta().custom_metadata_map)) == {}


def test_metadata_of_a_model_and_of_what_it_was_compiled_to(tmp_path):
    model = tiny_models.add()
    model.producer_name, model.producer_version, model.domain, model.model_version = "maker", "3", "test.domain", 7
    model.doc_string, model.graph.doc_string = "a description", "of the graph"
    for key, value in (("language", "de"), ("", "no key"), ("twice", "first"), ("two\nlines", "x" * 200000), ("twice", "last")):
        entry = model.metadata_props.add()
        entry.key, entry.value = key, value
    rewire.compile(model, tmp_path / "model.rwx")
    onnx.save(model, tmp_path / "model.onnx")
    for source in (tmp_path / "model.onnx", tmp_path / "model.rwx", model.SerializeToString()):
        assert rewire.InferenceSession(source).get_modelmeta() == rewire.ModelMetadata(
            "maker", "g", "test.domain", "a description", "of the graph", 7,
            {"language": "de", "": "no key", "twice": "last", "two\nlines": "x" * 200000}, "3")


def overridable_model():
    """y = x @ w + b, where w and b are inputs, too."""
    w = numpy.arange(6, dtype=numpy.float32).reshape(2, 3)
    nodes = [onnx.helper.make_node("MatMul", ["x", "w"], ["h"]), onnx.helper.make_node("Add", ["h", "b"], ["y"])]
    kind = onnx.TensorProto.FLOAT
    return tiny_models.model(nodes, [("x", kind, ("N", 2)), ("w", kind, (2, 3)), ("b", kind, ("K",))], [("y", kind, ("N", 3))],
                             [("w", w), ("b", numpy.ones(3, numpy.float32))])


def test_initializers_that_runs_give(tmp_path):
    model, path = overridable_model(), tmp_path / "model.onnx"
    onnx.save(model, path)
    old = onnx.ModelProto()
    old.CopyFrom(model)
    old.ir_version = 3  # which means constants
    x, w, b = numpy.ones((2, 2), numpy.float32), numpy.full((2, 3), 5, numpy.float32), numpy.full(3, 7, numpy.float32)
    for module in (rewire, onnxruntime):
        assert module.InferenceSession(old.SerializeToString()).get_overridable_initializers() == []
    for source in (str(path), model.SerializeToString()):
        ours, theirs = rewire.InferenceSession(source), onnxruntime.InferenceSession(source)
        for given, expected in zip(ours.get_overridable_initializers(), theirs.get_overridable_initializers(), strict=True):
            assert (given.name, given.type, given.shape) == (expected.name, expected.type, expected.shape)
        assert [each.name for each in ours.get_inputs()] == [each.name for each in theirs.get_inputs()] == ["x"]
        for feed in ({}, {"w": w}, {"b": b}, {"w": 2 * w, "b": b}, {"w": w}, {}):
            [one], [other] = (session.run(None, {"x": x, **feed}) for session in (ours, theirs))
            numpy.testing.assert_allclose(one, other, rtol=1e-6)
    # Sessions of one file share each program.
    assert rewire.InferenceSession(path)._program_for({"w"}) is rewire.InferenceSession(path)._program_for({"w", "x"})
    # One that is given for all runs may be given for a single one, too.
    options = rewire.SessionOptions()
    options.add_initializer("w", rewire.OrtValue.ortvalue_from_numpy(3 * w))
    session = rewire.InferenceSession(path, options)
    for feed, factor in (({}, 3), ({"w": w}, 1), ({}, 3)):
        numpy.testing.assert_allclose(session.run(None, {"x": x, **feed})[0], x @ (factor * w) + 1, rtol=1e-6)


def test_bindings_of_initializers():
    """Bindings of ONNX Runtime refuse them."""
    x, w = numpy.ones((2, 2), numpy.float32), numpy.full((2, 3), 5, numpy.float32)
    session = rewire.InferenceSession(overridable_model().SerializeToString())
    io = session.io_binding()
    io.bind_output("y")
    io.bind_cpu_input("x", x)
    for _ in range(2):
        io.bind_cpu_input("w", w)
        session.run_with_iobinding(io)
        numpy.testing.assert_allclose(io.copy_outputs_to_cpu()[0], x @ w + 1, rtol=1e-6)
        io.clear_binding_inputs()
        io.bind_cpu_input("x", 2 * x)
        session.run_with_iobinding(io)
        numpy.testing.assert_allclose(io.copy_outputs_to_cpu()[0], 2 * x @ numpy.arange(6).reshape(2, 3) + 1, rtol=1e-6)
        io.bind_cpu_input("x", x)


def test_an_executable_has_no_initializers_to_give(tmp_path):
    """Its model is not there to be compiled once more."""
    rewire.compile(overridable_model(), tmp_path / "model.rwx")
    session = rewire.InferenceSession(tmp_path / "model.rwx")
    assert session.get_overridable_initializers() == []
    with pytest.raises(rewire.Error, match="w"):
        session.run(None, {"x": numpy.ones((1, 2), numpy.float32), "w": numpy.ones((2, 3), numpy.float32)})
