# SPDX-License-Identifier: Apache-2.0
"""Nodes of which ONNX Runtime or the reference is known to give what the text of ONNX rules out: its answers do not count for
models with them.

A row needs the reason. What the text leaves open is no fault: it is not drawn, or it is in docs/onnx-values.md.
"""

import dataclasses
from typing import Callable

from onnx import TensorProto

from draws import NUMBER_OF, TEXT


@dataclasses.dataclass
class Known:
    """What is known of a model's values without running it: the numbers of their types and their shapes, by name."""

    opset: int
    numbers: dict
    shapes: dict


@dataclasses.dataclass
class Fault:
    oracle: str
    kind: str  # the operator
    reason: str
    has: Callable  # of the node and what is known of the values


FAULTS = (
    Fault("onnxruntime", "Expand", "of strings, elements but the first of a row are empty", lambda node, known: known.numbers.get(node.input[0]) == NUMBER_OF[TEXT]),
    *(Fault("reference", kind, "it reads neither lengths nor clip, input_forget, activations and their factors", lambda node, known: _is_special(node))
      for kind in ("RNN", "LSTM", "GRU")),
    *(Fault("onnxruntime", kind, "Softplus of a large number is infinite as its activation", lambda node, known: _has_softplus(node)) for kind in ("RNN", "LSTM", "GRU")),
    Fault("reference", "Pad", "it pads strings with the number 0", lambda node, known: known.numbers.get(node.input[0]) == NUMBER_OF[TEXT]),
    *(Fault("reference", kind, "its pads are negative where windows leave gaps", lambda node, known: _leaves_gaps(node)) for kind in ("MaxPool", "AveragePool")),
    Fault("reference", "AveragePool", "under ceil_mode, what the last window has beyond the image lies half in front of the image",
          lambda node, known: any(each.name == "ceil_mode" and each.i for each in node.attribute)),
    Fault("onnxruntime", "LpPool", "its pads are negative where windows leave gaps", lambda node, known: _leaves_gaps(node)),
    Fault("reference", "Optional", "one without a value counts as one with", lambda node, known: not node.input),
    Fault("reference", "Normalizer", "MAX is that of absolute values", lambda node, known: any(each.s == b"MAX" for each in node.attribute)),
    Fault("onnxruntime", "Resize", "axes that count from the end stay as they are", lambda node, known: _has_axes_from_end(node)),
    Fault("onnxruntime", "Resize", "an axis of scale 1 is not cropped", lambda node, known: any(each.s == b"tf_crop_and_resize" for each in node.attribute)),
    Fault("onnxruntime", "Col2Im", "of more than two axes, channels behind the first one are read from elsewhere", lambda node, known: known.shapes.get(node.input[1], [0])[0] != 2),
    *(Fault("onnxruntime", kind, "ThresholdedRelu leaves its threshold itself out, which is where clip and bounded functions hold what is larger", lambda node, known: _is_held_at_threshold(node))
      for kind in ("RNN", "LSTM", "GRU")),
    *(Fault("onnxruntime", kind, "numbers that Affine, ScaledTanh and ThresholdedRelu are not given are 0", lambda node, known: _lacks_numbers(node)) for kind in ("RNN", "LSTM", "GRU")),
    Fault("onnxruntime", "ReduceLogSumExp", "of integers, each exp becomes an integer before they are summed", lambda node, known: _is_of_integers(node, known)),
    Fault("onnxruntime", "ReduceLogSum", "of integers, the conversion of NaN and infinities is C++'s undefined one", lambda node, known: _is_of_integers(node, known)),
    Fault("onnxruntime", "TreeEnsembleClassifier", "of two classes it labels one by whether it is above 0, also with a label that is none of them",
          lambda node, known: _has_two_classes(node)),
    Fault("reference", "BatchNormalization", "before version 14 it takes the mean of what it is given", lambda node, known: 7 < known.opset < 14),
    Fault("reference", "Unique", "as the only output, elements are sorted where `sorted` is 0, too", lambda node, known: _is_unsorted(node)),
    *(Fault("reference", kind, "it works along one axis alone before version 13, too", lambda node, known: known.opset < 13) for kind in ("Softmax", "LogSoftmax", "Hardmax")),
    Fault("reference", "Loop", "without a condition it takes no turn", lambda node, known: len(node.input) < 2 or not node.input[1]),
    Fault("reference", "Loop", "of what turns give, it stacks rows alone: it joins matrices, and makes rows of scalars", lambda node, known: _stacks_others_than_rows(node)),
    Fault("reference", "ConvTranspose", "all groups get the bias of the first one", lambda node, known: len(node.input) > 2 and any(each.name == "group" and each.i > 1 for each in node.attribute)),
    Fault("reference", "LRN", "it takes the batch for the channels", lambda node, known: True),
    Fault("reference", "LpPool", "it multiplies a mean, which leaves the padding out, by the size of a whole window",
          lambda node, known: any(each.name in ("pads", "auto_pad", "ceil_mode") for each in node.attribute)),
)


