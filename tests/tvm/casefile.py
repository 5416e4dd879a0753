# SPDX-License-Identifier: Apache-2.0
"""Writes one generated case: a directory with the foreign files, tensors as .npy and case.json.

case.json:
    name, kind ("relay_vm", "graph", "one_file"), tvm (version string), alignment (bytes TVM allocates with)
    files: {role: file}            roles: code, library, parameters, graph, late_bound
    calls: [{function, inputs: [{name, value}...] in parameter order (names may repeat), expected: value}]
    tags: what the case shows, for counting
    tolerance: how much a float may differ, relative to 1 or to the value if that is larger; 0: not at all
A value is {"tensor": file} or {"adt": constructor tag, "fields": [value...]}; tuples have tag 0. `expected` is what
TVM's own executor gave for the saved files, to be matched bit by bit.
"""

import json
import pathlib

import numpy as np


class Adt:
    """A tuple (tag 0) or an algebraic data type's value; fields are arrays or Adts."""

    def __init__(self, tag, fields):
        self.tag = int(tag)
        self.fields = list(fields)


class Case:
    """Collects one case and writes case.json last, so that a directory without one is an unfinished case."""

    def __init__(self, output, name, kind, tvm_version, alignment, tags=(), tolerance=0.0):
        self.directory = pathlib.Path(output) / name
        self.directory.mkdir(parents=True, exist_ok=True)
        self._tensors = 0
        self._content = {
            "name": name,
            "kind": kind,
            "tvm": tvm_version,
            "alignment": alignment,
            "tags": sorted(tags),
            "tolerance": tolerance,
            "files": {},
            "calls": [],
        }

    def path(self, role, file):
        """Names a foreign file of the case; the caller writes it."""
        self._content["files"][role] = file
        return str(self.directory / file)

    def call(self, function, inputs, expected):
        """Adds a call: `inputs` are (parameter name, value) in parameter order."""
        self._content["calls"].append(
            {
                "function": function,
                "inputs": [{"name": name, "value": self._value(value)} for name, value in inputs],
                "expected": self._value(expected),
            }
        )

    def write(self):
        (self.directory / "case.json").write_text(json.dumps(self._content, indent=1) + "\n")

    def _value(self, value):
        # Lists are as long as a case makes them, so nesting is walked with a stack.
        root = {}
        todo = [(value, root)]
        while todo:
            item, slot = todo.pop()
            if isinstance(item, Adt):
                slot["adt"] = item.tag
                slot["fields"] = [{} for _ in item.fields]
                todo.extend(zip(item.fields, slot["fields"]))
            else:
                slot["tensor"] = f"t{self._tensors}.npy"
                np.save(self.directory / slot["tensor"], np.asarray(item), allow_pickle=False)
                self._tensors += 1
        return root
