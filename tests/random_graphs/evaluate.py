# SPDX-License-Identifier: Apache-2.0
"""Evaluates and checks nodes and models by what is not ours: the onnx package and ONNX Runtime."""

import functools
import logging
import warnings

import numpy as np
import onnx
import onnx.inliner
import onnxruntime
from onnx import TypeProto, helper
from onnx.reference import ReferenceEvaluator

import contrib
import expansions
import known_faults
import left_open
import versions
from draws import DTYPES, NARROW, NUMBER_OF, TEXT
from versions import all_nodes

# Models are written for this version of the format unless their operators ask for a newer one.
IR_VERSION = 10
_NARROW = {NUMBER_OF[dtype] for dtype in NARROW}
# What onnxruntime refuses because it does not have it, as opposed to what is not valid.
_LACKS = ("NOT_IMPLEMENTED", "NotImplemented", "not implemented", "is under development", "not currently supported",
          "Could not find an implementation", "Unsupported model IR version", "is not a registered function/op",
          "not supported", "unsupported", "Numpy_type", "No corresponding Numpy type", "Type 'tensor(", "not yet supported", "No Op registered for")

warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)
np.seterr(all="ignore")
contrib.register()
onnxruntime.set_default_logger_severity(4)


class Invalid(Exception):
    """A node or model that nobody runs."""


class RuledOut(Invalid):
    """A node that ONNX's inference refuses, with the sizes and constants at hand."""


def session_options(optimize=False):
    options = onnxruntime.SessionOptions()
    level = onnxruntime.GraphOptimizationLevel
    options.graph_optimization_level = level.ORT_ENABLE_ALL if optimize else level.ORT_DISABLE_ALL
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    return options


def type_of(array):
    """The TypeProto of a tensor or a list (a sequence). Raises Invalid."""
    if array is None or isinstance(array, list) and not array:
        raise Invalid("an empty sequence and an optional without a value do not show their types")
    if isinstance(array, list):
        return helper.make_sequence_type_proto(helper.make_tensor_type_proto(NUMBER_OF[array[0].dtype], None))
    return helper.make_tensor_type_proto(NUMBER_OF[array.dtype], array.shape)


def normal(result):
    """A result as numpy has it: scalars are arrays, strings are objects."""
    if isinstance(result, (list, tuple)):
        return [normal(each) for each in result]
    if result is None:
        return None
    result = np.asarray(result)
    return result.astype(TEXT) if result.dtype.kind in "US" else result


def by_onnxruntime(model, feeds, optimize=False):
    """All outputs. Raises Invalid, with `lacks` in front where the runtime lacks an operator or a type."""
    try:
        runtime = onnxruntime.InferenceSession(model.SerializeToString(), session_options(optimize), providers=["CPUExecutionProvider"])
        wanted = {each.name for each in runtime.get_inputs()}
        return [normal(each) for each in runtime.run(None, {k: v for k, v in feeds.items() if k in wanted})]
    except Exception as error:  # its classes have no common base but this one
        text = str(error)
        raise Invalid(("lacks: " if any(word in text for word in _LACKS) else "onnxruntime: ") + text[:600]) from None


@functools.lru_cache(None)
def _newest_of_onnxruntime():
    """The newest operators that the runtime takes without complaint."""
    for version in range(onnx.defs.onnx_opset_version(), 1, -1):
        one = helper.make_node("Identity", ["x"], ["y"])
        try:
            by_onnxruntime(_model_of(one, {"x": np.zeros(1, np.float32)}, {"": version}, ()), {"x": np.zeros(1, np.float32)})
            return version
        except Invalid:
            continue
    return 1


def lowered(model):
    """The same model in a version of the operators that the runtime takes."""
    try:
        return versions.lowered(versions.plain(versions.raised(contrib.with_presents(model))), _newest_of_onnxruntime())
    except versions.NotRaised as error:
        raise Invalid(f"lacks: {error}") from None


