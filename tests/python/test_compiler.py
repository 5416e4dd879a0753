# SPDX-License-Identifier: Apache-2.0
"""Compiling, bounds, plans and profiles."""

import concurrent.futures
import json
import math

import tiny_models as models

import numpy
import pytest
import rewire


def test_a_cache_keeps_what_was_compiled(tmp_path):
    proto, w = models.linear()
    path, cache = tmp_path / "m.onnx", tmp_path / "cache"
    path.write_bytes(proto.SerializeToString())
    assert [rewire.compile(path, cache=cache).report.from_cache for _ in range(2)] == [False, True]
    x = numpy.ones((2, 8), numpy.float32)
    assert numpy.allclose(rewire.load(path, cache=cache)(x)["y"], numpy.maximum(x @ w, 0), atol=1e-5)
    assert len(list(cache.glob("*.rwx"))) == 1
    cache.chmod(0o777)
    assert "others than its owner can write it" in rewire.compile(path, cache=cache).report.cache_problem


def test_sessions_of_one_file_share_their_program_and_use_the_cache(tmp_path, monkeypatch):
    proto, _ = models.linear()
    path = tmp_path / "m.onnx"
    path.write_bytes(proto.SerializeToString())
    options = rewire.SessionOptions()
    options.add_session_config_entry("session.rewire_cache", str(tmp_path / "cache"))
    first, second = (rewire.InferenceSession(path, options) for _ in range(2))
    assert first.program is second.program
    assert len(list((tmp_path / "cache").glob("*.rwx"))) == 1
    monkeypatch.setenv("REWIRE_MODEL_CACHE", str(tmp_path / "other"))
    assert rewire.InferenceSession(path).program is not first.program
    assert len(list((tmp_path / "other").glob("*.rwx"))) == 1
    options.intra_op_num_threads = 2
    assert rewire.InferenceSession(path, options).program is not first.program
    path.write_bytes(models.linear(5)[0].SerializeToString())
    assert rewire.InferenceSession(path).get_outputs()[0].shape[1] == 5


def test_report_and_progress(tmp_path):
    told = []
    proto, w = models.linear()
    made = rewire.compile(proto, tmp_path / "m.rwx", max_dims={"N": 16}, progress=told.append)
    report = made.report
    assert report.model_nodes == 2 and report.constants >= 1 and report.memory_bytes > 0 and report.unbounded == ""
    assert told[0] == "reading" and told[-1] == "bounding memory"
    x = numpy.ones((3, 8), numpy.float32)
    result = rewire.load(tmp_path / "m.rwx")(x)["y"]
    numpy.testing.assert_allclose(result, numpy.maximum(x @ w, 0), rtol=1e-6)
    assert rewire.compile(proto).report.memory_bytes is None
    assert made.executable.metadata["producer"]
    with pytest.raises(rewire.InvalidArgumentError, match="at most 16"):
        rewire.load(made)(numpy.ones((17, 8), numpy.float32))


def test_links_to_weights_lead_to_folders_that_are_allowed(tmp_path):
    onnx = pytest.importorskip("onnx")
    cache, folder = tmp_path / "cache", tmp_path / "model"
    cache.mkdir()
    folder.mkdir()
    proto, w = models.linear()
    weights = next(tensor for tensor in proto.graph.initializer if list(tensor.dims) == list(w.shape))
    (cache / "blob").write_bytes(w.tobytes())
    (folder / "w.bin").symlink_to(cache / "blob")
    weights.ClearField("raw_data")
    weights.ClearField("float_data")
    weights.data_location = onnx.TensorProto.EXTERNAL
    weights.external_data.add(key="location", value="w.bin")
    (folder / "m.onnx").write_bytes(proto.SerializeToString())
    with pytest.raises(rewire.InvalidFileError, match="allow the folder"):
        rewire.compile(folder / "m.onnx")
    made = rewire.compile(folder / "m.onnx", external_folders=[cache])
    x = numpy.ones((3, 8), numpy.float32)
    numpy.testing.assert_allclose(rewire.load(made)(x)["y"], numpy.maximum(x @ w, 0), rtol=1e-6)


def test_an_exception_of_progress_is_raised():
    def stop(what):
        raise LookupError(what)

    with pytest.raises(LookupError, match="reading"):
        rewire.compile(models.add(), progress=stop)


