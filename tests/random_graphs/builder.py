# SPDX-License-Identifier: Apache-2.0
"""A graph under construction. Each value has the array that it has for the inputs drawn, so that rules can look at it."""

import dataclasses

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import contrib
import evaluate
import promised
from draws import BF16, BOOL, I64, NARROW, NUMBER_OF, TEXT, is_float

MOST_RANK = 7
# As exporters write them, and as they may be: spaces, quotes, other scripts, long ones.
NAMES_OF_VALUES = (*("v{}", "layer/v{}:0", "{}", "x.{}") * 3, "a value {}", "%{}, 'b' \"c\"", "größe_日本_{}", "n" * 300 + "{}")


class Rejected(Exception):
    """A node that a rule cannot make valid with what there is."""


@dataclasses.dataclass
class Value:
    name: str
    array: object  # a numpy array; a list for a sequence
    source: str  # input, constant, node, outer
    recipe: tuple = ("fixed",)  # of an input: how to draw it for other sizes
    dims: tuple = ()  # of an input: as declared

    @property
    def dtype(self):
        return self.array.dtype

    @property
    def shape(self):
        return self.array.shape

    @property
    def rank(self):
        return self.array.ndim

    @property
    def is_tensor(self):
        return isinstance(self.array, np.ndarray)


def to_tensor(array, name=""):
    """A TensorProto, also of types that numpy does not have."""
    if array.dtype == TEXT:
        return helper.make_tensor(name, TensorProto.STRING, array.shape, [each.encode() for each in array.ravel()])
    if array.dtype == BF16:
        return helper.make_tensor(name, TensorProto.BFLOAT16, array.shape, array.tobytes(), raw=True)
    return numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape), name)


