# SPDX-License-Identifier: Apache-2.0
"""The side of TVM in tvm_side_by_side.py; run by the Python of a relay-* environment.

Reads lines "CASE CALLS" and answers with the seconds that CALLS calls took, as tvm_peer.cc does. The calls are made and
timed inside TVM's runtime (its time evaluator on `invoke_stateful`), so that nothing of Python is in the time.
"""

import json
import pathlib
import sys

import numpy as np
import tvm
from tvm.runtime import container
from tvm.runtime import vm as relay_vm


def value_of(directory, value):
    if "tensor" in value:
        return tvm.nd.array(np.load(directory / value["tensor"]))
    return container.ADT(value["adt"], [value_of(directory, field) for field in value["fields"]])


class Peer:
    """A case with its inputs bound."""

    def __init__(self, directory):
        directory = pathlib.Path(directory)
        case = json.loads((directory / "case.json").read_text())
        files = case["files"]
        # A program that calls no kernel may have a library all the same.
        path = directory / files.get("library", "lib.so")
        library = tvm.runtime.load_module(str(path)) if path.exists() else None
        executable = relay_vm.Executable.load_exec((directory / files["code"]).read_bytes(), library)
        if "late_bound" in files:
            executable.load_late_bound_consts(str(directory / files["late_bound"]))
        self._machine = relay_vm.VirtualMachine(executable, tvm.cpu())
        call = case["calls"][0]
        self._function = call["function"]
        inputs = [value_of(directory, given["value"]) for given in call["inputs"]]
        self._machine.set_input(self._function, *inputs)

    def seconds(self, calls):
        evaluator = self._machine.module.time_evaluator("invoke_stateful", tvm.cpu(), number=calls, repeat=1)
        return evaluator(self._function).mean * calls


def main():
    peers = {}
    for line in sys.stdin:
        directory, calls = line.split()
        try:
            if directory not in peers:
                peers = {directory: Peer(directory)}
            print("{:.9f}".format(peers[directory].seconds(int(calls))), flush=True)
        except Exception as error:  # whatever it is, it is the answer
            print("error: " + str(error).replace("\n", " "), flush=True)


if __name__ == "__main__":
    main()
