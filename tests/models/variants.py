#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every float model as people shrink it, in float16, in bf16 and in 8 bits, compiled, run and compared with ONNX Runtime.

    variants.py --bin build/release/bin --cases CASES [--model NAME]... [--variant NAME]... [--keep FOLDER]

CASES is what reference.py wrote. A model without quantized operators is made into each of VARIANTS, the quantized ones by onnxruntime's
own tools. TOLERANCES says what is right. Prints a line a run, and one for each variant that the tools do not make or
ONNX Runtime does not load. Exits with 1 when any run is wrong or failed, or when there was none.
"""

import argparse
import contextlib
import dataclasses
import io
import json
import logging
import pathlib
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnxruntime import quantization

import catalog
import check
import reference


@dataclasses.dataclass(frozen=True)
class Tolerance:
    """An output is right if no element is further than `near` from ONNX Runtime's for the same variant, in parts of the
    largest value, or if its error is at most `times` ONNX Runtime's own. Errors are those of the variant against the
    float original: root of the mean square, in parts of that of the original."""

    near: float
    times: float
    reason: str


STATIC = "static"
INT8 = "precision"  # vm-compile quantizes it, and ONNX Runtime runs "static"
BF16 = "bf16"  # vm-compile rounds it

# What vm-compile promises for its samples (--max-error), and the least part of the products with kernels of integers that
# it must quantize, of all models together: a wrong quantizer would keep its promise with floats.
MOST_ON_SAMPLES = 0.05
LEAST_QUANTIZED = 0.65
# The least part of all products that must compute in bf16: f32 is exact, too.
LEAST_IN_BF16 = 0.5

QUANTIZED = Tolerance(2 / 255, 1.25, "two steps of 8 bits, for a rounding that falls the other way moves a value by one; "
                      "behind many layers such steps add up, and then neither answer is nearer to what is meant")
FOUND_WHEN_RUN = Tolerance(3 / 255, 1.25, "three steps of 8 bits: scales are found in each run, so that a rounding that falls the "
                           "other way moves a whole range. ocr_cls moves by 0.011 if it only keeps its channels first")
TOLERANCES = {
    "float16": Tolerance(4 / 1024, 3, "four steps of float16: both round at operators, but fuse other ones; a logarithm "
                         "of small powers makes more of it"),
    STATIC: QUANTIZED,
    # Here `near` is for the variant's own error: other operators are quantized than by ONNX Runtime's tools, and these
    # have seen the inputs that are judged.
    INT8: Tolerance(2.5 * MOST_ON_SAMPLES, 1.25, "vm-compile lets outputs move by MOST_ON_SAMPLES on its samples; those "
                    "are two, of other random numbers, and what is judged it has not seen"),
    # Here, too, `near` is for the variant's own error. ONNX Runtime runs the float model.
    BF16: Tolerance(0.08, 0, "a bf16 has 8 bits: products move by 0.002 of their norm, and deep models add that up. The most "
                    "is 0.062, of a map that is 0 or 1; of 82 runs 78 are below 0.03"),
    "operators": QUANTIZED,
    "channels": QUANTIZED,
    "dynamic": FOUND_WHEN_RUN,
    "subgraphs": FOUND_WHEN_RUN,
}


class OwnInputs(quantization.CalibrationDataReader):
    """The model's cases as calibration data."""

    def __init__(self, cases):
        self._left = [inputs_of(case) for case in cases]

    def get_next(self):
        return self._left.pop(0) if self._left else None


def inputs_of(case):
    return {path.stem: np.load(path) for path in sorted((case / "in").glob("*.npy"))}


def outputs_of(case):
    return [np.load(case / "out" / f"{i}.npy") for i in range(len(json.loads((case / "out" / "names.json").read_text())))]


def halved(tensor):
    """A float tensor in float16; what is too large for it becomes its largest value."""
    limit = np.finfo(np.float16).max
    return onnx.numpy_helper.from_array(
        np.clip(onnx.numpy_helper.to_array(tensor), -limit, limit).astype(np.float16), tensor.name)


def halve_type(kind):
    """Tensors of float in a type, also inside sequences and optionals, become float16."""
    which = kind.WhichOneof("value")
    if which in ("sequence_type", "optional_type"):
        halve_type(getattr(kind, which).elem_type)
    elif which == "tensor_type" and kind.tensor_type.elem_type == onnx.TensorProto.FLOAT:
        kind.tensor_type.elem_type = onnx.TensorProto.FLOAT16