def test_unsupported_nodes_are_listed():
    with pytest.raises(NotImplementedError) as raised:
        rewire.compile(models.unknown_operators())
    nodes = raised.value.unsupported
    assert [(node.op_type, node.domain) for node in nodes] == [("Relo", ""), ("Frob", "mine")]
    assert nodes[0].node in str(raised.value) and "not known" in nodes[0].reason


def test_int8_by_samples():
    proto, w = models.linear()
    x = numpy.random.default_rng(1).uniform(-1, 2, (5, 3, 8)).astype(numpy.float32)
    made = rewire.compile(proto, precision="int8", calibrate={"x": x})
    assert made.report.quantized == 1
    (moved,) = made.report.movement
    program, expected = rewire.load(made), numpy.maximum(x @ w, 0)
    result = numpy.stack([program(sample)["y"] for sample in x])
    assert moved.output == "y" and 0 < moved.max_abs < 0.1
    numpy.testing.assert_allclose(numpy.abs(result - expected).max(), moved.max_abs, rtol=1e-3)
    numpy.testing.assert_allclose(
        numpy.linalg.norm(result - expected) / numpy.linalg.norm(expected), moved.relative, rtol=1e-3)
    strided = rewire.compile(proto, precision="int8", calibrate={"x": numpy.asfortranarray(x)})
    assert strided.report.movement == made.report.movement
    plain = rewire.compile(proto).report
    assert plain.quantized == 0 and plain.movement == () and plain.products == ()


def test_bf16():
    proto, w = models.linear(40)
    x = numpy.random.default_rng(1).uniform(-1, 2, (5, 3, 8)).astype(numpy.float32)
    made = rewire.compile(proto, precision="bf16", calibrate={"x": x})
    assert made.report.quantized == 1 and made.report.unmeasured == ""
    (moved,) = made.report.movement
    program, expected = rewire.load(made), numpy.maximum(x @ w, 0)
    result = numpy.stack([program(sample)["y"] for sample in x])
    assert 0 < moved.relative < 0.01
    numpy.testing.assert_allclose(numpy.abs(result - expected).max(), moved.max_abs, rtol=1e-3)
    on_random = rewire.compile(proto, precision="bf16", dims={"N": 32}).report
    assert on_random.quantized == 1 and 0 < on_random.movement[0].relative < 0.01


def test_products_stay_float():
    proto, _ = models.linear()
    x = numpy.random.default_rng(1).uniform(-1, 2, (5, 3, 8)).astype(numpy.float32)
    samples = [{"x": x}, {"x": 2 * x[0, :2]}]  # of two sizes
    (product,) = rewire.compile(proto, precision="int8", calibrate=samples, max_error=math.inf).report.products
    assert product.quantized and product.reason == "" and 1e-4 < product.noise < 0.02
    narrow = rewire.compile(proto, precision="int8", calibrate=samples, max_error=product.noise / 10).report
    assert narrow.quantized == 0 and narrow.products[0].reason == "outputs would move too far"
    assert narrow.products[0].noise == product.noise and narrow.movement[0].relative == 0
    name = product.node.split("'")[1]
    (kept,) = rewire.compile(proto, precision="int8", calibrate=samples, keep_float=[name]).report.products
    assert kept.reason == "it is to stay float" and math.isnan(kept.noise)
    # Twice as large values make twice the steps of a range.
    one, both = (rewire.compile(proto, precision="int8", calibrate=data, calibration="min-max").report.products[0].noise
                 for data in (samples[:1], samples))
    assert one < both


def test_for_a_device():
    report = rewire.compile(models.add(), device="opencl", device_work=0).report
    assert report.device_calls == 1 and report.host_calls == ()
    report = rewire.compile(models.add(), device="cuda:0", device_work=10**9).report
    (calls,) = report.host_calls
    assert report.device_calls == 0 and calls.kernel == "rewire.add" and calls.calls == 1
    assert "too little work" in calls.reason
    assert rewire.compile(models.add()).report.host_calls == ()


def test_runs_on_a_device():
    try:
        program = rewire.load(rewire.compile(models.add(), device="opencl", device_work=0))
    except rewire.LinkError as error:
        pytest.skip(str(error))
    a = numpy.arange(12, dtype=numpy.float32).reshape(3, 4)
    b = numpy.full((3, 4), 2, numpy.float32)
    numpy.testing.assert_array_equal(program({"a": a, "b": b})["sum"], a + b)


