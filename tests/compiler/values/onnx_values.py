#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The values that ONNX leaves open: what its reference and ONNX Runtime give, and the page about them.

    onnx_values.py --page            prints docs/onnx-values.md
    onnx_values.py --check PAGE      fails unless PAGE is what --page prints
    onnx_values.py --facts           runs the reference and ONNX Runtime, and writes what they give into onnx_values.txt:
        tests/support/environments.py --run tests/models/requirements/models.txt tests/compiler/values/onnx_values.py --facts

onnx_values.txt is the table. Its cases are blocks of lines "key: value", with an empty line between them:

    case        what it is about; its first word is the operator
    opset       18 if it is left out
    fixed       why its dimensions cannot be open
    node        a node that makes outputs, as tests/compiler/values/node_text.h reads it
    input NAME  what it takes
    text        what ONNX's text says
    reference, runtime   what they give: "OUTPUT = TENSOR" in a line each, or "fails"; written by --facts
    rewire      whose values Rewire gives: "reference", "runtime", "own OUTPUT = TENSOR" in a line each, or "fails" and a
                part of the message
    why         why so

The test onnx_values_test.cc holds Rewire to them.
"""

import argparse
import json
import os
import pathlib
import re
import sys
import warnings

TABLE = pathlib.Path(__file__).with_name("onnx_values.txt")
MOST_SHOWN = 9  # elements of a tensor on the page
KEYS = ("case", "opset", "fixed", "node", "input", "text", "reference", "runtime", "rewire", "why")
LISTS = ("node", "input", "reference", "runtime", "rewire")
HEAD = """# Values that ONNX leaves open

Where ONNX's text is silent or unclear, implementations differ. This page says for such values what the text says, what
onnx's reference evaluator and ONNX Runtime {runtime} give, and what Rewire gives and why. Where the text allows it, Rewire
does as ONNX Runtime does: that is where most models have been run before.

The page is made from `tests/compiler/values/onnx_values.txt` by `onnx_values.py --page` beside it. Each row is a test: the
model is run with its inputs given, with open dimensions, with constants that are folded when it is compiled, and without any
pass. All four give the values of the column Rewire.

"""


def read_table():
    """The lines before the first case, and the cases: dictionaries, with a list for each key of LISTS."""
    cases, head = [], []
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        if line.startswith("#"):
            head.append(line)
            continue
        key, value = line.split(": ", 1)
        name = key.split(" ", 1)[0]
        if name not in KEYS:
            raise SystemExit(f"onnx_values.txt: no key '{name}'")
        if name == "case":
            cases.append({key: [] for key in LISTS} | {"case": value})
        elif name in LISTS:
            cases[-1][name].append((key.split(" ", 1)[1] + ": " + value) if " " in key else value)
        else:
            cases[-1][name] = value
    return head, cases


def write_table(head, cases):
    lines = list(head)
    for case in cases:
        lines.append("")
        for key in KEYS:
            for value in case.get(key, []) if key in LISTS else [case[key]] if key in case else []:
                lines.append(f"input {value}" if key == "input" else f"{key}: {value}")
    TABLE.write_text("\n".join(lines) + "\n", encoding="utf-8")


# ---- running the others


def tensor_of(text):
    import ml_dtypes
    import numpy

    names = {"f16": numpy.float16, "bf16": ml_dtypes.bfloat16, "f32": numpy.float32, "f64": numpy.float64, "bool": bool}
    name, dims, values = re.fullmatch(r"(\w+)\[([\d, ]*)\] =(.*)", text).groups()
    dtype = names.get(name) or numpy.dtype({"i": "int", "u": "uint"}[name[0]] + name[1:])
    shape = [int(size) for size in dims.replace(",", " ").split()]
    words = values.split()
    count = 1
    for size in shape:
        count *= size
    if len(words) == 1:
        words *= count
    is_float = name in ("f16", "bf16", "f32", "f64")
    return numpy.array([float(word) if is_float else int(word) for word in words]).astype(dtype).reshape(shape)


def text_of(array):
    import ml_dtypes
    import numpy

    array = numpy.asarray(array)
    if array.dtype == ml_dtypes.bfloat16:
        name = "bf16"
    elif array.dtype == bool:
        name, array = "bool", array.astype(numpy.uint8)
    else:
        name = f"{array.dtype.kind}{8 * array.dtype.itemsize}"
    is_float = name in ("f16", "bf16", "f32", "f64")
    words = [f"{float(x):.9g}" if is_float else str(int(x)) for x in array.ravel()]
    return " ".join([f"{name}[{', '.join(map(str, array.shape))}] =", *words])


def node_of(line):
    import onnx

    outputs, kind, inputs, _, attributes = re.fullmatch(r"(.*?) = ([\w.]+)\(([^)]*)\)( <(.*)>)?", line).groups()
    values = {}
    for name, value in re.findall(r'(\w+) = (\[[^\]]*\]|"[^"]*"|[^,]+)', attributes or ""):
        number = lambda word: float(word) if any(c in word for c in ".naN") else int(word)  # noqa: E731
        if value.startswith('"'):
            values[name] = value.strip('"')
        elif value.startswith('["'):
            values[name] = re.findall(r'"([^"]*)"', value)
        elif value.startswith("["):
            values[name] = [number(word) for word in value[1:-1].replace(",", " ").split()]
        else:
            values[name] = number(value.strip())
    domain, _, kind = kind.rpartition(".")
    return onnx.helper.make_node(
        kind, [name.strip().strip('"') for name in inputs.split(",")], [name.strip() for name in outputs.split(",")], domain=domain, **values
    )


def model_of(case):
    import onnx

    nodes = [node_of(line) for line in case["node"]]
    inputs = {line.split(": ", 1)[0]: tensor_of(line.split(": ", 1)[1]) for line in case["input"]}
    infos = [onnx.helper.make_tensor_value_info(n, onnx.helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for n, a in inputs.items()]
    outputs = [name for name in nodes[-1].output if name]
    graph = onnx.helper.make_graph(nodes, "case", infos, [onnx.helper.make_empty_tensor_value_info(name) for name in outputs])
    opsets = [onnx.helper.make_opsetid("", int(case.get("opset", 18)))]
    opsets += [onnx.helper.make_opsetid(node.domain, 1) for node in nodes if node.domain]
    model = onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8)
    try:
        inferred = onnx.shape_inference.infer_shapes(model)
    except onnx.shape_inference.InferenceError:
        return model, inputs, outputs
    # ONNX Runtime wants types of outputs; its own inference checks shapes.
    for output in inferred.graph.output:
        if output.type.tensor_type.elem_type:
            output.type.tensor_type.ClearField("shape")
    return inferred, inputs, outputs


def facts_of(case):
    import onnx.reference
    import onnxruntime

    model, inputs, outputs = model_of(case)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4

    def reference():
        return onnx.reference.ReferenceEvaluator(model).run(None, inputs)

    def runtime():
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        return session.run(None, inputs)

    for key, run in (("reference", reference), ("runtime", runtime)):
        texts = in_a_process(lambda run=run: [text_of(value) for value in run()])
        failed = not isinstance(texts, list)
        case[key] = ["fails"] if failed else [f"{name} = {text}" for name, text in zip(outputs, texts, strict=True)]
        if failed:
            print(f"{case['case']}: {key}: {texts}", file=sys.stderr)


def in_a_process(body):
    """What body() returns, or the text of its error. Some integer divisions end the process."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            result = body()
        except Exception as error:  # noqa: BLE001: each has errors of its own
            result = (str(error).splitlines() or [type(error).__name__])[0][:200]
        with os.fdopen(writer, "w") as pipe:
            json.dump(result, pipe)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    return json.loads(text) if text else "the process ended"