def halve_graph(graph):
    """All floats of a graph and those inside it."""
    for value in (*graph.input, *graph.output, *graph.value_info):
        halve_type(value.type)
    for tensor in graph.initializer:
        if tensor.data_type == onnx.TensorProto.FLOAT:
            tensor.CopyFrom(halved(tensor))
    nodes = list(graph.node)
    del graph.node[:]
    for node in nodes:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                halve_graph(attribute.g)
            elif attribute.type == onnx.AttributeProto.TENSOR and attribute.t.data_type == onnx.TensorProto.FLOAT:
                attribute.t.CopyFrom(halved(attribute.t))
            elif attribute.name in ("to", "dtype") and attribute.i == onnx.TensorProto.FLOAT:
                attribute.i = onnx.TensorProto.FLOAT16
        if node.op_type in ("Resize", "Upsample"):  # their scales stay in float
            position = len(node.input) - 1 if node.op_type == "Upsample" else 2
            if len(node.input) > position and node.input[position]:
                wide = f"{node.input[position]}.wide.{len(graph.node)}"
                graph.node.append(onnx.helper.make_node("Cast", [node.input[position]], [wide], to=onnx.TensorProto.FLOAT))
                node.input[position] = wide
        graph.node.append(node)


def make_float16(model, _, made):
    """By a conversion of our own: that of onnxruntime 1.31 writes graphs that cannot be loaded around Scan, and clips to
    10,000."""
    halves = onnx.load(model)
    halve_graph(halves.graph)
    onnx.save(halves, made)


def prepared(model, made):
    """The model as onnxruntime's own preparation leaves it: weights in Constant nodes have become initializers."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.optimized_model_filepath = str(made.with_suffix(".prepared"))
    options.log_severity_level = 3
    onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    return made.with_suffix(".prepared")


def make_static(model, cases, made, **options):
    quantization.quantize_static(prepared(model, made), made, OwnInputs(cases), **options)


def make_operators(model, cases, made):
    make_static(model, cases, made, quant_format=quantization.QuantFormat.QOperator, per_channel=True)


def make_channels(model, cases, made):
    unsigned = quantization.QuantType.QUInt8
    make_static(model, cases, made, per_channel=True, reduce_range=True, activation_type=unsigned)


def make_dynamic(model, _, made, **options):
    quantization.quantize_dynamic(prepared(model, made), made, **options)


def make_subgraphs(model, _, made):  # without this option nothing inside Loop, Scan and If is touched
    unsigned = quantization.QuantType.QUInt8
    make_dynamic(model, None, made, weight_type=unsigned, extra_options={"EnableSubgraph": True})


# Parts of less than this norm are no parts: a detector that sees nothing gives probabilities of 1e-7, with an error that is
# that of its logits.
LEAST_NORM = 1e-3

VARIANTS = {
    "float16": make_float16,
    STATIC: make_static,
    INT8: lambda model, _, made: shutil.copyfile(model, made),
    BF16: lambda model, _, made: shutil.copyfile(model, made),
    "operators": make_operators,
    "channels": make_channels,
    "dynamic": make_dynamic,
    "subgraphs": make_subgraphs,
}


def operators(graph):
    """Of a graph and those inside it."""
    for node in graph.node:
        yield node.op_type
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from operators(attribute.g)


def is_quantized(path):
    return any(part in name.lower() for name in operators(onnx.load(path).graph) for part in ("quant", "integer", "qlinear"))


def has_variants(folder):
    """Whether the model of a folder of cases is one of floats. Operators of ai.onnx.ml know float32 alone."""
    return folder.name not in catalog.TRAINED and not is_quantized(folder / "model.onnx")


def as_asked(inputs, session):
    """The inputs in the types that a variant has for them."""
    types = {"tensor(float16)": np.float16, "tensor(float)": np.float32}
    asked = {value.name: types.get(value.type) for value in session.get_inputs()}
    return {name: value.astype(asked.get(name) or value.dtype) for name, value in inputs.items()}


def error(given, expected, norm, least=0.0):
    """The difference in parts of the expected values, both measured by `norm`, which is at least `least`; of integers and booleans, 0 or infinity."""
    if given.shape != expected.shape or expected.dtype.kind != "f":
        return 0.0 if np.array_equal(given, expected) else float("inf")
    if not np.array_equal(np.isnan(given), np.isnan(expected)):
        return float("inf")
    given, expected = np.nan_to_num(given.astype(np.float64)), np.nan_to_num(expected.astype(np.float64))
    return norm(given - expected) / (max(norm(expected), least) or 1.0)


def differing(given, expected):
    """The part of all elements that are not the same."""
    return np.mean(given != expected) if given.shape == expected.shape and given.size else float(given.shape != expected.shape)


def largest(values):
    return np.abs(values).max(initial=0.0)


def root_mean_square(values):
    with np.errstate(over="ignore"):
        return np.sqrt(np.mean(np.square(values))) if values.size else 0.0


def run(tools, executable, inputs, scratch):
    """What vm-run gives for inputs, by the outputs' names."""
    command = [tools / "vm-run", executable, "--threads", 1, "--output", f"@{scratch / 'results.npz'}"]
    for position, (name, value) in enumerate(inputs.items()):
        np.save(scratch / f"{position}.npy", value)
        command += ["--input", f"{name}=@{scratch / f'{position}.npy'}"]
    check.call(command)
    return np.load(scratch / "results.npz")


