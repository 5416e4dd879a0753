# SPDX-License-Identifier: Apache-2.0
"""The forms in which a model is compiled and run. A form is a function of a Trial; it returns what is wrong, or None. Errors of
the compiler and of runs are exceptions of ours.py. Skipped says that a form does not apply to the model."""

import os
import signal
import tempfile

import numpy as np
import onnx
from onnx import TensorProto

import evaluate
import ours
import retype
import structures
from draws import F32, TEXT, Draws
from oracles import Oracles, problem

FORMS = {}
MOST_SECONDS_OF_QUANTIZER = 20


class Skipped(Exception):
    """The form does not apply."""


def form(function):
    FORMS[function.__name__.replace("_", "-")] = function
    return function


class Trial:
    """A model, its program with all passes, and what others answer; each is made once."""

    def __init__(self, model):
        self.model, self.data = model, model.proto.SerializeToString()
        self.names = [each.name for each in model.proto.graph.output]
        self.draws = Draws(model.seed ^ 0x5EED)
        self._oracles = self._program = None

    @property
    def oracles(self):
        self._oracles = self._oracles or Oracles(self.model.proto, self.model.feeds)
        return self._oracles

    @property
    def program(self):
        self._program = self._program or ours.load(ours.compile_model(self.data).executable)
        return self._program

    def judge(self, results, oracles=None):
        oracles = oracles or self.oracles
        wrong = [(name, oracles.problem(place, given)) for place, (name, given) in enumerate(zip(self.names, results))]
        return next((f"{name}: {text}" for name, text in wrong if text), None)

    def check(self, executable, threads=1, feeds=None, oracles=None):
        return self.judge(ours.run(ours.load(executable, threads), feeds or self.model.feeds, self.names), oracles)

    def other_sizes(self):
        """Sizes for the symbols, the inputs of these sizes, and the oracles' answers."""
        symbols = self.model.symbols
        if not symbols:
            raise Skipped("it has no open dimensions")
        # Rows without features, whose number attributes tell, are taken by others.
        least = 1 if any(node.domain == "ai.onnx.ml" for node in self.model.proto.graph.node) else 0
        sizes = {name: self.draws.choose([least, 1, 2, 3, 4, 5, 7, 8, 11, 16]) if self.draws.chance(0.7) else size for name, size in sorted(symbols.items())}
        feeds = self.model.sized(sizes, self.model.seed + self.draws.between(1, 1 << 30))
        if feeds is None or max((array.size for array in feeds.values()), default=0) > 30000:
            raise Skipped("its inputs have no such sizes")
        return sizes, feeds, self._oracles_of(sizes, feeds)

    def _oracles_of(self, sizes, feeds):
        """None where the model has no meaning for these sizes. The checker says so better than who runs it."""
        if _told_sizes_follow(self.model.proto):
            return None
        proto = onnx.ModelProto()
        proto.CopyFrom(self.model.proto)
        for info in proto.graph.input:
            for dim in info.type.tensor_type.shape.dim:
                if dim.dim_param in sizes:
                    dim.dim_value = sizes[dim.dim_param]
        for info in proto.graph.value_info:
            info.type.tensor_type.ClearField("shape")
        for info in proto.graph.output:
            for dim in info.type.tensor_type.shape.dim:
                dim.Clear()
        try:
            evaluate.check(proto)
        except evaluate.Invalid:
            return None
        oracles = Oracles(self.model.proto, feeds)
        return oracles if oracles.valid else None


# Attributes or parameters tell a size of their first input, which nobody else checks.
_TELL_SIZES = ("LayerNormalization", "RMSNormalization")


def _told_sizes_follow(proto):
    """Whether such a size is open, or comes from other nodes, so that other sizes of the model's inputs may give another one."""
    graph = evaluate.inlined(proto).graph
    constants = [tensor.name for tensor in graph.initializer] + [node.output[0] for node in graph.node if node.op_type == "Constant"]
    known = {info.name: [dim.HasField("dim_value") for dim in info.type.tensor_type.shape.dim] for info in graph.input} | {name: [] for name in constants}
    for node in graph.node:
        axis = next((each.i for each in node.attribute if each.name == "axis"), -1)
        told = 1 if node.domain == "ai.onnx.ml" else axis if node.op_type in _TELL_SIZES else None
        if told is not None and node.input and not all(known.get(node.input[0], [False] * 8)[told:]):
            return True
    return False


@form
def passes(trial):
    return trial.judge(ours.run(trial.program, trial.model.feeds, trial.names))


@form
def no_passes(trial):
    return trial.check(ours.compile_model(trial.data, disable_passes=ours.PASSES).executable)


def without(name):
    """The form with one pass off."""
    return lambda trial: trial.check(ours.compile_model(trial.data, disable_passes=[name]).executable)


@form
def without_one(trial):
    return without(trial.draws.choose(ours.PASSES))(trial)


@form
def threads(trial):
    return trial.check(trial.program.executable, threads=2)


@form
def serial(trial):
    return trial.check(ours.compile_model(trial.data, parallel="off").executable, threads=2)