def test_parallel():
    # Nothing runs at once in a model of one node.
    calls = [rewire.compile(models.add(), parallel=how).report.kernel_calls for how in ("auto", "off")]
    assert calls[0] == calls[1]


def test_compress(tmp_path):
    sizes = {}
    for compress in (True, False):
        path = tmp_path / f"{compress}.rwx"
        rewire.compile(models.add(), path, compress=compress)
        sizes[compress] = path.stat().st_size
        assert rewire.load(path)({"a": numpy.ones((1, 4), numpy.float32), "b": numpy.ones((1, 4), numpy.float32)})
    assert sizes[True] < sizes[False] / 2


def test_checks_between_passes_change_nothing():
    told = {False: [], True: []}
    made = [rewire.compile(models.add(), check_passes=check, progress=told[check].append).executable.to_bytes() for check in told]
    assert made[0] == made[1]
    assert "checking after the pass 'dead-code'" in told[True]


def test_strict():
    w = numpy.array([[1e-40], [1]], numpy.float32)
    node = models.helper.make_node("MatMul", ["x", "w"], ["y"])
    model = models.model([node], [("x", models.TensorProto.FLOAT, (1, 2))], [("y", models.TensorProto.FLOAT, (1, 1))], [("w", w)])
    (zeroed,) = rewire.compile(model).report.zeroed_weights
    assert (zeroed.constant, zeroed.count) == ("w", 1)
    strict = rewire.compile(model, strict=True)
    assert strict.report.zeroed_weights == ()
    x = numpy.array([[numpy.inf, 0]], numpy.float32)
    assert rewire.load(strict.executable)(x)["y"] == numpy.inf


def test_ranks():
    proto, w = models.linear()
    sizes = []
    for rank in range(2):
        report = rewire.compile(proto, shards=2, rank=rank, shard_for="memory").report
        (layer,) = report.sharded_layers
        assert (layer.split, layer.reason, layer.weight_bytes, layer.rank_bytes) == ("columns", "", w.nbytes, w.nbytes // 2)
        assert report.split_inputs == ()
        sizes.append(report.constant_bytes)
    assert sizes[0] == sizes[1]
    assert "exchanges take" in rewire.compile(proto, shards=2).report.sharded_layers[0].reason
    with pytest.raises(rewire.InvalidArgumentError, match="rank is 2, expected 0 to 1"):
        rewire.compile(proto, stages=2, rank=2)
    with pytest.raises(rewire.InvalidArgumentError, match="shard_for is 'speed'"):
        rewire.compile(proto, shards=2, shard_for="speed")


def test_weights_as_parameters(tmp_path):
    proto, w = models.linear()
    made = rewire.compile(proto, tmp_path / "m.rwx", parameters="all")
    [name] = made.parameters.names()
    assert made.report.parameters == 1 and made.report.parameter_bytes == w.nbytes
    numpy.testing.assert_array_equal(made.parameters[name], w)
    x = numpy.ones((3, 8), numpy.float32)
    program = rewire.load(tmp_path / "m.rwx", parameters=made.parameters)
    numpy.testing.assert_allclose(program(x)["y"], numpy.maximum(x @ w, 0), rtol=1e-6)
    tuned = program.with_parameters({name: -w})
    numpy.testing.assert_allclose(tuned(x)["y"], numpy.maximum(x @ -w, 0), rtol=1e-6)
    for names in ([name], {name: w}, made.parameters):
        assert rewire.compile(proto, parameters=names).parameters.names() == [name]
    with pytest.raises(rewire.InvalidArgumentError, match=f"no constant '{name}s'; did you mean '{name}'"):
        rewire.compile(proto, parameters=[name + "s"])
    with pytest.raises(rewire.InvalidArgumentError, match="expected 'all' or a list of names"):
        rewire.compile(proto, parameters=name)


def test_initializers_of_the_callers():
    onnx = pytest.importorskip("onnx")
    proto, w = models.linear()
    [name] = rewire.compile(proto, parameters="all").parameters.names()
    x = numpy.ones((3, 8), numpy.float32)
    expected = numpy.maximum(x @ (3 * w), 0)
    for given in ({name: 3 * w}, rewire.ParameterSet.from_arrays({name: 3 * w})):
        made = rewire.compile(proto, initializers=given)
        numpy.testing.assert_allclose(rewire.load(made)(x)["y"], expected, rtol=1e-6)
    assert made.report.overridable == ()
    with pytest.raises(rewire.InvalidArgumentError, match=f"initializer '{name}' is given as f64"):
        rewire.compile(proto, initializers={name: w.astype(numpy.float64)})

    # The same as an input, which each run gives.
    given = onnx.ModelProto()
    given.CopyFrom(proto)
    given.graph.input.append(onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, w.shape))
    [overridable] = rewire.compile(given).report.overridable
    assert (overridable.name, overridable.element_type, overridable.shape) == (name, "f32", w.shape)
    assert not rewire.compile(given, overridden=[name]).report.overridable
    program = rewire.load(rewire.compile(given, overridden=[name]))
    for factor in (1, 2):
        numpy.testing.assert_allclose(program({"x": x, name: factor * w})["y"], numpy.maximum(x @ (factor * w), 0), rtol=1e-6)

    # Elements in a file of external data, of which there is none on disk.
    [tensor] = [each for each in proto.graph.initializer if each.name == name]
    onnx.external_data_helper.set_external_data(tensor, "weights.bin", offset=8, length=w.nbytes)
    tensor.ClearField("raw_data")
    file = bytes(8) + (3 * w).tobytes()
    made = rewire.compile(proto, external_files={"weights.bin": file})
    del file
    numpy.testing.assert_allclose(rewire.load(made)(x)["y"], expected, rtol=1e-6)
    options = rewire.SessionOptions()
    options.add_external_initializers_from_files_in_memory(["weights.bin"], [bytes(8) + w.tobytes() + b"more"], [8 + w.nbytes])
    session = rewire.InferenceSession(proto.SerializeToString(), options)
    numpy.testing.assert_allclose(session.run(["y"], {"x": x})[0], numpy.maximum(x @ w, 0), rtol=1e-6)
    options = rewire.SessionOptions()
    options.add_initializer(name, rewire.OrtValue.ortvalue_from_numpy(3 * w))
    session = rewire.InferenceSession(proto.SerializeToString(), options)
    numpy.testing.assert_allclose(session.run(["y"], {"x": x})[0], expected, rtol=1e-6)
    with pytest.raises(rewire.InvalidArgumentError, match="is given already"):
        options.add_external_initializers([name], [rewire.OrtValue.ortvalue_from_numpy(w)])


