# SPDX-License-Identifier: Apache-2.0
"""Models of one operator each, drawn by the rules of tests/random_graphs at sizes and types that real models have."""

import dataclasses
import json
import pathlib
import sys
import zlib

import numpy as np
from onnx import helper

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1] / "random_graphs")]
import contrib  # noqa: E402  (after the path is set)
import evaluate  # noqa: E402
import known_faults  # noqa: E402
import operators  # noqa: E402
from builder import Builder, Rejected, Value, to_tensor  # noqa: E402
from draws import BOOL, F32, I32, I64, NARROW, NUMBER_OF, TEXT, U8, Draws  # noqa: E402

OPSET, ML_OPSET = 21, 3  # the newest that both peers run; operators that are newer are drawn from the set that has them first
F16 = np.dtype(np.float16)


@dataclasses.dataclass(frozen=True)
class Scale:
    """How large the tensors of a form are."""

    least: int  # elements of the largest tensor
    most: int
    extents: tuple
    channels: tuple


SCALES = {
    "L1": Scale(512, 6_000, (4, 7, 8, 10, 14, 16, 24, 32), (4, 8, 16, 24, 32)),
    "L2": Scale(12_000, 110_000, (8, 14, 16, 28, 32, 49, 56, 64, 100), (3, 16, 32, 64, 96)),
    "memory": Scale(500_000, 2_500_000, (32, 49, 56, 64, 100, 112, 128, 200, 224, 320), (3, 16, 32, 64, 128)),
}
TYPES = {F32: 1, F16: 1, I64: 1, U8: 1}
RARE = 1e-3  # other types, where an operator has none of these
TRIES = 60
MOST_OF_REFERENCE = 20_000  # elements of a node that the onnx package's reference evaluates in a loop of Python


