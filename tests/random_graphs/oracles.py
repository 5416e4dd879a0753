# SPDX-License-Identifier: Apache-2.0
"""What a model gives by others: ONNX Runtime without its optimizations, the onnx package's reference, and the reference with
float64 in place of other floats. Each may lack operators or types."""

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper

import evaluate
import known_faults
import left_open
import retype
from builder import to_tensor
from draws import BF16, DTYPES, F32, HALVES, TEXT, is_float

# How far a float may be from an oracle, by type: in parts of the element, and of the largest element of its tensor. A sum of a
# thousand terms in another order loses five bits of float32's 24. A fused kernel, or one of 16 bits that computes in float32,
# skips roundings that the oracle makes, and so is off by a few of them.
TOLERANCES = {
    np.dtype(np.float64): (1e-6, 1e-6),  # normalizations of float64 may compute in float32: their stash_type
    np.dtype(np.float32): (1e-4, 2e-5),
    np.dtype(np.float16): (2e-2, 1e-2),
    BF16: (0.2, 0.05),
}
# Oracles that differ by rounding show how much a model magnifies it; what is computed may be so many times as far off. Where they are
# farther apart than so many tolerances, one of them may just be wrong: then other roundings must explain it.
SPREADS = 8
MOST_TOLERANCES_APART = 5
MOST_SPREAD = 0.02
MOST_OF_ELEMENT = 0.1
# How much a model magnifies roundings is seen where nodes round otherwise, by so much of an element, by the roughest type of a
# model: some tens of roundings. Elements near a border fall on either side, so that it is tried some times.
ROUNDED = {None: 4e-6, np.dtype(np.float16): 2e-3, BF16: 2e-2}
TRIES = 8
_ROUNDED = "rounded otherwise"


# Interpolations round weights of their own, so that results may be whole by chance. What is quantized is divided first.
_INTERPOLATES = {"Resize", "Upsample", "GridSample", "RoiAlign", "AffineGrid"}
_QUANTIZES = {"QuantizeLinear", "DynamicQuantizeLinear"}
# What a result is rounded by at least, where it is the difference of larger numbers: the logarithm of a share of almost 1 is almost 0, and so
# is 1 and the error function of a negative number.
_LEAST = dict.fromkeys(("LogSoftmax", "Gelu", "BiasGelu", "FastGelu"), 1.0)


# What moves elements, or says what they are, does not round within bodies, either.
_MOVES = {"Identity", "Transpose", "Reshape", "Squeeze", "Unsqueeze", "Flatten", "Concat", "Split", "Slice", "Gather", "Expand", "Tile", "Pad", "Cast", "CastLike", "Constant",
          "ConstantOfShape", "Relu", "Neg", "Abs", "Max", "Min", "Where", "If", "Loop", "Scan"}


class Open(Exception):
    """A result that ONNX leaves open, so that nobody is wrong."""


def _interpolates(node):
    return node.op_type in _INTERPOLATES and all(each.s != b"nearest" for each in node.attribute if each.name == "mode")


def _rounds(node, inputs, results):
    """Whether results may hold roundings: some are floats that are neither whole numbers nor elements of the inputs."""
    if not inputs or node.op_type in ("Cast", "CastLike"):
        return False
    if _interpolates(node) or node.op_type in _QUANTIZES:
        return True
    floats = [each.astype(np.float64) for each in results if isinstance(each, np.ndarray) and is_float(each.dtype)]
    given = [each.astype(np.float64).ravel() for each in inputs.values() if isinstance(each, np.ndarray) and each.dtype != TEXT]
    known = np.concatenate([np.empty(0), *given])
    return any(not np.all(~np.isfinite(each) | (each == np.rint(each)) | np.isin(each, known)) for each in floats)


def _faults(proto, oracle):
    nodes = list(evaluate.all_nodes(evaluate.outermost(proto)))
    if not {fault.kind for fault in known_faults.FAULTS if fault.oracle == oracle} & {node.op_type for node in nodes}:
        return []
    return known_faults.among(nodes, evaluate.known(proto), oracle)


