# SPDX-License-Identifier: Apache-2.0
"""Models in folders: model.onnx, an array for each input, what others answer, and how to run it again."""

import json
import pathlib
import shlex

import numpy as np
import onnx

from draws import BF16, NAMES, DTYPES, TEXT
from model import Input, Model
from oracles import Oracles


def _plain(array):
    """An array that numpy can save, with its type."""
    if array.dtype == BF16:
        return array.view(np.uint16), "bfloat16"
    if array.dtype == TEXT:
        return array.astype(str), "string"
    return array, array.dtype.name


def write(folder, drawn, form, detail):
    """Writes a model that fails in a form."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    onnx.save(drawn.proto, folder / "model.onnx")
    arrays, told = {}, {}
    for place, (name, each) in enumerate(drawn.inputs.items()):
        arrays[f"input{place}"], kind = _plain(each.array)
        recipe = [each.recipe[0], *(["string" if each.recipe[1] == TEXT else each.recipe[1].name, *each.recipe[2:]] if len(each.recipe) > 1 else [])]
        told[name] = {"file": f"input{place}", "type": kind, "dims": list(each.dims), "recipe": recipe}
    np.savez(folder / "inputs.npz", **arrays)
    (folder / "model.json").write_text(json.dumps({"seed": drawn.seed, "style": drawn.style, "symbols": drawn.symbols, "inputs": told}, indent=1) + "\n")
    (folder / "README.md").write_text(_page(folder, drawn, form, detail))


def _page(folder, drawn, form, detail):
    lines = [f"Form `{form}`: {detail}", "", f"    main.py --folder {shlex.quote(str(folder))} --forms {form}", ""]
    oracles = Oracles(drawn.proto, drawn.feeds)
    names = [each.name for each in drawn.proto.graph.output]
    for name, answer in oracles.answers.items():
        lines += [f"{name}:", "", *(f"    {output} = {str(value)[:1500]!r}" for output, value in zip(names, answer)), ""]
    lines += [f"{name}: {failure}" for name, failure in oracles.failures.items()]
    inputs = [f"    {name} {each.dims} = {str(each.array)[:1000]!r}" for name, each in drawn.inputs.items()]
    return "\n".join([*lines, "", "Inputs:", "", *inputs, "", "    " + onnx.printer.to_text(drawn.proto).replace("\n", "\n    ")]) + "\n"


def _dtype(name):
    return DTYPES[NAMES[{"float32": "float", "float64": "double", "object": "string"}.get(name, name)]][0]


def read(folder):
    folder = pathlib.Path(folder)
    told = json.loads((folder / "model.json").read_text())
    arrays = np.load(folder / "inputs.npz")
    inputs = {}
    for name, each in told["inputs"].items():
        array = arrays[each["file"]]
        array = array.view(BF16) if each["type"] == "bfloat16" else array.astype(TEXT) if each["type"] == "string" else array
        recipe = (each["recipe"][0], *([_dtype(each["recipe"][1]), *each["recipe"][2:]] if len(each["recipe"]) > 1 else []))
        inputs[name] = Input(array, recipe, tuple(each["dims"]))
    return Model(told["seed"], onnx.load(folder / "model.onnx"), inputs, told["symbols"], told["style"])
