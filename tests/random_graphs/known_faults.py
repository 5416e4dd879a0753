# SPDX-License-Identifier: Apache-2.0
"""Nodes of which an oracle is known to give what the text of ONNX rules out: its answers do not count for models with them.

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
)


def among(nodes, type_of, oracle):
    """The faults of an oracle that nodes meet."""
    kinds = {fault.kind for fault in FAULTS if fault.oracle == oracle}
    return [fault for node in nodes if node.op_type in kinds and not node.domain
            for fault in FAULTS if fault.oracle == oracle and fault.kind == node.op_type and fault.has(node, type_of)]