def judge(variant, given, peers, originals, names):
    """Of each output, whether it is right; gives the errors in words and what is wrong."""
    tolerance, said, wrong = TOLERANCES[variant], [], []
    for name, original, peer in zip(names, originals, peers):
        if name not in given:
            wrong.append(f"no output {name}")
            continue
        if given[name].dtype != peer.dtype:
            wrong.append(f"{name} is {given[name].dtype}, expected {peer.dtype}")
            continue
        if variant in (INT8, BF16) and original.dtype.kind != "f":  # labels, of which some may be others
            own, theirs = differing(given[name], original), differing(peer, original)
        else:
            least = LEAST_NORM if variant == BF16 else 0.0
            own, theirs = error(given[name], original, root_mean_square, least), error(peer, original, root_mean_square)
        apart = error(given[name], peer, largest)
        said.append(f"{name} error {own:.2g}, ONNX Runtime's {theirs:.2g}, {apart:.2g} apart")
        # Two infinite errors are those of integers: then they must be the same.
        near = own if variant in (INT8, BF16) else apart
        if near > tolerance.near and not own <= tolerance.times * theirs < float("inf"):
            wrong.append(said[-1])
    return said, wrong


def wrong_in(variant, tools, executable, case, original, scratch):
    """What is wrong with a program of a variant. `case` has ONNX Runtime's answers of what it runs, `original` those of the
    float model."""
    names = json.loads((case / "out" / "names.json").read_text())
    given = run(tools, executable, inputs_of(case), scratch)
    return judge(variant, given, outputs_of(case), outputs_of(original), names)[1]


class Samples:
    """What vm-compile calibrates with: inputs as those of the cases, of other random numbers."""

    def __init__(self, name, scratch):
        self._inputs = reference.inputs(name, 2000)
        self.options = ["--precision", "int8"]
        for number, inputs in enumerate(self._inputs):
            np.savez(scratch / f"samples{number}.npz", **inputs)
            self.options += ["--calibrate", scratch / f"samples{number}.npz"]

    def check(self, tools, executable, original, scratch):
        """Whether no output has moved further on all samples than promised; gives the largest error and what is wrong."""
        names = [value.name for value in original.get_outputs()]
        moved, norms = np.zeros(len(names)), np.zeros(len(names))
        for inputs in self._inputs:
            given = run(tools, executable, inputs, scratch)
            for i, expected in enumerate(original.run(None, inputs)):
                if expected.dtype != np.float32:
                    continue
                difference = np.nan_to_num(given[names[i]].astype(np.float64)) - np.nan_to_num(expected.astype(np.float64))
                moved[i] += np.sum(np.square(difference))
                norms[i] += np.sum(np.square(np.nan_to_num(expected.astype(np.float64))))
        errors = np.sqrt(moved / np.where(norms, norms, 1))
        # Floats differ from ONNX Runtime's in their last digits.
        return errors.max(initial=0), [name for name, far in zip(names, errors > MOST_ON_SAMPLES + 1e-4) if far]


class Products:
    """How many products vm-compile has quantized, and how many more it could have; the same in bf16."""

    def __init__(self):
        self.quantized = self.rough = 0
        self.in_bf16 = self.all_in_bf16 = 0

    def add_bf16(self, report):
        self.in_bf16 += report["quantized"]
        self.all_in_bf16 += len(report["products"])

    def add(self, report):
        self.quantized += report["quantized"]
        self.rough += sum(product["reason"] == "outputs would move too far" for product in report["products"])

    def part(self):
        return self.quantized / max(self.quantized + self.rough, 1)


