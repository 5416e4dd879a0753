#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""vm-run --against and --dump-values, with the real ONNX Runtime: plants wrong nodes in models and looks which one is named.

    against.py --bin build/release/bin --cases CASES

The planted models are written here; one has 500 nodes. CASES is what reference.py wrote: of some of its models, every value
that the program names must be ONNX Runtime's. Prints a line a check, exits with 1 when any is wrong.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

WIDTH = 24
LAYERS = 100
# The longest that a search in 500 nodes may take.
MOST_SECONDS = 30
# Models without quantized values, which round to another step now and then, whose values are compared one by one. They have
# images, attention, recurrent layers, trees, signal processing, tables of embeddings and floats of 16 bits.
NAMED = ["ocr_cls", "face_landmarks", "bert_mini", "silero_vad6", "forest", "mel_whisper", "lm_body", "magika"]


def floats(random, *shape):
    return (random.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32)


def finished(nodes, weights, inputs, outputs, name):
    model = helper.make_model(helper.make_graph(
        nodes, name,
        [helper.make_tensor_value_info(key, TensorProto.FLOAT, shape) for key, shape in inputs.items()],
        [helper.make_tensor_value_info(key, TensorProto.FLOAT, None) for key in outputs],
        [numpy_helper.from_array(array, key) for key, array in weights.items()]),
        opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    return model


def deep():
    """500 nodes: layers of five with a residual, so that a difference goes on by two ways."""
    random = np.random.default_rng(1)
    weights, nodes, last = {"tenth": np.float32(0.1)}, [], "x"
    for i in range(LAYERS):
        weights[f"w{i}"], weights[f"b{i}"] = floats(random, WIDTH, WIDTH), floats(random, WIDTH)
        for op, inputs, output in (("MatMul", [last, f"w{i}"], f"product{i}"), ("Add", [f"product{i}", f"b{i}"], f"biased{i}"),
                                   ("Tanh", [f"biased{i}"], f"active{i}"), ("Mul", [f"active{i}", "tenth"], f"scaled{i}"),
                                   ("Add", [f"scaled{i}", last], f"layer{i}")):
            nodes.append(helper.make_node(op, inputs, [output], name=f"{output}_node"))
        last = f"layer{i}"
    return finished(nodes, weights, {"x": [4, WIDTH]}, [last], "deep")


def images():
    """Convolutions, which become one kernel with what follows, and keep their channels last."""
    random = np.random.default_rng(2)
    weights, nodes, last = {}, [], "x"
    for i in range(6):
        weights[f"w{i}"] = (random.standard_normal((16, 16, 3, 3)) / 12).astype(np.float32)
        nodes.append(helper.make_node("Conv", [last, f"w{i}"], [f"conv{i}"], name=f"conv{i}_node", pads=[1, 1, 1, 1]))
        nodes.append(helper.make_node("Relu", [f"conv{i}"], [f"relu{i}"], name=f"relu{i}_node"))
        last = f"relu{i}"
        if i == 3:
            nodes.append(helper.make_node("MaxPool", [last], ["pool"], name="pool_node", kernel_shape=[2, 2], strides=[2, 2]))
            last = "pool"
    return finished(nodes, weights, {"x": [1, 16, 12, 12]}, [last], "images")


def branches():
    """An If inside an If, and a Loop, between ordinary nodes. x decides which branch is taken."""
    def branch(name, nodes, result):
        return helper.make_graph(nodes, name, [], [helper.make_tensor_value_info(result, TensorProto.FLOAT, None)])

    inner_then = branch("inner_then", [helper.make_node("Sin", ["scaled"], ["sine"], name="sine_node")], "sine")
    # The same name of a value as in the other branch.
    inner_else = branch("inner_else", [helper.make_node("Cos", ["scaled"], ["sine"], name="cosine_node")], "sine")
    then = branch("then", [
        helper.make_node("Mul", ["first", "factor"], ["scaled"], name="scaled_node"),
        helper.make_node("If", ["positive"], ["chosen"], name="inner_if", then_branch=inner_then, else_branch=inner_else),
        helper.make_node("Add", ["chosen", "factor"], ["then_result"], name="then_result_node")], "then_result")
    otherwise = branch("otherwise", [helper.make_node("Sub", ["first", "factor"], ["less"], name="less_node"),
                                     helper.make_node("Exp", ["less"], ["else_result"], name="else_result_node")],
                       "else_result")
    body = helper.make_graph(
        [helper.make_node("Mul", ["state", "half"], ["halved"], name="halved_node"),
         helper.make_node("Add", ["halved", "factor"], ["next"], name="next_node"),
         helper.make_node("Identity", ["going"], ["still"])],
        "body", [helper.make_tensor_value_info("turn", TensorProto.INT64, []),
                 helper.make_tensor_value_info("going", TensorProto.BOOL, []),
                 helper.make_tensor_value_info("state", TensorProto.FLOAT, None)],
        [helper.make_tensor_value_info("still", TensorProto.BOOL, []),
         helper.make_tensor_value_info("next", TensorProto.FLOAT, None)])
    nodes = [helper.make_node("Abs", ["x"], ["first"], name="first_node"),
             helper.make_node("ReduceSum", ["x"], ["sum"], name="sum_node", keepdims=0),
             helper.make_node("Greater", ["sum", "zero"], ["positive"], name="positive_node"),
             helper.make_node("If", ["positive"], ["branched"], name="outer_if", then_branch=then, else_branch=otherwise),
             helper.make_node("If", ["positive"], ["again"], name="second_if",
                              then_branch=branch("then2", [helper.make_node("Neg", ["branched"], ["scaled"],
                                                                            name="scaled_node")], "scaled"),
                              else_branch=branch("else2", [helper.make_node("Sqrt", ["branched"], ["scaled"],
                                                                            name="scaled_node")], "scaled")),
             helper.make_node("Loop", ["turns", "", "again"], ["looped"], name="loop_node", body=body),
             helper.make_node("Tanh", ["looped"], ["y"], name="y_node")]
    weights = {"factor": np.float32([1.5, 0.5]), "half": np.float32(0.5), "zero": np.float32(0), "turns": np.int64(3)}
    return finished(nodes, weights, {"x": [2]}, ["y"], "branches")


def all_nodes(graph):
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from all_nodes(attribute.g)


def copied(model):
    return onnx.ModelProto.FromString(model.SerializeToString())


def with_weight(model, name, change):
    """A copy in which `change` has changed a weight's elements."""
    other = copied(model)
    [tensor] = [tensor for tensor in other.graph.initializer if tensor.name == name]
    elements = numpy_helper.to_array(tensor).copy()
    change(elements)
    tensor.CopyFrom(numpy_helper.from_array(elements, name))
    return other


def with_operator(model, name, operator):
    """A copy in which the first node of this name has another operator."""
    other = copied(model)
    next(node for node in all_nodes(other.graph) if node.name == name).op_type = operator
    return other


def add_to(position, amount):
    def change(elements):
        elements[position] += amount
    return change


class Checks:
    def __init__(self, tools, scratch):
        self._tools, self._scratch = tools, scratch
        self.count = self.failures = 0

    def tell(self, what, problem):
        self.count += 1
        self.failures += problem is not None
        print(f"{'FAILED' if problem else 'ok    '} {what}" + (f"\n      {problem}" if problem else ""), flush=True)

    def run(self, tool, *arguments):
        return subprocess.run([str(part) for part in (self._tools / tool, *arguments)], capture_output=True, text=True,
                              timeout=300, check=False)

    def all_passes_off(self):
        """Options of vm-compile."""
        onnx.save(deep(), self._scratch / "any.onnx")
        done = self.run("vm-compile", self._scratch / "any.onnx", "-o", self._scratch / "any.rwx", "--json")
        return [part for name in json.loads(done.stdout)["passes"] for part in ("--disable-pass", name)]

    def against(self, given, expected, inputs=("--random",), compiled=()):
        """Exit code, report, output and seconds of vm-run for one model beside another. `compiled` has options of vm-compile;
        None: vm-run gets the .onnx itself."""
        onnx.save(given, self._scratch / "given.onnx")
        onnx.save(expected, self._scratch / "expected.onnx")
        program = self._scratch / "given.onnx"
        if compiled is not None:
            program = self._scratch / "given.rwx"
            done = self.run("vm-compile", self._scratch / "given.onnx", "-o", program, *compiled)
            if done.returncode:
                raise RuntimeError(done.stderr)
        begin = time.monotonic()
        done = self.run("vm-run", program, *inputs, "--against", self._scratch / "expected.onnx", "--python", sys.executable,
                        "--json")
        return done.returncode, json.loads(done.stdout), done.stderr, time.monotonic() - begin

    def names(self, what, given, expected, node, most_nodes=1, value=None, **more):
        """The planted node must be named, among at most so many."""
        code, report, error, seconds = self.against(given, expected, **more)
        first = report.get("against", {}).get("first", {})
        found = [entry["name"] for entry in first.get("nodes", [])]
        problem = None
        if code != 1 or not first:
            problem = f"exit code {code}, {error or report}"
        elif node not in found or len(found) > most_nodes:
            problem = f"names {found}"
        elif value is not None and first["value"] != value:
            problem = f"the value is {first['value']}, expected {value}"
        elif any(entry["state"] not in ("equal", "input", "constant") for entry in first["inputs"]):
            problem = f"inputs {first['inputs']}"
        elif seconds > MOST_SECONDS:
            problem = f"took {seconds:.1f} s"
        self.tell(f"{what}: {', '.join(found)} by {report.get('against', {}).get('compared')} values in {seconds:.1f} s", problem)
        return first

    def equal(self, what, model, **more):
        code, report, error, seconds = self.against(model, model, **more)
        right = code == 0 and report["against"]["equal"] and "first" not in report["against"]
        self.tell(f"{what}: no node differs, in {seconds:.1f} s", None if right else f"exit code {code}, {error or report}")


def check_planted(checks):
    model = deep()
    assert len(model.graph.node) == 500
    checks.equal("500 nodes", model)
    checks.equal("500 nodes, compiled by vm-run", model, compiled=None)
    for layer in (0, 1, 37, 50, 98, 99):
        planted = with_weight(model, f"w{layer}", add_to((3, 5), 1))
        # The product, its bias, its activation and the factor behind it are one kernel.
        first = checks.names(f"a weight of layer {layer}", planted, model, f"product{layer}_node", 4, f"scaled{layer}")
        states = {entry["name"]: entry["state"] for entry in first.get("inputs", [])}
        if states.get(f"w{layer}") != "constant" or states.get(f"layer{layer - 1}" if layer else "x") not in ("equal", "input"):
            checks.tell(f"what layer {layer} is made of", f"is {states}")
    # Without passes each value is there.
    plain = checks.all_passes_off()
    for layer in (0, 55, 99):
        planted = with_weight(model, f"w{layer}", add_to((3, 5), 1))
        checks.names(f"a weight of layer {layer}, without passes", planted, model, f"product{layer}_node", 1, compiled=plain)
        planted = with_weight(model, f"b{layer}", add_to(3, 1))
        checks.names(f"a bias of layer {layer}, without passes", planted, model, f"biased{layer}_node", 1, compiled=plain)
    for layer in (2, 64):
        checks.names(f"the operator of layer {layer}", with_operator(model, f"active{layer}_node", "Atan"), model,
                     f"active{layer}_node", 3, compiled=() if layer == 2 else None)
    checks.names("the sum of layer 77", with_operator(model, "layer77_node", "Sub"), model, "layer77_node", 2)

    first = checks.names("NaN in a weight", with_weight(model, "w42", add_to((0, 0), np.nan)), model, "product42_node", 4)
    if (first.get("given"), first.get("max_abs")) != ("nan", "inf"):
        checks.tell("NaN", f"is reported as {first}")
    # Both have NaN from layer 10 on: that alone is no difference.
    spoiled = with_weight(model, "b10", add_to(7, np.nan))
    checks.equal("NaN on both sides", spoiled)

    model = images()
    checks.equal("images", model)
    for layer in range(6):
        planted = with_weight(model, f"w{layer}", add_to(4, 0.5))
        checks.names(f"a convolution {layer}", planted, model, f"conv{layer}_node", 2, f"relu{layer}")

    model = branches()
    positive, negative = ("--input", "x=2xf32=1,2"), ("--input", "x=2xf32=-1,-2")
    for inputs in (positive, negative):
        checks.equal("branches", model, inputs=inputs)
    for node, operator, inputs in (("scaled_node", "Add", positive), ("sine_node", "Cos", positive),
                                   ("then_result_node", "Sub", positive), ("less_node", "Add", negative),
                                   ("else_result_node", "Abs", negative), ("y_node", "Sin", positive)):
        checks.names(f"{node} in a branch", with_operator(model, node, operator), model, node, 3, inputs=inputs)
    checks.names("a node in a loop", with_operator(model, "halved_node", "Add"), model, "loop_node", 1, inputs=positive)


def check_together(checks, scratch):
    """A stripped program with its map, on the inputs of a recorded call."""
    model = deep()
    onnx.save(model, scratch / "model.onnx")
    onnx.save(with_weight(model, "w20", add_to((3, 5), 1)), scratch / "wrong.onnx")
    steps = (("vm-compile", scratch / "wrong.onnx", "-o", scratch / "wrong.rwx"),
             ("vm-strip", scratch / "wrong.rwx", "-o", scratch / "small.rwx", "--map", scratch / "names.json"),
             ("vm-run", scratch / "model.onnx", "--random", "--seed", 5, "--record", scratch / "call"))
    for step in steps:
        done = checks.run(*step)
        if done.returncode:
            raise RuntimeError(done.stderr)
    # The call has no map: it is of another model.
    done = checks.run("vm-run", scratch / "small.rwx", "--map", scratch / "names.json", "--replay", scratch / "call",
                      "--function", "main", "--against", scratch / "model.onnx", "--python", sys.executable)
    right = done.returncode == 1 and "MatMul 'product20_node'" in done.stdout
    checks.tell("a stripped program on a recorded call", None if right else done.stdout + done.stderr)
    done = checks.run("vm-run", scratch / "wrong.rwx", "--replay", scratch / "call")
    right = done.returncode == 1 and "layer99: differs from output-0.npy in " in done.stdout
    checks.tell("another build on a recorded call", None if right else done.stdout + done.stderr)


def check_errors(checks, scratch):
    model = deep()
    onnx.save(model, scratch / "given.onnx")
    (scratch / "broken.onnx").write_text("no model")
    run = ("vm-run", scratch / "given.onnx", "--random", "--python", sys.executable, "--against")
    done = checks.run(*run, scratch / "broken.onnx")
    expected = f"vm-run: error: {scratch}/broken.onnx: ONNX Runtime: "
    checks.tell("a broken model", None if done.returncode == 18 and done.stderr.startswith(expected) else done.stderr)
    other = copied(model)
    other.graph.node[-1].output[0] = other.graph.output[0].name = "another"
    onnx.save(other, scratch / "other.onnx")
    done = checks.run(*run, scratch / "other.onnx")
    right = done.returncode == 11 and "has no output that is a tensor of numbers" in done.stderr
    checks.tell("another model", None if right else done.stderr)


def named_values(checks, program, case, scratch):
    """Values by their names, of those that the run made once."""
    inputs = [part for path in sorted((case / "in").glob("*.npy")) for part in ("--input", f"{path.stem}=@{path}")]
    done = checks.run("vm-run", program, *inputs, "--dump-values", scratch / "values", "--output", f"@{scratch / 'out.npz'}")
    if done.returncode:
        raise RuntimeError(done.stderr)
    files = {}
    for entry in json.loads((scratch / "values" / "index.json").read_text())["values"]:
        if entry["value"] and entry["file"]:
            files.setdefault(entry["value"], []).append(entry["file"])
    return {name: np.load(scratch / "values" / paths[0]) for name, paths in files.items() if len(paths) == 1}


def check_names(checks, folder, scratch):
    """A program that says that it has a value of the model has it, whatever passes made of it."""
    case = min(path for path in folder.iterdir() if path.is_dir())
    done = checks.run("vm-compile", folder / "model.onnx", "-o", scratch / "model.rwx")
    if done.returncode:
        raise RuntimeError(done.stderr)
    given = named_values(checks, scratch / "model.rwx", case, scratch)
    model = onnx.load(folder / "model.onnx")
    made = {name for node in model.graph.node for name in node.output}
    names = [name for name in given if name in made]
    outputs = {value.name for value in model.graph.output}
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names if name not in outputs)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    expected = session.run(names, {path.stem: np.load(path) for path in (case / "in").glob("*.npy")})
    wrong = []
    for name, value in zip(names, expected):
        if not isinstance(value, np.ndarray) or value.dtype.kind not in "fiub":
            continue
        found = given[name]
        if found.shape != value.shape or found.dtype.kind != value.dtype.kind:
            wrong.append(f"{name} is {found.dtype}{list(found.shape)}, expected {value.dtype}{list(value.shape)}")
            continue
        found, value = found.astype(np.float64), value.astype(np.float64)
        allowed = 1e-4 * (np.nanmax(np.abs(value), initial=0) + np.abs(value))
        if not (np.array_equal(np.isnan(found), np.isnan(value)) and (np.nan_to_num(np.abs(found - value)) <= allowed).all()):
            wrong.append(f"{name} differs")
    least = len(made) // 20 + 1
    if len(names) < least:
        wrong.append(f"{len(names)} of {len(made)} values have names, expected {least}")
    checks.tell(f"{folder.name}: {len(names)} of {len(made)} values have names", "; ".join(wrong[:3]) or None)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--cases", type=pathlib.Path, required=True)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        checks = Checks(options.bin.resolve(), scratch)
        check_planted(checks)
        check_together(checks, scratch)
        check_errors(checks, scratch)
        for name in NAMED:
            room = scratch / name
            room.mkdir()
            check_names(checks, options.cases / name, room)
        print(f"{checks.count} checks, {checks.failures} failed")
        return 1 if checks.failures or not checks.count else 0


if __name__ == "__main__":
    sys.exit(main())