class Builder:
    """Nodes and values of one graph. `parent` is the builder of the graph around it."""

    def __init__(self, draws, opsets, parent=None, constants_only=False):
        self.draws, self.opsets, self.parent = draws, opsets, parent
        self.values, self.nodes, self.initializers = [], [], []
        self.functions = parent.functions if parent else []
        self.signatures = parent.signatures if parent else {}  # the attributes that calls of functions give
        self.depth = parent.depth + 1 if parent else 0
        self.constants_only = constants_only  # no initializers: a function's body
        self.most_elements = parent.most_elements if parent else draws.most_elements
        self.untyped = set()  # values whose types inference does not know
        self.captured = {}  # values of outer graphs that this one reads
        self._names = parent._names if parent else [0, draws.choose(NAMES_OF_VALUES)]
        if parent is None:
            # Symbols by size: values of one symbol have one size, and two symbols may have the same.
            self.symbols = {}
            self.open = draws.chance(0.45)
            self.share = draws.chance(0.4)

    # Names and values.

    def name(self):
        self._names[0] += 1
        return self._names[1].format(self._names[0])

    def root(self):
        return self.parent.root() if self.parent else self

    def _keep(self, value):
        self.values.append(value)
        return value

    def _dims_of(self, shape):
        dims = []
        for size in shape:
            if not (self.open and self.draws.chance(0.5)):
                dims.append(size)
            elif self.draws.chance(0.06):
                dims.append(None)
            else:
                names = self.symbols.setdefault(size, [f"{self.draws.choose('NMKLT')}{size}"])
                if self.draws.chance(0.1) and len(names) < 3:
                    names.append(f"{names[0]}_{len(names)}")
                dims.append(self.draws.choose(names))
        return tuple(dims)

    def input(self, array, recipe=("fixed",)):
        """A new input of the model."""
        if self.parent:
            return self.root().input(array, recipe)
        shape_is_value = recipe[0] == "fixed"
        dims = tuple(array.shape) if shape_is_value and array.ndim else self._dims_of(array.shape)
        return self._keep(Value(self.name(), array, "input", recipe, dims))

    def constant(self, array):
        """An initializer or a Constant node; an equal one that is there may be shared."""
        if self.root().share:
            for value in self.values:
                same = value.source == "constant" and value.dtype == array.dtype and value.shape == array.shape
                if same and value.array.tobytes() == array.tobytes():
                    return value
        value = Value(self.name(), array, "constant")
        # Constant nodes of old versions have floats alone.
        as_node = self.draws.chance(0.2) and array.dtype != TEXT and self.opset() >= 9
        if self.constants_only or as_node:
            self.nodes.append(helper.make_node("Constant", [], [value.name], value=to_tensor(array)))
        else:
            self.initializers.append(to_tensor(array, value.name))
        return self._keep(value)

    def fresh(self, array, recipe=("fixed",), role="data"):
        as_input = {"data": 0.8, "weight": 0.2, "parameter": 0.25}[role]
        if self.constants_only or array.dtype in NARROW or not self.draws.chance(as_input):
            return self.constant(array)
        return self.input(array, recipe)

    def data(self, dtype, shape, role="data"):
        """A new tensor of random values. Weights are numbers: whether a window in the padding reads them is open."""
        if np.prod(shape, dtype=float) > self.most_elements:
            raise Rejected("it would be too large")
        style = "normal" if role == "weight" and self.draws.style in ("edges", "extremes") else None
        return self.fresh(self.draws.array(dtype, shape, style), ("data", dtype, style), role)

    def visible(self):
        """All tensors that a node here may read, the newest last."""
        outer = self.parent.visible() if self.parent and not self.constants_only else []
        return outer + [value for value in self.values if value.is_tensor]

    def find(self, fits, anywhere=0.75):
        """One of the values that fit, the newer ones more often; None without one, and now and then anyway."""
        if not self.draws.chance(anywhere):
            return None
        found = [value for value in self.visible() if fits(value)]
        if not found:
            return None
        return found[-1] if self.draws.chance(0.5) else self.draws.choose(found)

    def like(self, dtype, shape, role="data", fits=lambda value: True):
        """A value of this type and shape, there already or new."""
        shape = tuple(shape)
        if role == "weight" and self.root().share:
            found = self.find(lambda v: v.source == "constant" and v.dtype == dtype and v.shape == shape, 0.6)
        else:
            found = self.find(lambda v: v.dtype == dtype and v.shape == shape and fits(v), 0.7 if role == "data" else 0.15)
        made = found or self.data(dtype, shape, role)
        if not fits(made):
            raise Rejected("no tensor fits")
        return made

    def pick(self, dtypes, ranks=(0, 6), fits=lambda value: True, shape=None):
        """A tensor to work on: one that is there if any fits, else a new one (of `shape`, if that is given)."""
        dtypes = set(dtypes)
        found = self.find(lambda v: v.dtype in dtypes and ranks[0] <= v.rank <= ranks[1] and fits(v))
        if found:
            return found
        dtype = self.draws.dtype(sorted(dtypes, key=str))
        for attempt in range(20):
            style = None if attempt < 3 else "normal"  # some operators take numbers alone
            drawn = self.draws.shape(*ranks) if shape is None else tuple(shape)
            if np.prod(drawn, dtype=float) > self.most_elements:
                continue
            array = self.draws.array(dtype, drawn, style)
            if fits(Value("", array, "input")):
                return self.fresh(array, ("data", dtype, style))
        raise Rejected("no tensor fits")

    def close(self, value, axis):
        """An axis whose size attributes tell: it is not left open."""
        if value.source in ("node", "outer"):
            raise Rejected("its sizes follow from others")
        if value.source == "input":
            value.dims = (*value.dims[:axis], value.shape[axis], *value.dims[axis + 1:])
        return value

    def parameter(self, array, dtype=I64):
        """Integers that say what to do, such as axes: a constant or an input."""
        return self.fresh(np.array(array, dtype), role="parameter")

    def indices(self, shape, low, high, dtype=I64):
        """Positions from low to high - 1."""
        if high <= low:
            raise Rejected("there is nothing to index")
        return self.fresh(self.draws.integers(dtype, shape, low, high), ("range", dtype, low, high), "parameter")

    # Nodes.

    def node(self, kind, inputs, attributes=None, outputs=1, domain="", keep_outputs=None):
        """Adds a node and gives its outputs. Raises Rejected or evaluate.Invalid, and then adds nothing."""
        names = [value.name if value else "" for value in inputs]
        while names and not names[-1]:
            names.pop()
        if outputs > 1 and keep_outputs is None and domain != "own" and self.draws.chance(0.15):
            keep_outputs = self._some_outputs(kind, domain, outputs)
        wanted = [self.name() if keep_outputs is None or keep_outputs[i] else "" for i in range(outputs)]
        while wanted and not wanted[-1]:
            wanted.pop()
        if domain != "own" and not promised.has(domain, kind, self.opset(domain)) and self.draws.chance(0.9):
            raise Rejected("it is refused, as docs/operators.md says")
        attributes = dict(attributes or {})
        if domain == "" and self.opset() < 6:
            hint = self.schema(kind).attributes.get("consumed_inputs")
            if hint and (hint.required or self.draws.chance(0.4)):
                attributes.setdefault("consumed_inputs", [0] * len(names))
        proto = helper.make_node(kind, names, wanted, domain=domain, **attributes)
        if self.draws.chance(0.3):
            proto.name = f"{kind}_{self._names[0]}"
        return self.add(proto, [value for value in inputs if value])

    def _some_outputs(self, kind, domain, outputs):
        """Which outputs to name: those that are optional may be left out, also in the middle."""
        formal = self.schema(kind, domain).outputs
        optional = onnx.defs.OpSchema.FormalParameterOption.Optional
        kept = [not (i < len(formal) and formal[i].option == optional and self.draws.chance(0.6)) for i in range(outputs)]
        return kept if any(kept) else None

    def add(self, proto, inputs, captured=(), fits=lambda made: True):
        arrays = {value.name: value.array for value in [*inputs, *captured]}
        results, _ = evaluate.node(proto, arrays, self.opsets, self.functions)
        made = []
        for name, array in results.items():
            for part in array if isinstance(array, list) else [array]:
                # Optionals are made and read by rules that do not keep them.
                if not isinstance(part, np.ndarray) or part.dtype not in NUMBER_OF or part.size > self.most_elements or part.ndim > MOST_RANK:
                    raise Rejected("a result is too large, or of no type that is drawn")
            if isinstance(array, list) and not array:
                raise Rejected("an empty sequence does not show its type")
            made.append(Value(name, array, "node"))
        if not fits(made):
            raise Rejected("the results do not fit")
        self.nodes.append(proto)
        self.values += made
        self.untyped.update(value.name for value in made if proto.domain == contrib.DOMAIN)
        for value in [*inputs, *captured]:
            self._capture(value)
        return made

    def _capture(self, value):
        if self.parent and all(value is not own for own in self.values):
            self.captured[value.name] = value
            self.parent._capture(value)

    def cast(self, value, dtype):
        return self.node("Cast", [value], {"to": NUMBER_OF[dtype]})[0] if value.dtype != dtype else value

    def identity(self, value):
        return self.node("Identity", [value])[0]

    def opset(self, domain=""):
        return self.opsets[domain]

    def schema(self, kind, domain=""):
        return onnx.defs.get_schema(kind, self.opset(domain), domain)


def finite(value):
    """Whether all elements are numbers that integers of 32 bits can be made of."""
    if not is_float(value.dtype):
        return True
    array = value.array.astype(np.float64)
    return bool(np.all(np.abs(array) < 2**30)) if array.size else True


def numbers(value):
    """Whether no element is NaN or infinite: what some operators make of these is open (docs/onnx-values.md)."""
    return not is_float(value.dtype) or bool(np.isfinite(value.array.astype(np.float64)).all())


def is_condition(value):
    return value.dtype == BOOL and value.array.size == 1