def test_weights_from_a_file_of_safetensors(tmp_path):
    numpy_files = pytest.importorskip("safetensors.numpy")
    proto, w = models.linear()
    made = rewire.compile(proto, parameters="all")
    [name] = made.parameters.names()
    numpy_files.save_file({name: 2 * w}, tmp_path / "w.safetensors")
    x = numpy.ones((3, 8), numpy.float32)
    program = rewire.load(made, parameters=tmp_path / "w.safetensors")
    numpy.testing.assert_allclose(program(x)["y"], numpy.maximum(x @ (2 * w), 0), rtol=1e-6)


def test_mistakes():
    for arguments, error, words in [
        (dict(model="none.onnx"), rewire.NotFoundError, "none.onnx"),
        (dict(model=b"nonsense"), rewire.InvalidFileError, "."),
        (dict(model=models.add(), disable_passes=["none"]), rewire.InvalidArgumentError, "dead-code"),
        (dict(model=models.add(), max_dims={"M": 4}), rewire.InvalidArgumentError, "no input has a dimension"),
        (dict(model=models.add(), precision="int8"), rewire.InvalidArgumentError, "calibrates with samples"),
        (dict(model=models.add(), strict=True, precision="bf16"), rewire.InvalidArgumentError, "model's own precision"),
        (dict(model=models.add(), device="gpu"), rewire.InvalidArgumentError, "did you mean .cpu.. The devices: cpu, opencl, cuda"),
        (dict(model=models.add(), precision="int4"), rewire.InvalidArgumentError, "did you mean 'int8'. The choices: model, int8, bf16"),
        (dict(model=models.add(), parallel="on"), rewire.InvalidArgumentError, "the choices: auto, off"),
        (dict(model=models.add(), cpu="amx"), rewire.InvalidArgumentError, "the choices: native, vectors, tiles"),
        (dict(model=models.add(), precision="int8", calibration="mean", calibrate={"x": numpy.ones(3)}),
         rewire.InvalidArgumentError, "the choices: least-squares, min-max, entropy"),
        (dict(model=models.linear()[0], precision="int8", calibrate={"z": numpy.ones(3)}),
         rewire.InvalidArgumentError, "no input \"z\""),
    ]:
        with pytest.raises(error, match=words):
            rewire.compile(**arguments)
    assert "dead-code" in rewire.compiler_passes()