def inlined(model):
    """The same model with its functions written out, with the attributes of calls, and as others understand it (versions.plain)."""
    return versions.plain(onnx.inliner.inline_local_functions(_with_defaults(model)) if model.functions else model)


def _with_defaults(model):
    """The same model whose calls give all attributes: the inliner does not know defaults of functions."""
    defaults = {(each.domain, each.name): each.attribute_proto for each in model.functions}
    made = onnx.ModelProto()
    made.CopyFrom(model)
    for call in all_nodes(outermost(made)):
        given = {each.name for each in call.attribute}
        call.attribute.extend(each for each in defaults.get((call.domain, call.op_type), ()) if each.name not in given)
    return made


def flat(model):
    """The same model for a set that others run, inlined(), and with operators as what they stand for (expansions.py)."""
    try:
        return expansions.expanded(versions.raised(inlined(model)))
    except versions.NotRaised:
        return inlined(model)


def is_expanded(model):
    return any("/expanded" in name for node in all_nodes(model.graph.node) for name in (*node.input, *node.output))


def outermost(model):
    """The nodes of the graph and of the functions, without those within them."""
    return [node for nodes in [model.graph.node, *(each.node for each in model.functions)] for node in nodes]


def known(model):
    """What inference knows of the values of the outermost graph."""
    graph = onnx.shape_inference.infer_shapes(model).graph
    infos = {each.name: each.type.tensor_type for each in (*graph.input, *graph.value_info, *graph.output)}
    numbers = {name: kind.elem_type for name, kind in infos.items()} | {tensor.name: tensor.data_type for tensor in graph.initializer}
    shapes = {name: [dim.dim_value for dim in kind.shape.dim] for name, kind in infos.items() if kind.HasField("shape")}
    return known_faults.Known(versions.of(model), numbers, shapes | {tensor.name: list(tensor.dims) for tensor in graph.initializer})


def known_of(arrays, opset):
    tensors = {name: array for name, array in arrays.items() if isinstance(array, np.ndarray)}
    return known_faults.Known(opset, {name: NUMBER_OF.get(array.dtype) for name, array in tensors.items()}, {name: list(array.shape) for name, array in tensors.items()})


def node_by_node(model, feeds, reference_first=False, changed=None):
    """As onnxruntime, but nodes that it lacks are the reference's; or the other way round. `changed` gives other results for
    those of a node, of the node, its inputs, its results, a function that runs it with other inputs or as another model, and its own model."""
    opsets = {each.domain: each.version for each in model.opset_import}
    values = {tensor.name: normal(_array(tensor)) for tensor in model.graph.initializer}
    values.update(feeds)
    for each in model.graph.node:
        read = {name: values[name] for part in all_nodes([each]) for name in part.input if name in values}
        read.update({name: values[name] for name in _given(each) if name in values})
        one = _model_of(each, read, opsets, model.functions)
        inferred = _inferred(each, read, opsets, model.functions)
        for output in one.graph.output:
            output.type.CopyFrom(inferred[output.name])
        results = _by_either(each, one, read, reference_first)
        if changed:
            results = changed(each, read, results, lambda others, instead=None: _by_either(each, instead or one, others, reference_first), one)
        values.update(zip([name for name in each.output if name], results))
    return [values[each.name] for each in model.graph.output]


def _by_either(node, model, feeds, reference_first):
    """The results of a model of one node, by the one of the two that has it."""
    values = known_of(feeds, versions.of(model))
    is_call = any(each.name == node.op_type and each.domain == node.domain for each in model.functions)
    nodes = list(all_nodes(outermost(model) if is_call else [node]))
    oracles = [("onnxruntime", lambda: by_onnxruntime(lowered(model), feeds)), ("reference", lambda: by_reference(model, feeds))]
    if not _NARROW.isdisjoint(each.type.tensor_type.elem_type for each in model.graph.output):
        oracles = oracles[1:]  # the runtime gives some of these types as their bits
    if node.domain == contrib.DOMAIN:
        oracles.append(("onnxruntime", lambda: by_onnxruntime(lowered(flat(model)), feeds)))
    last = None
    for name, answer in reversed(oracles) if reference_first else oracles:
        try:
            if known_faults.among(nodes, values, name):
                raise Invalid(f"lacks: {node.op_type} is known to be wrong")
            return answer()
        except Invalid as error:
            # What ONNX Runtime has, and refuses, is not valid.
            if name == "onnxruntime" and not str(error).startswith("lacks"):
                raise
            last = error
    raise last


