#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""survey.py BUILD FILE_OR_FOLDER...: which ONNX models become C source with the kernels of kernels/embedded, whether the C gives
what the VM gives, and why others are refused, with the most frequent reason first.

Models of ONNX's suite are run on their own inputs, others on random ones. Runs in an environment of its own:

    tests/support/environments.py --run tests/compiler/aot/requirements/survey.txt tests/compiler/aot/survey.py build/release FOLDER

Exits with 1 if an output differs by more than --error, if the C code does not compile or fails where the VM does not, or if fewer
models than --accepted become C source.
"""
import argparse
import collections
import ctypes
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import numpy_helper

from c_table import Function, empty
from digits import KERNELS, PASSES, ROOT

def run(*command):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=300)


def inputs_of(model, tensors):
    """The arrays of ONNX's own data, else random ones."""
    own = [numpy_helper.to_array(onnx.load_tensor(file)) for file in
           sorted((model.parent / "test_data_set_0").glob("input_*.pb"), key=lambda f: int(f.stem.split("_")[1]))]
    random = np.random.default_rng(1)
    made = []
    for i, tensor in enumerate(tensors):
        array = empty(tensor)
        if array is None:
            return None
        if len(own) == len(tensors) and own[i].shape == array.shape and own[i].dtype == array.dtype:
            array = own[i]
        elif array.dtype.kind == "f":
            array = random.standard_normal(array.shape).astype(array.dtype)
        else:
            array = random.integers(0, 2, array.shape).astype(array.dtype)
        made.append(np.ascontiguousarray(array).reshape(array.shape))
    return made


def reason_of(message):
    """The message without its place and its shapes; of a kernel that is not there at all the name alone."""
    message = re.sub(r"^.*?\):? (?=kernel|constant|the )", "", re.sub(r"\[[^\]]*\]:? ?", "", message))
    message = re.sub(r"^constant .* is computed", "a constant is computed", message)
    return re.sub(r" has no plain C form here: use --kernels packed.*", "", message)


def compare(build, model, folder):
    """What became of a model: a pair of a heading and a detail."""
    rwx, source = folder / "model.rwx", folder / "model.c"
    dims = [word for name in symbols(model) for word in ("--dim", f"{name}=1")]
    compiled = run(build / "bin/vm-compile", model, "-o", rwx, *dims, *[word for name in PASSES for word in ("--disable-pass", name)])
    if compiled.returncode:
        return "not compiled", ""
    emitted = run(build / "bin/vm-aot", rwx, "-o", source, "--json")
    if emitted.returncode:
        return "refused", reason_of(emitted.stderr.strip())
    library = folder / f"model_{model.parent.name}_{model.stem}.so"
    linked = run("cc", "-std=c99", "-O1", "-fPIC", "-shared", "-Wall", "-Wextra", "-Wconversion", "-Werror", f"-I{ROOT}/include",
                 "-DREWIRE_EMBEDDED_FUSED_MULTIPLY_ADD", source, *folder.parent.glob("kernels/*.o"), "-o", library, "-lm")
    if linked.returncode:
        return "C does not compile", linked.stderr[:1000]
    handle = ctypes.CDLL(str(library))
    function = Function.in_dll(handle, "model_functions")
    inputs = inputs_of(model, [function.inputs[i] for i in range(function.input_count)])
    outputs = [empty(function.outputs[i]) for i in range(function.output_count)]
    if inputs is None or any(output is None for output in outputs):
        return "accepted, not run", "a dtype that numpy lacks"
    names = [function.inputs[i].name.decode() for i in range(function.input_count)]
    np.savez(folder / "in.npz", **dict(zip(names, inputs)))
    ran = run(build / "bin/vm-run", rwx, *(["-i", f"@{folder}/in.npz"] if inputs else []), "-o", f"@{folder}/out.npz")
    code = function.call(inputs, outputs)
    if ran.returncode or code:
        same = bool(ran.returncode) == bool(code)
        return ("both fail" if same else "one fails"), f"{code} {ran.stderr[-300:]}"
    expected = np.load(folder / "out.npz")
    worst = 0.0
    for array, reference in zip(outputs, expected.values()):
        if array.tobytes() == reference.tobytes():
            continue
        a, b = array.astype(np.float64), reference.reshape(array.shape).astype(np.float64)
        with np.errstate(invalid="ignore"):
            difference = np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0, np.abs(a - b) / np.maximum(1, np.abs(b)))
        worst = max(worst, float(np.max(np.nan_to_num(difference, nan=np.inf), initial=0)))
    return ("equal to the bit", "") if worst == 0 else ("equal within", worst)


def symbols(model):
    names = []
    for value in onnx.load(model, load_external_data=False).graph.input:
        names += [dim.dim_param for dim in value.type.tensor_type.shape.dim if dim.dim_param]
    return sorted(set(names))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("models", type=pathlib.Path, nargs="+")
    parser.add_argument("--error", type=float, default=1e-4, help="of an output, relative where it is above 1")
    parser.add_argument("--every", type=int, default=1, help="take each model of this number alone: 6 is the first, the seventh, ...")
    parser.add_argument("--accepted", type=int, default=0, help="fail if fewer models become C source")
    parser.add_argument("--verbose", action="store_true", help="print a line for each model")
    arguments = parser.parse_args()
    models = [file for path in arguments.models for file in ([path] if path.is_file() else sorted(path.rglob("*.onnx")))][::arguments.every]
    build = arguments.build.resolve()
    found, reasons, worst, faults = collections.Counter(), collections.Counter(), 0.0, []
    with tempfile.TemporaryDirectory() as temporary:
        temporary = pathlib.Path(temporary)
        (temporary / "kernels").mkdir()
        subprocess.run(["cc", "-std=c99", "-O1", "-fPIC", "-ffp-contract=off", "-DREWIRE_EMBEDDED_FUSED_MULTIPLY_ADD",
                        f"-I{ROOT}/include", "-c", *KERNELS],
                       cwd=temporary / "kernels", check=True)
        for model in models:
            folder = temporary / "model"
            folder.mkdir()
            heading, detail = compare(build, model.resolve(), folder)
            subprocess.run(["rm", "-r", folder], check=True)
            found[heading] += 1
            name = f"{model.parent.name}/{model.name}"
            if arguments.verbose:
                print(f"{name}: {heading} {detail}", flush=True)
            if heading == "refused":
                reasons[detail] += 1
            if heading == "equal within":
                worst = max(worst, detail)
            if heading in ("C does not compile", "one fails") or (heading == "equal within" and detail > arguments.error):
                faults.append(f"{name}: {heading} {detail}")
    for reason, count in reasons.most_common():
        print(f"{count:5} refused: {reason}")
    print(json.dumps({"models": len(models), **found, "largest difference": worst}))
    accepted = len(models) - found["refused"] - found["not compiled"]
    print(f"{accepted} of {len(models)} models become C source")
    if accepted < arguments.accepted:
        faults.append(f"{accepted} models become C source, at least {arguments.accepted} did before")
    elif accepted > arguments.accepted > 0:
        print(f"more than --accepted {arguments.accepted}: raise that number")
    print("\n".join(faults))
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