class Noise:
    """Other roundings of floats. The first two are all upwards and all downwards, so that what is at a border falls on either side. The third
    makes whole numbers of what is near them, as powers of negative numbers need."""

    def __init__(self, seed, by):
        self._draws, self._by, self._sign = np.random.Generator(np.random.PCG64(seed)), by, {0: 1.0, 1: -1.0}.get(seed)
        self._to_whole = seed == 2

    def _directions(self, shape):
        return self._draws.uniform(-1, 1, shape) if self._sign is None else np.full(shape, self._sign)

    def moved(self, array, by_largest=False, exact_too=False, least=0.0):
        if not isinstance(array, np.ndarray) or not is_float(array.dtype) or not array.size:
            return array
        wide = array.astype(np.float64)
        if np.all(wide == np.rint(wide)) and not exact_too:  # such as the exponent of a square
            return array
        size = np.abs(wide[np.isfinite(wide)]).max(initial=least) if by_largest else np.maximum(np.abs(wide), least)
        made = wide + self._by * self._directions(array.shape) * size
        if self._to_whole:
            made = np.where(np.abs(wide - np.rint(wide)) <= self._by * size, np.rint(wide), made)
        limits = ml_dtypes.finfo(array.dtype)
        # The largest number stays one, and below the least normal one functions may end at 0.
        made = np.where(np.isfinite(wide), np.clip(made, -float(limits.max), float(limits.max)), wide)
        vanishes = (np.abs(wide) < float(limits.tiny)) & (self._directions(array.shape) < 0)
        return np.asarray(np.where(vanishes, 0, made)).astype(array.dtype)

    def in_bodies(self, model):
        """The same model whose bodies round otherwise."""
        made = onnx.shape_inference.infer_shapes(model)
        for node in made.graph.node:
            self._shake(node)
        return made

    def _shake(self, node):
        for body in (each.g for each in node.attribute if each.HasField("g")):
            types = {each.name: each.type.tensor_type.elem_type for each in (*body.value_info, *body.output)}
            nodes = []
            for each in body.node:
                self._shake(each)
                own = onnx.NodeProto.FromString(each.SerializeToString())
                nodes.append(own)
                for place, name in enumerate(each.output if each.op_type not in _MOVES else ()):
                    dtype = DTYPES.get(types.get(name), (None,))[0]
                    if dtype is not None and is_float(dtype):
                        factor = np.asarray(1 + self._by * self._directions(())).astype(dtype)
                        own.output[place] = f"{name}/exact"
                        nodes += [helper.make_node("Constant", [], [f"{name}/factor"], value=to_tensor(factor)), helper.make_node("Mul", [f"{name}/exact", f"{name}/factor"], [name])]
            del body.node[:]
            body.node.extend(nodes)

    def changed(self, node, inputs, results, again, model):
        """Other results of a node (evaluate.node_by_node)."""
        has_body = any(each.HasField("g") for each in node.attribute)
        if not has_body and not _rounds(node, inputs, results):
            return results
        # Winograd's form adds multiples of neighbors up, so that the largest one counts for all. A scale that moves as what it divides
        # does would hide it.
        convolves, first = node.op_type == "Conv", node.op_type in _QUANTIZES
        try:
            moved = {name: array if first and name != node.input[0] else self.moved(array, convolves) for name, array in inputs.items()}
            others = again(moved, self.in_bodies(model)) if has_body else again(moved)
        except evaluate.Invalid:  # some say what to do, such as scales of a Resize
            others = results
        if [getattr(each, "shape", None) for each in others] != [getattr(each, "shape", None) for each in results]:
            others = results
        return [self.moved(each, convolves, _interpolates(node), _LEAST.get(node.op_type, 0.0)) for each in others]


