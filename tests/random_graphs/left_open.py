# SPDX-License-Identifier: Apache-2.0
"""What ONNX leaves open, by the values that a node reads. Where answers differ there, nobody is wrong: docs/onnx-values.md says what
Rewire gives. Rules draw none of it for the values at hand; it comes of other sizes, and of what nodes compute."""

import numpy as np
from onnx import numpy_helper

import contrib
import versions
from draws import is_float

_OPEN = {}


def _of(*kinds):
    """Registers a function of a node's attributes, its inputs in order (None for one that is left out) and its results. It gives what is
    open, or None."""
    def register(function):
        for kind in kinds:
            _OPEN.setdefault(kind, []).append(function)
        return function

    return register


def reason(node, inputs, results, again):
    """What the text leaves open of a node with these inputs by name, or None. `again` runs it with other inputs."""
    if node.op_type == "Loop":
        return _parts_of_a_stack(node, inputs, again)
    if node.op_type == "ConcatFromSequence":
        return _parts_of_a_sequence(node, inputs)
    if node.op_type in ("Scan", "If"):
        return _casts_within(node, inputs)
    given = {each.name: each for each in node.attribute}
    read = [inputs.get(name) if name else None for name in node.input]
    if node.domain not in ("", "ai.onnx.ml", contrib.DOMAIN) or not all(each is None or isinstance(each, np.ndarray) for each in read):
        return None
    return next(filter(None, (function(given, read, results) for function in _OPEN.get(node.op_type, ()))), None)


def _wide(array):
    return array.astype(np.float64) if array is not None and is_float(array.dtype) else np.zeros(0)


@_of("ReduceMean", "QLinearReduceMean", "GlobalAveragePool", "QLinearGlobalAveragePool", "ArgMax", "ArgMin", "ReduceLogSumExp", "GlobalMaxPool",
     "GlobalLpPool", "MeanVarianceNormalization", "InstanceNormalization", "DynamicQuantizeLinear", "Conv", "ConvTranspose", "MaxPool", "AveragePool",
     "LpPool", "RoiAlign", "MaxRoiPool")
def _of_nothing(given, read, results):
    return "what there is of no elements" if read[0].size == 0 else None


@_of("ArgMax", "ArgMin", "ReduceMax", "ReduceMin", "TopK", "Unique", "Hardmax", "MaxPool", "GlobalMaxPool", "Normalizer", "RoiAlign", "MaxRoiPool",
     "NonMaxSuppression", "LpNormalization", "Max", "Min")
def _order_of_nan(given, read, results):
    return "where NaN stands in an order" if any(np.isnan(_wide(each)).any() for each in read) else None


@_of("ScatterElements", "ScatterND")
def _reduction_of_nan(given, read, results):
    return _order_of_nan(given, read, results) if "reduction" in given and given["reduction"].s in (b"max", b"min") else None


@_of("ScatterND")
def _other_updates(given, read, results):
    """The reference does not look at these."""
    x, indices, updates = read
    return "updates of other sizes" if updates.shape != (*indices.shape[:-1], *x.shape[indices.shape[-1]:]) else None


@_of("QuantizeLinear", "DynamicQuantizeLinear")
def _step_of_no_number(given, read, results):
    return "which step is NaN or an infinity" if not np.isfinite(_wide(read[0])).all() else None


@_of("Cast", "CastLike")
def _out_of_range(given, read, results):
    wide = _wide(read[0])
    made = results[0].dtype
    if made.kind not in "iu" or not wide.size:
        return None
    info = np.iinfo(made)
    return "a number that an integer does not hold" if not (np.isfinite(wide) & (wide > info.min - 1.0) & (wide < info.max + 1.0)).all() else None


@_of("OneHotEncoder")
def _category_of_no_number(given, read, results):
    """Floats are cast to the integers of categories."""
    wide = _wide(read[0])
    return "a number that an integer does not hold" if not (np.abs(wide) < 2.0**63).all() else None


# BRANCH_NEQ of TreeEnsemble, whose modes are numbers.
_NEQ = 5


@_of("TreeEnsemble", "TreeEnsembleClassifier", "TreeEnsembleRegressor")
def _missing_beside_not_equal(given, read, results):
    """The text sends what is missing to the false branch, and NaN is not equal to anything."""
    modes = given["nodes_modes"]
    has_neq = b"BRANCH_NEQ" in modes.strings or modes.type == modes.TENSOR and _NEQ in numpy_helper.to_array(modes.t)
    return "which branch NaN takes that is not equal" if has_neq and np.isnan(_wide(read[0])).any() else None


def _casts_within(node, inputs):
    """Later turns of a body, and other values around it, have what the values at hand did not."""
    kinds = {each.op_type for attribute in node.attribute for each in versions.all_nodes(attribute.g.node)}
    finite = all(np.isfinite(_wide(each)).all() for each in inputs.values() if isinstance(each, np.ndarray))
    return "a number that an integer does not hold" if not finite and "OneHotEncoder" in kinds else None


@_of("Div", "Mod")
def _by_nothing(given, read, results):
    return "an integer by 0" if read[1].dtype.kind in "iu" and (read[1] == 0).any() else None


@_of("BitShift")
def _beyond_the_width(given, read, results):
    return "a shift beyond the width" if (read[1] >= read[1].dtype.itemsize * 8).any() else None