class FormDraws(Draws):
    """Sizes of real models. `first` is the type that the form should have."""

    kernels = (1, 2, 3, 3, 3, 5, 7, 9)
    style = "normal"

    def __init__(self, seed, scale, first):
        super().__init__(seed)
        self.scale, self.first, self.style, self.roomy = scale, first, "normal", False
        self.sizes = list(scale.extents)
        self.boxes = max(scale.extents) / 8

    @property
    def most_elements(self):
        return self.scale.most

    def extent(self, low, high):
        return low if low == high else self.choose(self.scale.extents)

    def extent_of(self, options):
        return self.choose(self.scale.channels)

    def pads(self, kernel, least):
        pad = max(kernel // 2, least) if self.chance(0.6) else least
        return pad, pad

    def array(self, dtype, shape, style=None):
        if dtype == TEXT:
            raise Rejected("strings are not measured")
        return super().array(dtype, shape, style)

    def dtype(self, allowed):
        allowed, first = list(allowed), self.first
        self.first = None  # of the first tensor alone: Cast has another type then
        if first is not None and first in allowed:  # to numpy None is float64
            return first
        return self.weighted({dtype: TYPES.get(dtype, RARE if dtype not in NARROW and dtype != TEXT else RARE**3) for dtype in allowed})

    def shape(self, least=0, most=6):
        """Of a second tensor, such as indices."""
        rank = self.between(least, max(least, min(most, 2)))
        return tuple(self.choose(self.scale.extents) for _ in range(rank))

    def whole_shape(self, least, most):
        """Of the tensor that an operator works on: rows, sequences, and images with the channels first or last."""
        rank = self.weighted({rank: weight for rank, weight in {0: 0.01, 1: 0.5, 2: 3, 3: 3, 4: 4, 5: 1, 6: 0.2}.items() if least <= rank <= most})
        elements = int(np.exp(self.real(np.log(self.scale.least), np.log(self.scale.most))))
        shape = []
        for place in range(rank - 1):
            rest = max(1, elements // int(np.prod(shape, dtype=np.int64)))
            root = max(1, round(rest ** (1 / (rank - place))))
            usual = [1, 1, 2, 3, 4, 8, 16, 32, 49, 64, 77, 100, 128, 197, 224, 256, 300, 512, 768, 1000, 1024]
            shape.append(self.choose([1, 1, 2, 4] if place == 0 and rank > 2 else [n for n in usual if root // 4 < n <= 4 * root] or [root]))
        if rank:
            shape.append(max(1, elements // int(np.prod(shape, dtype=np.int64))))
        if rank > 2 and self.chance(0.5):
            shape[1], shape[-1] = shape[-1], shape[1]
        return tuple(shape)


class FormBuilder(Builder):
    """Data are inputs of known sizes, weights and small parameters constants; ONNX Runtime evaluates nodes, because the onnx
    package's reference takes minutes for such tensors. Where it is known to be wrong (known_faults.py), the reference does."""

    def __init__(self, draws, opsets):
        super().__init__(draws, opsets)
        self.open = self.share = False
        self.faults = []  # why the values are not those of ONNX Runtime
        self._names = [0, "v{}"]

    def fresh(self, array, recipe=("fixed",), role="data"):
        if role == "weight" and array.ndim == 3 and array.dtype.kind == "f":
            # A recurrent state must not grow from step to step: then the smallest difference does, too.
            array = (array / np.sqrt(array.shape[-1])).astype(array.dtype)
        if array.dtype not in NARROW and (role == "data" or role == "parameter" and array.size > 16):
            return self._keep(Value(self.name(), array, "input", recipe, tuple(array.shape)))
        return self._keep(Value(self.name(), array, "constant"))

    def constant(self, array):
        return self._keep(Value(self.name(), array, "constant"))

    def find(self, fits, anywhere=0.75):
        return None

    def close(self, value, axis):
        return value

    def pick(self, dtypes, ranks=(0, 6), fits=lambda value: True, shape=None):
        dtype = self.draws.dtype(sorted(set(dtypes), key=str))
        for _ in range(10):
            drawn = self.draws.whole_shape(*ranks) if shape is None else tuple(shape)
            if np.prod(drawn, dtype=float) > self.most_elements:
                continue
            value = self.fresh(self.draws.array(dtype, drawn), ("data", dtype, None))
            if fits(value):
                return value
            self.values.remove(value)
        raise Rejected("no tensor fits")

    def add(self, proto, inputs, captured=(), fits=lambda made: True):
        arrays = {value.name: value.array for value in inputs}
        model = evaluate._model_of(proto, arrays, self.opsets, ())
        types = evaluate._inferred(proto, arrays, self.opsets, ())
        for output in model.graph.output:
            output.type.CopyFrom(types[output.name])
        known = evaluate.known_of(arrays, self.opsets[""])
        self.faults += [fault.reason for fault in known_faults.among([proto], known, "onnxruntime")]
        small = max(array.size for array in arrays.values()) <= MOST_OF_REFERENCE
        if self.faults:
            if not small:
                raise Rejected("ONNX Runtime is known to be wrong, and the reference takes minutes")
            results = evaluate.by_reference(model, arrays)
        else:
            try:
                results = evaluate.by_onnxruntime(evaluate.lowered(model), arrays)
            except evaluate.Invalid as error:
                if not str(error).startswith("lacks") or not small:
                    raise
                results = evaluate.by_reference(model, arrays)
        made, names = [], [name for name in proto.output if name]
        if not evaluate._fits(results, types, names):  # numpy has bytes in place of types of few bits
            raise Rejected("its results do not have the types that inference gives")
        for name, array in zip(names, results):
            if not isinstance(array, np.ndarray) or array.dtype not in NUMBER_OF or array.size > self.most_elements:
                raise Rejected("a result is too large, or no tensor")
            made.append(Value(name, array, "node"))
        self.nodes.append(proto)
        self.values += made
        return made


@dataclasses.dataclass
class Form:
    name: str
    operator: str
    dtype: str
    scale: str
    text: str
    model: object
    inputs: dict
    outputs: dict

    def write(self, folder):
        for part in ("in", "out"):
            (folder / part).mkdir(parents=True, exist_ok=True)
        (folder / "model.onnx").write_bytes(self.model.SerializeToString())
        for name, array in self.inputs.items():
            np.save(folder / "in" / f"{name}.npy", array)
        (folder / "out" / "names.json").write_text(json.dumps(list(self.outputs)))
        for place, array in enumerate(self.outputs.values()):
            np.save(folder / "out" / f"{place}.npy", array)


def _attribute_text(attribute):
    value = helper.get_attribute_value(attribute)
    text = value.decode() if isinstance(value, bytes) else str(list(value) if not isinstance(value, (int, float, str)) and hasattr(value, "__len__") else value)
    return f"{attribute.name}={text}" if len(text) < 40 else attribute.name


def _text(b):
    node = b.nodes[-1]
    shapes = {value.name: str(value.array.tolist()) if value.source == "constant" and value.array.size <= 8 else f"{value.dtype}{list(value.shape)}" for value in b.values}
    return " ".join([*(shapes[name] for name in node.input if name), *map(_attribute_text, node.attribute)])


def _last_channels(b, inputs):
    """The same operator in a model whose images have their channels last: the exporter of TensorFlow's models writes a Transpose
    on each side. Returns the nodes, or None where it is no operator on images."""
    node, [image, *_] = b.nodes[-1], inputs
    made = next(value for value in b.values if value.name == node.output[0])
    if len(b.nodes) != 1 or node.input[0] != image.name or image.rank != 4 or made.rank != 4:
        return None
    inner = type(node)()
    inner.CopyFrom(node)
    inner.input[0], inner.output[0] = "image_first", "made_first"
    before = helper.make_node("Transpose", [image.name], ["image_first"], perm=[0, 3, 1, 2])
    after = helper.make_node("Transpose", ["made_first"], [made.name], perm=[0, 2, 3, 1])
    for value in (image, made):
        value.array = np.ascontiguousarray(value.array.transpose(0, 2, 3, 1))
    return [before, inner, after]


def _finished(b, operator, scale_name, draws):
    read = {name for node in b.nodes for name in node.input}
    inputs = [value for value in b.values if value.source == "input" and value.name in read]
    constants = [value for value in b.values if value.source == "constant" and value.name in read]
    outputs = [value for value in b.values if value.source == "node" and value.name not in read]
    scale = SCALES[scale_name]
    largest = max((value.array.size for value in inputs + outputs), default=0)
    if not inputs or not outputs or not scale.least <= largest <= scale.most:
        raise Rejected("it is too small")
    if any(value.dtype == TEXT or value.dtype in NARROW or value.array.size == 0 for value in inputs + outputs):
        raise Rejected("strings, types of few bits and nothing at all are not measured")
    text, nodes = _text(b), b.nodes
    if b.rule_of_images and draws.chance(0.3):
        last = _last_channels(b, inputs)
        text, nodes = (f"{text}, channels last", last) if last else (text, nodes)
    if b.faults:
        text += f" (values of the reference; ONNX Runtime: {b.faults[0]})"
    info = lambda value: helper.make_tensor_value_info(value.name, NUMBER_OF[value.dtype], value.shape)
    graph = helper.make_graph(nodes, "form", [info(value) for value in inputs], [info(value) for value in outputs],
                              [to_tensor(value.array, value.name) for value in constants])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid(*each) for each in b.opsets.items()], ir_version=evaluate.IR_VERSION)
    dtype = str(inputs[0].dtype)
    return Form("", operator, dtype, scale_name, text, model, {value.name: value.array for value in inputs}, {value.name: value.array for value in outputs})


_IMAGES = {"Conv", "ConvTranspose", "MaxPool", "AveragePool", "LpPool", "GlobalAveragePool", "GlobalMaxPool", "BatchNormalization", "InstanceNormalization",
           "Resize", "LRN", "DepthToSpace", "SpaceToDepth", "GridSample", "PRelu"}


def _opset_of(kind):
    import onnx

    try:
        return OPSET if not onnx.defs.get_schema(kind, OPSET).deprecated else None
    except onnx.defs.SchemaError:
        return onnx.defs.get_schema(kind).since_version


def draw(seed, domain, kind, scale_name, place):
    """A form of the operator, or None where none came of the tries. `place` 0 is in float32 where that is possible; others are in
    another usual type."""
    operator = f"{domain}:{kind}" if domain else kind
    for attempt in range(TRIES):
        key = zlib.crc32(f"{seed} {operator} {scale_name} {place} {attempt}".encode())
        first = F32 if place == 0 else (F16, I64, U8, I32, BOOL)[(key + attempt) % 5] if attempt < TRIES // 2 else F32
        draws = FormDraws(key, SCALES[scale_name], first)
        opsets = {"": _opset_of(kind) if domain == "" else OPSET, "ai.onnx.ml": ML_OPSET, contrib.DOMAIN: 1}
        b = FormBuilder(draws, {name: version for name, version in opsets.items() if name in ("", domain)})
        b.opsets.setdefault("", OPSET)
        b.rule_of_images = domain == "" and kind in _IMAGES
        try:
            operators.add_one(b, kind, domain)
            form = _finished(b, operator, scale_name, draws)
        except (Rejected, evaluate.Invalid, IndexError, ZeroDivisionError, KeyError, ValueError, TypeError, OverflowError, MemoryError, AttributeError):
            continue
        if place and form.dtype == "float32" and attempt < TRIES - 1:
            continue
        form.name = f"{operator.replace(':', '.')}-{scale_name}-{place}"
        return form
    return None


def kinds():
    """All operators that the random graphs draw, but those whose values are random or no tensors."""
    left_out = {"RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Bernoulli", "If", "Loop", "Scan", "SequenceMap", "Identity", "Constant",
                "Shape", "Size"}
    found = operators.names(OPSET, ML_OPSET)
    newer = [each for each in operators.names(evaluate._newest_of_onnxruntime(), ML_OPSET) if each not in found]
    return [each for each in (*found, *newer) if each[1] not in left_out]