@form
def sizes(trial):
    """Other sizes than those of the model's inputs, and then those again, in one machine."""
    _, feeds, oracles = trial.other_sizes()
    program = trial.program
    wrong = None
    if oracles:
        try:
            wrong = trial.judge(ours.run(program, feeds, trial.names), oracles)
        except ours.Failed:
            oracles.raise_if_open(trial.names)
            raise
    else:
        try:
            ours.run(program, feeds, trial.names)  # nobody says what it gives; it may fail, and must end
        except ours.Failed:
            pass
    return wrong or trial.judge(ours.run(program, trial.model.feeds, trial.names))


@form
def fixed(trial):
    if not trial.model.symbols:
        raise Skipped("it has no open dimensions")
    return trial.check(ours.compile_model(trial.data, dims=trial.model.symbols).executable)


@form
def limited(trial):
    """With largest sizes, so that tensors of open sizes lie in the arena."""
    if not trial.model.symbols:
        raise Skipped("it has no open dimensions")
    largest = {name: size + trial.draws.choose([0, 0, 1, 5]) for name, size in sorted(trial.model.symbols.items())}
    return trial.check(ours.compile_model(trial.data, max_dims=largest).executable)


@form
def bound(trial):
    """Outputs in memory of the caller, run twice."""
    results = ours.run(trial.program, trial.model.feeds, trial.names)
    if any(isinstance(each, list) or each.dtype == TEXT for each in results):
        raise Skipped("not all outputs are tensors of numbers")
    wrong = None
    for _ in range(2):
        out = dict(zip(trial.names, ours.poisoned(results)))
        given = ours.run(trial.program, trial.model.feeds, trial.names, out=out)
        wrong = wrong or trial.judge(given) or trial.judge([out[name] for name in trial.names])
    return wrong


@form
def saved(trial):
    return trial.check(trial.program.executable.to_bytes())


@form
def outside(trial):
    """Weights in a file beside the model."""
    with tempfile.TemporaryDirectory() as folder:
        path = structures.save_outside(trial.model.proto, folder)
        return trial.check(ours.compile_model(path).executable)


@form
def half(trial):
    """All floats are float16."""
    if not retype.has_floats(trial.model.proto):
        raise Skipped("it has no floats")
    dtype = np.dtype(np.float16)
    proto, feeds = retype.model(trial.model.proto, TensorProto.FLOAT16, dtype), retype.feeds(trial.model.feeds, dtype)
    try:
        evaluate.check(proto)
    except evaluate.Invalid:
        raise Skipped("its operators do not take float16") from None
    narrow = Oracles(proto, feeds)
    if not narrow.valid:
        raise Skipped("nobody runs it in float16")
    results = ours.run(ours.load(ours.compile_model(proto.SerializeToString()).executable), feeds, trial.names)
    for place, (name, given) in enumerate(zip(trial.names, results)):
        wrong = narrow.problem(place, given)
        if not wrong:
            continue
        # Rewire rounds less often than operators one by one would, so results of float32 are right as well.
        expected = [answer[place] for answer in narrow.answers.values()]
        expected += [retyped(answer[place], given) for answer in trial.oracles.answers.values()]
        if problem(given, [each for each in expected if each is not None]):
            return f"{name}: {wrong}"
    return None


def retyped(expected, given):
    """float32 as the type of `given`, where that is a float of 16 bits."""
    if isinstance(expected, list) or isinstance(given, list):
        return expected
    return expected.astype(given.dtype) if expected.dtype == F32 and given.dtype.itemsize == 2 else expected


def _moved(results, originals):
    """How far each float output moved, as the report of the compiler has it: by the L2 norms."""
    found = []
    for given, original in zip(results, originals):
        if isinstance(given, list) or original.dtype != F32:
            continue
        if given.shape != original.shape or given.dtype != original.dtype:
            return f"is {given.dtype}{list(given.shape)}, expected {original.dtype}{list(original.shape)}"
        given, original = given.astype(np.float64), original.astype(np.float64)
        if np.isfinite(given).all() and np.isfinite(original).all():
            found.append(float(np.linalg.norm(given - original) / max(np.linalg.norm(original), 1e-30)))
        else:
            found.append(None)
    return found


def _narrow(trial, precision, most):
    """A form whose values are rough: they are as far off as the compiler says itself, and not farther than `most`."""
    if not trial.oracles.valid or not retype.has_floats(trial.model.proto):
        raise Skipped("it has no floats")
    original = ours.run(trial.program, trial.model.feeds, trial.names)
    if any(not isinstance(each, list) and each.dtype == F32 and not np.isfinite(each).all() for each in original):
        raise Skipped("it has results that are no numbers")
    samples = {name: array for name, array in trial.model.feeds.items() if array.dtype != TEXT}
    if not samples or len(samples) < len(trial.model.feeds):
        raise Skipped("it has no inputs, or strings, which are no samples")
    made = ours.compile_model(trial.data, precision=precision, calibrate=samples)
    moved = _moved(ours.run(ours.load(made.executable), trial.model.feeds, trial.names), original)
    if isinstance(moved, str):
        return moved
    told = {each.output: each.relative for each in made.report.movement}
    names = [name for name, each in zip(trial.names, original) if not isinstance(each, list) and each.dtype == F32]
    for name, distance in zip(names, moved):
        if distance is None:
            return f"{name}: has results that are no numbers, the float model has none"
        if most is not None and distance > most + 1e-3:
            return f"{name}: moved by {distance:.3g}, at most {most} is promised"
        if name in told and abs(told[name] - distance) > 0.02 * distance + 1e-3:
            return f"{name}: moved by {distance:.3g}, the report says {told[name]:.3g}"
    return None


