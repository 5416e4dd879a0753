# SPDX-License-Identifier: Apache-2.0
"""Nodes of which ONNX Runtime or the reference is known to give what the text of ONNX rules out: its answers do not count for
models with them.

A row needs the reason. What the text leaves open is no fault: it is not drawn, or it is in docs/onnx-values.md.
"""

import dataclasses
from typing import Callable

from draws import NUMBER_OF, TEXT


@dataclasses.dataclass
class Fault:
    oracle: str
    kind: str  # the operator
    reason: str
    has: Callable  # of the node and a function that gives the number of a value's type, or None


FAULTS = (
    Fault("onnxruntime", "Expand", "of strings, elements but the first of a row are empty", lambda node, type_of: type_of(node.input[0]) == NUMBER_OF[TEXT]),
    *(Fault("reference", kind, "it reads neither lengths nor clip, input_forget, activations and their factors", lambda node, type_of: _is_special(node))
      for kind in ("RNN", "LSTM", "GRU")),
    *(Fault("onnxruntime", kind, "Softplus of a large number is infinite as its activation", lambda node, type_of: _has_softplus(node)) for kind in ("RNN", "LSTM", "GRU")),
    Fault("reference", "Pad", "it pads strings with the number 0", lambda node, type_of: type_of(node.input[0]) == NUMBER_OF[TEXT]),
    *(Fault("reference", kind, "its pads are negative where windows leave gaps", lambda node, type_of: _leaves_gaps(node)) for kind in ("MaxPool", "AveragePool")),
    Fault("reference", "Optional", "one without a value counts as one with", lambda node, type_of: not node.input),
    Fault("reference", "Normalizer", "MAX is that of absolute values", lambda node, type_of: any(each.s == b"MAX" for each in node.attribute)),
    Fault("onnxruntime", "Resize", "one scale for axes that count from the end changes none of them", lambda node, type_of: _has_policy_from_end(node)),
    Fault("reference", "Unique", "as the only output, elements are sorted where `sorted` is 0, too", lambda node, type_of: _is_unsorted(node)),
    Fault("reference", "Hardmax", "it works along one axis alone before version 13, too", lambda node, type_of: True),
    Fault("reference", "Loop", "without a condition it takes no turn", lambda node, type_of: len(node.input) < 2 or not node.input[1]),
    Fault("reference", "ConvTranspose", "all groups get the bias of the first one", lambda node, type_of: len(node.input) > 2 and any(each.name == "group" and each.i > 1 for each in node.attribute)),
    Fault("reference", "LRN", "it takes the batch for the channels", lambda node, type_of: True),
    Fault("reference", "LpPool", "it multiplies a mean, which leaves the padding out, by the size of a whole window",
          lambda node, type_of: any(each.name in ("pads", "auto_pad", "ceil_mode") for each in node.attribute)),
)


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


def _has_policy_from_end(resize):
    given = _given(resize)
    has_policy = "keep_aspect_ratio_policy" in given and given["keep_aspect_ratio_policy"].s != b"stretch"
    return has_policy and "axes" in given and any(axis < 0 for axis in given["axes"].ints)


def _is_unsorted(unique):
    given = _given(unique)
    return "sorted" in given and given["sorted"].i == 0 and not any(unique.output[1:])


def among(nodes, type_of, oracle):
    """The faults of an oracle that nodes meet."""
    kinds = {fault.kind for fault in FAULTS if fault.oracle == oracle}
    return [fault for node in nodes if node.op_type in kinds and node.domain in ("", "ai.onnx.ml")
            for fault in FAULTS if fault.oracle == oracle and fault.kind == node.op_type and fault.has(node, type_of)]