def test_memory_bound_and_plans():
    program = rewire.load(models.add())
    small, large = program.memory_bound(N=1), program.memory_bound(N=1000)
    assert small.bounded and small.bytes < large.bytes and large.bytes >= 16000
    assert program.memory_bound(outputs_bound=True, N=1000).bounded
    assert not program.memory_bound().bounded and program.memory_bound().unbounded
    plan, = program.explain_outputs()
    assert plan.name == "sum" and plan.rewired and str(plan).startswith("sum: rewired")
    plan, = rewire.load(models.identity()).explain_outputs()
    assert not plan.rewired and plan.reason


def test_profile(tmp_path):
    program = rewire.load(models.linear()[0], dims={"N": 4})
    profile = program.profile({"x": numpy.ones((4, 8), numpy.float32)}, repeat=3)
    assert len(profile.runs) == 3 and profile.total_ns >= sum(call.duration_ns for call in profile.calls) > 0
    assert {call.run for call in profile.calls} == {0, 1, 2}
    assert any("the relu" in call.node or "MatMul" in call.node for call in profile.calls)
    assert any("f32[4, 8]" in call.arguments for call in profile.calls)
    lines = str(profile).splitlines()
    assert lines[0].startswith("3 runs, median ")
    assert lines[1].split() == ["name", "calls", "a", "run", "fastest", "slowest", "share", "kernel"] and "outside" in lines[-1]
    assert abs(sum(row.share for row in profile.rows()) - 1) < 1e-9
    assert repr(profile).startswith("<rewire.Profile of 3 runs, median ")
    events = json.loads(profile.to_perfetto(tmp_path / "trace.json"))["traceEvents"]
    assert sum(event.get("cat") == "run" for event in events) == 3
    assert json.loads((tmp_path / "trace.json").read_text())["traceEvents"] == events
    assert profile._repr_html_().startswith("<table ") and "outside" in profile._repr_html_()


def test_a_disturbed_run_does_not_count():
    """Rows rank by the median of a run: one call that something else held up changes neither the order nor the shares."""
    def profile(held_up):
        runs, calls = [], []
        for run in range(5):
            more = held_up if run == 3 else 0
            runs.append((1000 * run, 1000 * run + 100 + more))
            calls.append((run, "conv", "rewire.conv", "Conv 'c'", "main", 1, 1000 * run, 1000 * run + 70, ""))
            calls.append((run, "relu", "rewire.relu", "Relu 'r'", "main", 2, 1000 * run + 70, 1000 * run + 90 + more, ""))
        return rewire.Profile(runs, calls)

    calm, held_up = profile(0), profile(800)
    assert calm.disturbed == [] and held_up.disturbed == [3]
    assert [(row.name, row.share) for row in calm.rows()] == [(row.name, row.share) for row in held_up.rows()]
    assert [row.name for row in held_up.rows()] == ["Conv 'c'", "Relu 'r'", "(outside kernels)"]
    assert held_up.rows()[1].slowest_ns == 820 and held_up.rows()[1].fastest_ns == held_up.rows()[1].run_ns == 20
    assert "5 runs, median 100 ns, 1 disturbed (up to 900 ns)" in str(held_up)


def test_profile_as_a_table_of_pandas():
    pandas = pytest.importorskip("pandas")
    profile = rewire.load(models.add((2,))).profile(numpy.ones(2, numpy.float32), numpy.ones(2, numpy.float32))
    table = profile.to_pandas()
    assert isinstance(table, pandas.DataFrame) and len(table) == len(profile.calls)


def test_models_are_compiled_on_several_threads_at_once():
    made = [models.add((4,)), models.linear()[0], models.identity(), models.slow(steps=2, size=8)] * 4
    expected = [rewire.compile(model).executable.to_bytes() for model in made]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda model: rewire.compile(model).executable.to_bytes(), made)) == expected