def _is_of_integers(node, known):
    return known.numbers.get(node.input[0]) in (TensorProto.INT32, TensorProto.INT64, TensorProto.UINT32, TensorProto.UINT64)


def _given(node):
    return {each.name: each for each in node.attribute}


def _is_special(recurrent):
    lengths = len(recurrent.input) > 4 and recurrent.input[4]
    return bool(lengths) or any(each.name in ("clip", "input_forget", "activations", "activation_alpha", "activation_beta") for each in recurrent.attribute)


def _has_softplus(recurrent):
    given = _given(recurrent)
    return "activations" in given and b"Softplus" in given["activations"].strings


def _leaves_gaps(pool):
    given = _given(pool)
    strides = given["strides"].ints if "strides" in given else []
    return "auto_pad" in given and any(stride > size for stride, size in zip(strides, given["kernel_shape"].ints))


def _has_axes_from_end(resize):
    given = _given(resize)
    return "axes" in given and any(axis < 0 for axis in given["axes"].ints)


# Functions of recurrent operators that have an alpha, and those that have a beta, too.
_ALPHA, _BETA = {"Affine", "LeakyRelu", "ThresholdedRelu", "ScaledTanh", "HardSigmoid", "Elu"}, {"Affine", "ScaledTanh", "HardSigmoid"}


def _functions(recurrent):
    """The names of the functions that a node lists, each with its alpha and its beta; None for one that is not given."""
    given = _given(recurrent)
    alphas, betas = (iter(given[name].floats if name in given else []) for name in ("activation_alpha", "activation_beta"))
    names = [name.decode() for name in given["activations"].strings] if "activations" in given else []
    return [(name, next(alphas, None) if name in _ALPHA else None, next(betas, None) if name in _BETA else None) for name in names]


def _is_held_at_threshold(recurrent):
    """Whether a threshold is the bound of other functions, or the product of two such bounds, as a cell of LSTM is."""
    functions = _functions(recurrent)
    bounds = {1.0} | {alpha for name, alpha, _ in functions if name == "ScaledTanh" and alpha is not None}
    bounds |= {each.f for each in recurrent.attribute if each.name == "clip"}
    products = {one * other for one in bounds for other in bounds}
    return any(name == "ThresholdedRelu" and any(abs(bound - (1.0 if alpha is None else alpha)) < 1e-6 for bound in products) for name, alpha, _ in functions)


def _lacks_numbers(recurrent):
    return any(name in ("Affine", "ScaledTanh", "ThresholdedRelu") and (alpha is None or name in _BETA and beta is None) for name, alpha, beta in _functions(recurrent))


def _has_two_classes(trees):
    given = _given(trees)
    labels = [*given["classlabels_int64s"].ints] if "classlabels_int64s" in given else [*given["classlabels_strings"].strings] if "classlabels_strings" in given else []
    return len(labels) == 2 and "class_ids" in given and len(set(given["class_ids"].ints)) == 2


def _stacks_others_than_rows(loop):
    body = _given(loop)["body"].g
    carried = len(loop.input) - 2
    return any(not each.type.tensor_type.HasField("shape") or len(each.type.tensor_type.shape.dim) != 1 for each in body.output[1 + carried:])


def _is_unsorted(unique):
    given = _given(unique)
    return "sorted" in given and given["sorted"].i == 0 and not any(unique.output[1:])


def among(nodes, known, oracle):
    """The faults of an oracle that nodes meet."""
    kinds = {fault.kind for fault in FAULTS if fault.oracle == oracle}
    return [fault for node in nodes if node.op_type in kinds and node.domain in ("", "ai.onnx.ml")
            for fault in FAULTS if fault.oracle == oracle and fault.kind == node.op_type and fault.has(node, known)]