def write_facts():
    import onnxruntime

    warnings.simplefilter("ignore")
    _, cases = read_table()
    for case in cases:
        facts_of(case)
    head = ["# Written by hand but for `reference` and `runtime`; see onnx_values.py.", f"# ONNX Runtime {onnxruntime.__version__}"]
    write_table(head, cases)


# ---- the page


def shown(tensor):
    """A tensor of the table, short enough for a cell."""
    form, _, values = tensor.partition(" = ")
    words = values.split()
    if not words:
        return form.removesuffix(" =")
    if form.endswith("[]") or form.endswith("[1]"):
        return words[0]
    return " ".join(words[:MOST_SHOWN]) + (" ..." if len(words) > MOST_SHOWN else "")


def shown_outputs(lines):
    if lines == ["fails"]:
        return "fails"
    outputs = [line.split(" = ", 1) for line in lines]
    if len(outputs) == 1:
        return shown(outputs[0][1])
    return "; ".join(f"{name}: {shown(tensor)}" for name, tensor in outputs)


def model_text(case):
    inputs = [line.split(": ", 1) for line in case["input"]]
    return "; ".join([f"`{node}`" for node in case["node"]] + [f"{name}: {shown(tensor)}" for name, tensor in inputs])


def answer(case):
    choice = case["rewire"][0]
    if choice in ("reference", "runtime"):
        return shown_outputs(case[choice])
    if choice.startswith("fails"):
        return "fails"
    return shown_outputs([line.removeprefix("own ") for line in case["rewire"]])


def page():
    head, cases = read_table()
    runtime = next(line.rsplit(" ", 1)[1] for line in head if line.startswith("# ONNX Runtime"))
    lines = [HEAD.format(runtime=runtime) + "| case | model | ONNX's text | reference | ONNX Runtime | Rewire | why |", "|---|---|---|---|---|---|---|"]
    for case in sorted(cases, key=lambda case: case["case"].lower()):
        cells = [case["case"], model_text(case), case["text"], shown_outputs(case["reference"]), shown_outputs(case["runtime"]), answer(case), case["why"]]
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--facts", action="store_true")
    parser.add_argument("--page", action="store_true")
    parser.add_argument("--check", type=pathlib.Path, metavar="PAGE")
    given = parser.parse_args()
    if given.facts:
        write_facts()
    if given.page:
        print(page(), end="")
    if given.check and given.check.read_text(encoding="utf-8") != page():
        raise SystemExit(f"{given.check} is not current: tests/compiler/values/onnx_values.py --page > docs/onnx-values.md")


if __name__ == "__main__":
    main()