def check_variant(tools, variant, made, cases, scratch, products):
    """Yields (what was run, what it gave, problem or None)."""
    name, executable = cases[0].parent.name, scratch / "variant.rwx"
    session = reference.session(made, rounds_as_written=True)
    samples = Samples(name, scratch) if variant == INT8 else None
    own = samples.options if samples else ["--precision", "bf16"] if variant == BF16 else []
    try:
        told = check.call([tools / "vm-compile", made, "-o", executable, "--json", *own, *catalog.OPTIONS.get(name, [])])
        if variant == BF16:
            products.add_bf16(json.loads(told))
        if samples:
            products.add(json.loads(told))
            worst, far = samples.check(tools, executable, session, scratch)
            problem = f"{', '.join(far)} moved by up to {worst:.2g} on the samples" if far else None
            yield "samples", f"error {worst:.2g}, {json.loads(told)['quantized']} products quantized", problem
    except (RuntimeError, OSError, subprocess.TimeoutExpired) as failure:
        yield "compiling", "", str(failure)
        return
    if variant == INT8:
        peer = made.parent / f"{name}.static.onnx"
        session = reference.session(peer, rounds_as_written=True) if peer.exists() else session
    for case in cases:
        names = json.loads((case / "out" / "names.json").read_text())
        inputs = as_asked(inputs_of(case), session)
        try:
            given = run(tools, executable, inputs, scratch)
        except (RuntimeError, OSError, subprocess.TimeoutExpired) as failure:
            yield f"inputs {case.name}", "", str(failure)
            continue
        said, wrong = judge(variant, given, session.run(None, inputs), outputs_of(case), names)
        yield f"inputs {case.name}", "; ".join(said), "\n      ".join(wrong) or None


def make(variant, folder, cases, made):
    """Makes a variant; gives why there is none, or None. The tools print and warn; nothing of it is shown."""
    logging.disable(logging.WARNING)
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            VARIANTS[variant](folder / "model.onnx", cases, made)
            reference.session(made, rounds_as_written=True)
    except Exception as failure:  # anything may come out of these tools
        made.unlink(missing_ok=True)
        return f"{type(failure).__name__}: {(str(failure).splitlines() or [''])[0][:200]}"
    finally:
        logging.disable(logging.NOTSET)
    if variant in ("float16", INT8, BF16) or is_quantized(made):
        return None
    made.unlink()
    return "no operator of it is quantized"


def main():
    onnxruntime.set_default_logger_severity(3)
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", type=pathlib.Path, required=True, help="folder of vm-compile and vm-run")
    parser.add_argument("--cases", type=pathlib.Path, required=True)
    parser.add_argument("--model", action="append")
    parser.add_argument("--variant", action="append", choices=VARIANTS)
    parser.add_argument("--keep", type=pathlib.Path, help="folder to write the variants to")
    options = parser.parse_args()
    names = options.model or sorted(path.parent.name for path in options.cases.glob("*/complete"))
    runs = failures = models = 0
    products = Products()
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        keep = options.keep or scratch
        keep.mkdir(exist_ok=True)
        for name in names:
            folder = options.cases / name
            if not has_variants(folder):
                continue
            models += 1
            cases = sorted(path for path in folder.iterdir() if path.is_dir())
            # What people make most, of each model; the rest of a few.
            usual = VARIANTS if name in catalog.EACH_PASS else ("float16", STATIC, INT8, BF16)
            for variant in options.variant or usual:
                made = keep / f"{name}.{variant}.onnx"
                unmade = make(variant, folder, cases, made)
                if unmade:
                    print(f"unmade {name} {variant}: {unmade}", flush=True)
                    continue
                if variant == INT8 and STATIC not in (options.variant or usual):
                    make(STATIC, folder, cases, keep / f"{name}.static.onnx")  # to compare with
                for what, said, problem in check_variant(options.bin, variant, made, cases, scratch, products):
                    runs += 1
                    failures += problem is not None
                    print(f"{'FAILED' if problem else 'ok    '} {name} {variant}, {what}: {problem or said}", flush=True)
    if products.quantized + products.rough:
        print(f"{INT8}: {products.part():.3f} of the products that could be were quantized")
    part_in_bf16 = products.in_bf16 / max(products.all_in_bf16, 1)
    if products.all_in_bf16:
        print(f"{BF16}: {part_in_bf16:.3f} of the products compute in bf16")
    if not options.model and products.all_in_bf16 and part_in_bf16 < LEAST_IN_BF16:
        failures += 1
        print(f"FAILED {BF16}: expected {LEAST_IN_BF16} or more")
    if not options.model and INT8 in (options.variant or VARIANTS) and products.part() < LEAST_QUANTIZED:
        failures += 1
        print(f"FAILED {INT8}: expected {LEAST_QUANTIZED} or more")
    print(f"{models} float models, {runs} runs of their variants, {failures} failed")
    return 1 if failures or not runs else 0


if __name__ == "__main__":
    sys.exit(main())
