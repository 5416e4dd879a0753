# SPDX-License-Identifier: Apache-2.0
"""Changes of a model's form that leave its meaning: how initializers are stored, what is declared and not read, and names of nodes.
Exporters write few of these forms, and files hold all of them. Not among them: sparse initializers, which ONNX's strict inference refuses."""

import onnx
from onnx import TensorProto, helper, numpy_helper

_TYPED = {TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.INT32, TensorProto.INT64, TensorProto.UINT8, TensorProto.INT8, TensorProto.UINT32,
          TensorProto.UINT64, TensorProto.UINT16, TensorProto.INT16, TensorProto.BOOL, TensorProto.FLOAT16}


def vary(draws, proto):
    """Changes the model in place."""
    graph = proto.graph
    for tensor in graph.initializer:
        if tensor.HasField("raw_data") and tensor.data_type in _TYPED and draws.chance(0.3):
            _as_typed(tensor)
    if draws.chance(0.1):
        _declare_inputs(draws, graph)
    if draws.chance(0.05):
        for place, node in enumerate(graph.node):
            node.name = f"a node, 'n\u00ba {place}'"
    if graph.node and draws.chance(0.05):
        graph.doc_string, graph.node[0].doc_string = "drawn at random", "the first one"
        helper.set_model_props(proto, {"drawn": "at random"})


def _as_typed(tensor):
    """The elements in the field of their type in place of bytes."""
    array = numpy_helper.to_array(tensor)
    tensor.CopyFrom(helper.make_tensor(tensor.name, tensor.data_type, tensor.dims, array.ravel().tolist()))


def _declare_inputs(draws, graph):
    """Initializers that are inputs as well: a caller who gives nothing gets them, and programs have them as constants."""
    for tensor in graph.initializer:
        if draws.chance(0.5):
            graph.input.append(helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims))


def save_outside(proto, folder):
    """Writes the model with its initializers in files beside it, and gives its path."""
    path = f"{folder}/model.onnx"
    copy = onnx.ModelProto()
    copy.CopyFrom(proto)
    onnx.save_model(copy, path, save_as_external_data=True, all_tensors_to_one_file=True, location="weights", size_threshold=0, convert_attribute=True)
    return path
