# SPDX-License-Identifier: Apache-2.0
"""Models in versions of ONNX's operators that others run. ONNX Runtime runs sets from 7 on, up to its newest; a model of an older set is
written here for set 8, node by node: attributes become inputs, and broadcasts that attributes describe become those of shapes. Written
for ONNX's text alone: the package's converter refuses or breaks most of these forms."""

import numpy as np
import onnx
from onnx import helper, numpy_helper

OLDEST_RUN = 7
# Sets up to 6 are written for this one.
RAISED = 8
_BROADCAST = {"Add", "Sub", "Mul", "Div", "Pow", "And", "Or", "Xor", "Equal", "Greater", "Less"}
_SAME_SHAPES = {"Max", "Min", "Mean", "Sum"}
# Attributes of old versions that say nothing of the values: what is overwritten, and what the newer version does anyway.
_SILENT = ("consumed_inputs", "broadcast", "is_test", "spatial")


class NotRaised(Exception):
    """A node that has no form in the newer set."""


def of(model):
    return next((each.version for each in model.opset_import if each.domain == ""), 1)


def raised(model):
    """The same model for a set that ONNX Runtime runs, if it is for an older one. Raises NotRaised."""
    version = of(model)
    if version >= OLDEST_RUN:
        return model
    shapes = _shapes(model)
    made = onnx.ModelProto()
    made.CopyFrom(model)
    for nodes in [made.graph, *made.functions]:
        _raise_all(nodes, version, shapes)
    del made.graph.value_info[:]
    for imports in [made.opset_import, *(each.opset_import for each in made.functions)]:
        for each in imports:
            each.version = RAISED if each.domain == "" else each.version
    return made


def _shapes(model):
    """The dimensions of all values of the outermost graph whose rank inference knows: a size, or None."""
    graph = onnx.shape_inference.infer_shapes(model).graph
    found = {tensor.name: list(tensor.dims) for tensor in graph.initializer}
    for each in (*graph.input, *graph.value_info, *graph.output):
        if each.type.tensor_type.HasField("shape"):
            found[each.name] = [dim.dim_value if dim.HasField("dim_value") else None for dim in each.type.tensor_type.shape.dim]
    return found


def _raise_all(graph, version, shapes):
    """The nodes of a graph, and those of the graphs within it."""
    nodes = []
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                _raise_all(attribute.g, version, shapes)
        nodes += _raise_one(node, version, shapes) if node.domain == "" else [node]
    nodes = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del graph.node[:]
    graph.node.extend(nodes)


def _raise_one(node, version, shapes):
    """The nodes that stand for one."""
    kind = node.op_type
    if any(each.ref_attr_name for each in node.attribute):
        raise NotRaised("an attribute is that of a call")
    given = {each.name: helper.get_attribute_value(each) for each in node.attribute}
    before, inputs = [], list(node.input)
    old = onnx.defs.get_schema(kind, version, "")
    wrong = [each.name for each in node.attribute if each.name not in old.attributes or int(old.attributes[each.name].type) != each.type]
    if len(inputs) > old.max_input or wrong:
        raise NotRaised(f"{kind} has other inputs or attributes in set {version}")

    def rank(name):
        if name not in shapes:
            raise NotRaised(f"the rank of {name} is not known")
        return len(shapes[name])

    def same_shapes():
        known = [shapes[name] for name in inputs if name in shapes and None not in shapes[name]]
        if any(each != known[0] for each in known):
            raise NotRaised(f"{kind} of set {version} does not broadcast")

    def constant(array):
        name = f"{node.output[0]}/raised{len(before)}"
        before.append(helper.make_node("Constant", [], [name], value=numpy_helper.from_array(array)))
        return name

    def ones_behind(name, count):
        made = f"{node.output[0]}/raised{len(before)}"
        before.append(helper.make_node("Unsqueeze", [name], [made], axes=[rank(name) + i for i in range(count)]))
        return made

    if kind in _BROADCAST and given.get("broadcast", 0):
        axis = given.pop("axis", None)
        behind = 0 if axis is None else rank(inputs[0]) - axis % max(rank(inputs[0]), 1) - rank(inputs[1])
        inputs[1] = ones_behind(inputs[1], behind) if behind > 0 else inputs[1]
    elif kind in _BROADCAST and "broadcast" in old.attributes:
        given.pop("axis", None)
        same_shapes()
    elif kind in _SAME_SHAPES:
        same_shapes()
    elif kind == "PRelu" and rank(inputs[1]) == 1:
        inputs[1] = ones_behind(inputs[1], rank(inputs[0]) - 2) if rank(inputs[0]) > 2 else inputs[1]
    elif kind == "Reshape" and version < 5:
        inputs = [inputs[0], constant(np.array(given.pop("shape", []), np.int64))]
    elif kind == "Pad" and version < 2:
        given["pads"] = given.pop("paddings")
    elif kind == "Concat" and version < 4:
        given.setdefault("axis", 1)
    elif kind == "GlobalLpPool" and version < 2:
        given["p"] = int(given.get("p", 2.0))
    new = onnx.defs.get_schema(kind, RAISED, "")
    given = {name: value for name, value in given.items() if name not in _SILENT or name in new.attributes}
    if new.deprecated or set(given) - set(new.attributes):
        raise NotRaised(f"{kind} has no form in set {RAISED}")
    return [*before, helper.make_node(kind, inputs, list(node.output), node.name, **given)]


def plain(model):
    """The same model, said so that others understand it: axes of a Resize count from the front, where the rank is known, and trees say
    where missing values go."""
    nodes = [node for each in [model.graph, *model.functions] for node in all_nodes(each.node)]
    if not any(_is_said_otherwise(node) for node in nodes):
        return model
    shapes = _shapes(model)
    made = onnx.ModelProto()
    made.CopyFrom(model)
    for node in [node for each in [made.graph, *made.functions] for node in all_nodes(each.node) if _is_said_otherwise(node)]:
        given = {each.name: each for each in node.attribute}
        if node.op_type == "Resize" and node.input[0] in shapes:
            given["axes"].ints[:] = [axis % len(shapes[node.input[0]]) for axis in given["axes"].ints]
        elif node.op_type != "Resize":
            node.attribute.append(helper.make_attribute("nodes_missing_value_tracks_true", [0] * len(given["nodes_modes"].strings)))
    return made


def _is_said_otherwise(node):
    given = {each.name: each for each in node.attribute}
    if node.op_type == "Resize":
        return "axes" in given and any(axis < 0 for axis in given["axes"].ints)
    is_tree = node.op_type in ("TreeEnsembleClassifier", "TreeEnsembleRegressor")
    has_nodes = "nodes_modes" in given and len(given["nodes_modes"].strings) > 0
    return is_tree and has_nodes and "nodes_missing_value_tracks_true" not in given


def lowered(model, newest):
    """The same model for the newest operators that a runtime takes, where those are the same."""
    version = of(model)
    if version <= newest:
        return model
    used = {node.op_type for nodes in [model.graph, *model.functions] for node in all_nodes(nodes.node) if node.domain == ""}
    for kind in used:
        if onnx.defs.get_schema(kind, version, "").since_version > newest:
            return model
    made = onnx.ModelProto()
    made.CopyFrom(model)
    for imports in [made.opset_import, *(each.opset_import for each in made.functions)]:
        for each in imports:
            each.version = newest if each.domain == "" else each.version
    return made


def all_nodes(nodes):
    for each in nodes:
        yield each
        for attribute in each.attribute:
            if attribute.HasField("g"):
                yield from all_nodes(attribute.g.node)