class Oracles:
    """The answers of all that can run a model with these inputs. Each is asked for when those before it do not agree with what
    is judged: most models need only the first."""

    def __init__(self, proto, feeds):
        self._proto, self._feeds = proto, feeds
        self._plain = evaluate.inlined(proto)
        self._flat = evaluate.flat(self._plain)
        self._found, self.failures, self._left_open = {}, {}, None
        self.rough = retype.narrowest(proto, retype.upstream(proto, [each.name for each in proto.graph.output]))
        self._left = [
            ("onnxruntime", self._by_onnxruntime),
            ("node by node", self._node_by_node),
            ("expanded", self._expanded),
            ("reference", lambda: self._by_reference(self._flat, feeds)),
            ("float64", lambda: self._in_float64((TensorProto.FLOAT,))),
            ("halves in float32", lambda: self._halves_in_float32() if self.rough else None),
            ("all in float64", lambda: self._in_float64(retype.WIDENED) if self.rough else None),
            ("reference node by node", self._reference_node_by_node),
            *((f"{_ROUNDED} {seed}", lambda seed=seed: self._rounded_otherwise(seed)) for seed in range(TRIES)),
        ]
        while self._left[0][0] != "reference":
            self._ask()

    def _ask(self):
        """Asks the next oracle."""
        name, answer = self._left.pop(0)
        try:
            found = answer()
            if found is not None:
                self._found[name] = found
        except (evaluate.Invalid, KeyError) as error:
            self.failures[name] = str(error)

    def _without_faults(self, model, oracle):
        """Node by node, a fault is that of a node; here it is that of the whole model."""
        faults = _faults(model, oracle)
        if faults:
            raise evaluate.Invalid(f"lacks: {faults[0].kind} is known to be wrong: {faults[0].reason}")
        return model

    def _by_onnxruntime(self):
        self._without_faults(self._plain, "onnxruntime")
        return evaluate.by_onnxruntime(evaluate.lowered(self._proto), self._feeds)

    def _expanded(self):
        if not evaluate.is_expanded(self._flat):
            raise evaluate.Invalid("lacks: it has nothing to expand")
        return evaluate.by_onnxruntime(evaluate.lowered(self._without_faults(self._flat, "onnxruntime")), self._feeds)

    def _by_reference(self, model, feeds):
        return evaluate.by_reference(self._without_faults(model, "reference"), feeds)

    def _node_by_node(self):
        """The reference alone is weak: it leaves parts of some operators out."""
        lacks = self.failures.get("onnxruntime", "").startswith("lacks")
        return evaluate.node_by_node(self._flat, self._feeds) if lacks else None

    def _in_float64(self, types):
        model, feeds = retype.model(self._flat, TensorProto.DOUBLE, np.float64, types), retype.feeds(self._feeds, np.float64, types)
        return self._by_reference(model, feeds)

    def _halves_in_float32(self):
        """ONNX Runtime lacks types of 16 bits for many operators."""
        types = (TensorProto.FLOAT16, TensorProto.BFLOAT16)
        model = retype.model(self._without_faults(self._flat, "onnxruntime"), TensorProto.FLOAT, F32, types)
        return evaluate.by_onnxruntime(evaluate.lowered(model), retype.feeds(self._feeds, F32, types))

    def _reference_node_by_node(self):
        """Where the reference does not run the model, all nodes but those that it lacks."""
        return evaluate.node_by_node(self._flat, self._feeds, reference_first=True) if "reference" not in self._found else None

    def _rounded_otherwise(self, seed):
        """What comes of nodes that round in other ways. Casts, comparisons, and nodes that move elements do not round."""
        return evaluate.node_by_node(self._flat, self._feeds, changed=Noise(seed, ROUNDED[self.rough]).changed)

    def _open_values(self):
        """(names of a node's outputs, what is open of them) of nodes of which ONNX leaves the results open, with these inputs."""
        if self._left_open is None:
            self._left_open = []

            def look(node, inputs, results, again, _):
                told = left_open.reason(node, inputs, results, again)
                if told:
                    self._left_open.append((set(node.output), f"{node.op_type}: {told}"))
                return results

            try:
                evaluate.node_by_node(self._flat, self._feeds, changed=look)
            except evaluate.RuledOut as error:
                self._left_open.append((None, str(error)))
            except (evaluate.Invalid, KeyError):
                pass  # nobody says
        return self._left_open

    def raise_if_open(self, names):
        """Raises Open where ONNX leaves one of these outputs open, or rules the sizes out."""
        found, _ = retype.upstream(self._flat, names)
        for outputs, told in self._open_values():
            if outputs is None or not found.isdisjoint(outputs):
                raise Open(told)

    @property
    def answers(self):
        """Of all but those that round otherwise."""
        while self._left and not self._left[0][0].startswith(_ROUNDED):
            self._ask()
        return {name: each for name, each in self._found.items() if not name.startswith(_ROUNDED)}

    @property
    def answers_so_far(self):
        """Of those that were asked."""
        return [each for name, each in self._found.items() if not name.startswith(_ROUNDED)]

    @property
    def runtime(self):
        """The answer of ONNX Runtime; empty without one."""
        return self._found.get("onnxruntime", [])

    @property
    def valid(self):
        """Whether the model runs with these inputs. The reference alone takes shapes that do not fit."""
        return not {"onnxruntime", "node by node", "expanded"}.isdisjoint(self._found)

    def problem(self, place, given):
        """What is wrong with an output, or None. Raises Open."""
        rough = self.rough and retype.narrowest(self._proto, retype.upstream(self._proto, [self._proto.graph.output[place].name]))
        while True:
            base = self._found.get("float64") or next(iter(self.answers_so_far), None)
            moved = [answer[place] for name, answer in self._found.items() if name.startswith(_ROUNDED)]
            moved = [base[place], *moved] if base and moved else []
            wrong = problem(given, [answer[place] for answer in self.answers_so_far if answer[place] is not None], rough, moved)
            if not wrong:
                return None
            if not self._left:
                self.raise_if_open([self._proto.graph.output[place].name])
                return wrong
            self._ask()