@form
def bf16(trial):
    return _narrow(trial, "bf16", None)


@form
def int8(trial):
    return _narrow(trial, "int8", 0.05)


class _Samples:
    """One set of inputs, as onnxruntime's quantizer reads them."""

    def __init__(self, feeds):
        self._left = [feeds]

    def get_next(self):
        return self._left.pop() if self._left else None


def _end_quantizer(*_):
    raise TimeoutError("the quantizer does not end")


@form
def qdq(trial):
    """What onnxruntime's quantizer makes with its defaults."""
    operators = {node.op_type for node in trial.model.proto.graph.node}
    if not operators & {"Conv", "MatMul", "Gemm"} or trial.model.style == "edges" or not trial.oracles.valid:
        raise Skipped("it has no products")
    from onnxruntime import quantization

    with tempfile.TemporaryDirectory() as folder:
        before, after = os.path.join(folder, "float.onnx"), os.path.join(folder, "qdq.onnx")
        onnx.save(trial.model.proto, before)
        # Of some models it never ends.
        signal.signal(signal.SIGALRM, _end_quantizer)
        signal.alarm(MOST_SECONDS_OF_QUANTIZER)
        try:
            quantization.quantize_static(before, after, _Samples(trial.model.feeds))
            proto = onnx.load(after)
        except Exception as error:  # anything may come out of it
            raise Skipped(f"the quantizer fails: {type(error).__name__}") from None
        finally:
            signal.alarm(0)
    oracles = Oracles(proto, trial.model.feeds)
    if not oracles.valid or not all(np.isfinite(each).all() for each in oracles.runtime if not isinstance(each, list) and each.dtype == F32):
        raise Skipped("nobody runs what the quantizer made")
    results = ours.run(ours.load(ours.compile_model(proto.SerializeToString()).executable), trial.model.feeds, trial.names)
    for place, (name, given) in enumerate(zip(trial.names, results)):
        wrong = oracles.problem(place, given)
        if wrong and not _steps_apart(given, [answer[place] for answer in oracles.answers.values()], [answer[place] for answer in trial.oracles.answers.values()]):
            if _quantizes_what_is_open(proto, trial.model.feeds):
                raise Skipped("it quantizes NaN or an infinity, which is open")
            return f"{name}: {wrong}"
    return None


def _quantizes_what_is_open(proto, feeds):
    """Whether something that is no number is quantized, such as what a small variance that became 0 divides."""
    made = onnx.ModelProto()
    made.CopyFrom(proto)
    names = {node.input[0] for node in proto.graph.node if node.op_type == "QuantizeLinear"}
    del made.graph.output[:]
    made.graph.output.extend(onnx.helper.make_value_info(name, onnx.TypeProto()) for name in sorted(names))
    try:
        return not all(np.isfinite(each).all() for each in evaluate.by_onnxruntime(evaluate.lowered(made), feeds))
    except evaluate.Invalid:
        return False


def _steps_apart(given, expected, floats):
    """Whether an output of a quantized model is as near to the float model's as others' are: one step of a rounding that falls
    the other way may move all that follows."""
    if isinstance(given, list) or given.dtype != F32:
        return not isinstance(given, list) and any(each.shape == given.shape for each in expected)
    if not any(each.shape == given.shape for each in expected):
        return False
    exact = floats[0].astype(np.float64)
    allowed = max(float(np.linalg.norm(each.astype(np.float64) - exact)) for each in expected)
    return float(np.linalg.norm(given.astype(np.float64) - exact)) <= 2 * allowed + 0.05 * float(np.linalg.norm(exact)) + 1e-6


@form
def opencl(trial):
    """All that can be on a device of OpenCL."""
    made = ours.compile_model(trial.data, device="opencl", device_work=0)
    if made.report.device_calls == 0:
        raise Skipped("nothing of it runs on a device")
    program = ours.rewire.load(made.executable, trust_device_code=True)
    return trial.judge(ours.run(program, trial.model.feeds, trial.names))


# How often each is drawn, beside `passes` and `no-passes`, which every model gets.
WEIGHTS = {"without-one": 30, "threads": 8, "serial": 4, "sizes": 40, "fixed": 8, "limited": 10, "bound": 12, "saved": 4, "outside": 4, "half": 10, "bf16": 8, "int8": 4, "qdq": 8, "opencl": 3}