@_of("Softmax", "LogSoftmax")
def _hidden_row(given, read, results):
    hidden = np.isneginf(_wide(read[0])).any() and any(np.isnan(_wide(each)).any() for each in results)
    return "the shares of a row of negative infinities" if hidden else None


@_of("RNN", "LSTM", "GRU")
def _state_of_no_number(given, read, results):
    return "what follows from a sum that overflows" if not all(np.isfinite(_wide(each)).all() for each in results) else None


@_of("RNN", "LSTM", "GRU")
def _states_of_others(given, read, results):
    """ONNX's inference does not look at these, and ONNX Runtime not where there is nothing."""
    by_batch = "layout" in given and given["layout"].i
    ways, hidden = read[1].shape[0], read[2].shape[2]
    shape = (read[0].shape[0], ways, hidden) if by_batch else (ways, read[0].shape[1], hidden)
    if read[2].shape[0] != ways:
        return "states by other ways"
    return "states of other sequences" if any(each is not None and each.shape != shape for each in read[5:7]) else None


@_of("ReverseSequence")
def _longer_than_it_is(given, read, results):
    axis = given["time_axis"].i if "time_axis" in given else 0
    return "a sequence longer than its axis" if read[1].size and read[1].max() > read[0].shape[axis] else None


@_of("Resize")
def _scale_of_sizes(given, read, results):
    """Which scale a size means differs, but for factors in quarters, which are exact. What integers are rounded from is exact for 1 and 2."""
    if len(read) < 4 or read[3] is None:
        return None
    between = not is_float(read[0].dtype) and "mode" in given and given["mode"].s != b"nearest"
    factors = [made / size for size, made in zip(read[0].shape, results[0].shape) if size]
    exact = all(factor in (1, 2) if between else 4 * factor == int(4 * factor) for factor in factors)
    return None if exact else "which scale a size means"


@_of("Resize", "Upsample", "GridSample", "RoiAlign")
def _share_of_no_number(given, read, results):
    """The reference multiplies all neighbors by their shares, in the mode nearest by 0 and 1."""
    return "no part of NaN or an infinity" if not np.isfinite(_wide(read[0])).all() else None


@_of("MaxPool", "AveragePool", "LpPool", "Conv")
def _window_beyond_the_image(given, read, results):
    """Whether one window more or none fits where all of the image is smaller than one."""
    image = read[0].shape[2:]
    kernel = given["kernel_shape"].ints if "kernel_shape" in given else read[1].shape[2:]
    pads, dilations = (given[name].ints if name in given else [default] * 2 * len(image) for name, default in (("pads", 0), ("dilations", 1)))
    wide = [size + pads[i] + pads[i + len(image)] for i, size in enumerate(image)]
    return "a window larger than the image" if any((size - 1) * step + 1 > most for size, step, most in zip(kernel, dilations, wide)) and "auto_pad" not in given else None


@_of("RotaryEmbedding")
def _other_positions(given, read, results):
    """The reference broadcasts these."""
    words = (read[0].shape[0], read[0].shape[-2])
    positions = next((each for each in read if each is not None and each.dtype.kind == "i"), None)
    return "positions of other words" if positions is not None and positions.ndim == 2 and positions.shape != words else None


@_of("InstanceNormalization", "BatchNormalization", "GroupNormalization")
def _other_channels(given, read, results):
    """ONNX's inference does not look at these."""
    groups = given["num_groups"].i if "num_groups" in given else read[0].shape[1]
    return "factors of other channels" if read[1].size not in (read[0].shape[1], groups) else None


@_of("SkipLayerNormalization", "SkipSimplifiedLayerNormalization")
def _other_sizes(given, read, results):
    return "terms of other sizes" if read[1].shape[-len(read[0].shape):] != read[0].shape[-read[1].ndim:] else None


@_of("Attention", "MultiHeadAttention", "GroupQueryAttention")
def _hidden_key_of_no_number(given, read, results):
    return "a number for what a key that is NaN or an infinity gives" if not all(np.isfinite(_wide(each)).all() for each in read) else None


@_of("GroupQueryAttention")
def _behind_the_lengths(given, read, results):
    past, total = read[3], read[6]
    return "what a cache holds behind its lengths" if past is not None and past.shape[2] != int(total.ravel()[0]) - read[0].shape[1] else None


def _parts_of_a_sequence(node, inputs):
    """ONNX Runtime leaves out parts without elements, whatever their sizes are."""
    axis = next(each.i for each in node.attribute if each.name == "axis")
    is_new = any(each.name == "new_axis" and each.i for each in node.attribute)
    others = {part.shape if is_new else tuple(np.delete(part.shape, axis)) for part in inputs[node.input[0]]}
    return "parts of other sizes" if len(others) > 1 else None


def _parts_of_a_stack(loop, inputs, again):
    """What a loop stacks up has one shape. ONNX Runtime does not look at it, and only what it carries tells."""
    carried, count = loop.input[2:], inputs.get(loop.input[0])
    if count is None or len(loop.output) == len(carried):
        return None
    made = dict(zip([name for name in loop.output if name], again({**inputs, loop.input[0]: np.full_like(count, 1)})))
    changes = any(result and made[result].shape != inputs[name].shape for name, result in zip(carried, loop.output))
    return "a stack beside a value whose shape changes" if changes else None