def problem(given, expected, rough=None, moved=()):
    """None if each element is one of those expected, or near it. `rough` is a type that values in between are rounded to. `moved`
    are the answers of nodes that round otherwise, behind one of nodes that do not."""
    every = [*expected, *moved[1:]]
    if isinstance(given, list) or any(isinstance(each, list) for each in every):
        lists = [each for each in every if isinstance(each, list) and len(each) == len(given)]
        if not lists:
            return f"a sequence of {len(given)}, expected {[len(each) for each in every]}"
        problems = [problem(part, [each[i] for each in lists], rough) for i, part in enumerate(given)]
        return next((each for each in problems if each), None)
    narrow = [each for each in every if each.dtype == given.dtype]
    if not narrow:
        return f"is {given.dtype}, expected {' or '.join(sorted({str(each.dtype) for each in every}))}"
    if not any(each.shape == given.shape for each in narrow):
        return f"is {list(given.shape)}, expected {' or '.join(sorted({str(list(each.shape)) for each in narrow}))}"
    if given.dtype == TEXT or not is_float(given.dtype):
        return _exact_problem(given, _alike(given, every), _alike(given, moved))
    others = [each.astype(np.float64) for each in moved if isinstance(each, np.ndarray) and each.shape == given.shape]
    return _float_problem(given, _alike(given, expected) or _alike(given, every), rough, others)


def _exact_problem(given, alike, moved):
    right = np.zeros(given.shape, bool)
    for each in alike:
        right |= np.asarray(given == each, bool)
    if len(moved) > 1 and given.dtype.kind in "iu":  # what is rounded to an integer lies among those of other roundings
        right |= (given >= np.min(moved, axis=0)) & (given <= np.max(moved, axis=0))
    return _first(right, given, alike)


def _alike(given, expected):
    """Those that have the form of what is given, floats in its type."""
    return [each.astype(given.dtype) if is_float(each.dtype) else each for each in expected
            if each.shape == given.shape and (each.dtype == given.dtype or is_float(given.dtype) and each.dtype == np.float64 or given.dtype in HALVES and each.dtype == F32)]


def _float_problem(given, expected, rough, moved):
    relative, absolute = max(TOLERANCES[given.dtype], TOLERANCES.get(rough, (0, 0)))
    wide = given.astype(np.float64)
    exact = [each.astype(np.float64) for each in expected]
    others = exact + moved[1:]
    # Functions end at different distances from where they reach their limit.
    smallest = max(float(ml_dtypes.finfo(given.dtype).tiny), 1e-12)
    finite = [np.where(np.isfinite(each), each, 0) for each in exact]
    largest = min(max(np.abs(each).max(initial=0), 0) for each in finite)
    apart = np.max(finite, axis=0, initial=-np.inf) - np.min(finite, axis=0, initial=np.inf)
    # Oracles that are far apart contradict each other, unless a few roundings take the element as far.
    spread = apart.max(initial=0)
    spread = spread if spread <= min(MOST_TOLERANCES_APART * absolute, MOST_SPREAD) * largest else 0
    shaken = np.max([np.nan_to_num(np.abs(each - moved[0]), nan=0, posinf=0) for each in moved[1:]], axis=0, initial=0) if moved else np.zeros(given.shape)
    farthest = shaken.max(initial=0)
    # Where all are near each other, how far apart oracles are anywhere counts for each element.
    near = farthest <= MOST_SPREAD * largest
    right = np.zeros(given.shape, bool)
    for each in others:
        slack = SPREADS * np.maximum(spread, shaken) if near else np.minimum(SPREADS * np.maximum(shaken, np.minimum(apart, farthest)), MOST_OF_ELEMENT * np.abs(each))
        limit = relative * np.abs(each) + absolute * largest + slack + smallest
        right |= (wide == each) | (np.isnan(wide) & np.isnan(each)) | (np.abs(wide - each) <= limit)
    for each in moved[1:]:  # what a few roundings change by so much says no more than how large it is
        right |= (np.abs(each - moved[0]) > MOST_OF_ELEMENT * np.abs(moved[0])) & (np.abs(wide - moved[0]) <= SPREADS * farthest)
    # Where a sum overflows depends on its order: oracles that disagree on whether an element is a number say nothing about it. Nor do
    # they where other roundings make a number of it, such as of the root of what is almost 0.
    kinds = [np.isnan(each) + 2 * np.isposinf(each) + 4 * np.isneginf(each) for each in others]
    for kind in kinds[1:]:
        right |= kind != kinds[0]
    return _first(right, given, expected)


def _first(right, given, expected):
    if right.all():
        return None
    place = tuple(int(i) for i in np.argwhere(~right)[0])
    several = ", ".join(f"{each[place]!s:.24}" for each in expected)
    return f"{int((~right).sum())} of {right.size} differ; at {list(place)} {given[place]!s:.24}, expected {several}"