def _given(proto):
    """What the bodies of a node give as they are."""
    return [output.name for attribute in proto.attribute if attribute.HasField("g") for output in attribute.g.output]


def _array(tensor):
    if tensor.data_type == onnx.TensorProto.STRING:
        return np.array([each.decode() for each in tensor.string_data], object).reshape(tuple(tensor.dims))
    return onnx.numpy_helper.to_array(tensor)


def by_reference(model, feeds):
    try:
        return [normal(each) for each in ReferenceEvaluator(versions.plain(versions.raised(model))).run(None, dict(feeds))]
    except Exception as error:  # anything may come out of it
        raise Invalid(f"reference: {type(error).__name__}: {str(error)[:300]}") from None


def check(model):
    """Raises Invalid where ONNX's checker or its strict inference of shapes finds fault."""
    try:
        onnx.checker.check_model(model, full_check=True)
        return onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)
    except Exception as error:  # ValidationError, InferenceError, TypeError
        raise Invalid(f"checker: {str(error)[:300]}") from None


def _model_of(node, arrays, opsets, functions, types=None):
    inputs = [helper.make_value_info(name, (types or {}).get(name) or type_of(array)) for name, array in arrays.items()]
    outputs = [helper.make_value_info(name, TypeProto()) for name in node.output if name]
    graph = helper.make_graph([node], "one", inputs, outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid(*each) for each in opsets.items()],
                             ir_version=IR_VERSION, functions=functions)


def _inferred(node, arrays, opsets, functions):
    """The types of the node's outputs, by strict inference."""
    model = _model_of(node, arrays, opsets, functions)
    # Constants are known to inference, as they are in the whole model.
    for name, array in arrays.items():
        if isinstance(array, np.ndarray) and array.dtype.kind == "i" and array.ndim <= 1 and array.size <= 64:
            model.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    try:
        found = onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)
    except Exception as error:  # InferenceError, TypeError
        raise RuledOut(f"inference: {str(error)[:300]}") from None
    return {each.name: each.type for each in found.graph.output}


def _fits(results, types, names):
    """Whether results have the types and shapes that inference gives."""
    for result, name in zip(results, names):
        kind = types[name]
        if isinstance(result, np.ndarray) and kind.HasField("tensor_type") and kind.tensor_type.elem_type:
            if kind.tensor_type.elem_type not in DTYPES or result.dtype != DTYPES[kind.tensor_type.elem_type][0]:
                return False
            dims = kind.tensor_type.shape.dim
            if kind.tensor_type.HasField("shape") and (len(dims) != result.ndim or any(dim.HasField("dim_value") and dim.dim_value != size for dim, size in zip(dims, result.shape))):
                return False
    return True


def node(proto, arrays, opsets, functions=()):
    """The results of one node, by the first of the two evaluators that runs it and follows its types. Raises Invalid."""
    names = [name for name in proto.output if name]
    types = _inferred(proto, arrays, opsets, functions)
    try:
        results = by_reference(_model_of(proto, arrays, opsets, functions), arrays)
        if _fits(results, types, names):
            return dict(zip(names, results)), types
    except Invalid:
        pass
    model = _model_of(proto, arrays, opsets, functions)
    for output in model.graph.output:
        output.type.CopyFrom(types[output.name])
    try:
        results = by_onnxruntime(lowered(model), arrays)
    except Invalid:
        if proto.domain != contrib.DOMAIN:
            raise
        results = by_onnxruntime(lowered(flat(model)), arrays)
    if not _fits(results, types, names):
        raise Invalid("its results do not have the types that inference gives")
    return dict(zip(names, results)), types
