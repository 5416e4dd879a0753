#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs generated cases by vm-run, as whoever holds the files would, and compares with TVM's answers.

    run_tools.py BIN CASE...

BIN has vm-run and vm-convert. Every call of a case runs twice: from the files as TVM wrote them, and from what
vm-convert made of them. `--expect` with tolerances of 0 compares; casefile.py describes the cases. Prints failures and
the totals; exits with 1 when something failed.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import tempfile


def spec(directory, value):
    """A value as --input and --expect take it."""
    if "tensor" in value:
        return f"@{directory / value['tensor']}"
    return f"{value['adt'] % 2**32}({','.join(spec(directory, field) for field in value['fields'])})"


def part(value, index, name):
    """The part of a result that an output is: a graph's by index, else by the path in its name, "output.1.0"."""
    if not name.startswith("output"):
        return value["fields"][index] if "adt" in value else value
    for field in name.split(".")[1:]:
        value = value["fields"][int(field)]
    return value


def run(command):
    """None, or what went wrong."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return None
    return f"{' '.join(map(str, command))}\n    exit status {done.returncode}: {(done.stdout + done.stderr).strip()}"


def model_of(files, directory):
    """(the model's file, the options to convert it, the options to run it, those to run what was converted)."""
    path = {role: directory / file for role, file in files.items()}
    kernels = ["--kernels", path["library"]] if "library" in path else []
    if "code" in path:
        parameters = ["--params", path["late_bound"]] if "late_bound" in path else []
        return path["code"], [], kernels + parameters, kernels + parameters
    if "graph" in path:
        parameters = ["--params", path["parameters"]]
        return path["graph"], parameters, kernels + parameters, kernels
    return path["library"], [], [], kernels


def check(tools, directory):
    """Runs one case; gives (calls, failures)."""
    case = json.loads((directory / "case.json").read_text())
    model, to_convert, to_run, to_run_converted = model_of(case["files"], directory)
    failures = []
    with tempfile.TemporaryDirectory() as folder:
        converted = pathlib.Path(folder) / "model.rwx"
        failures.append(run([tools / "vm-convert", model, *to_convert, "--output", converted]))
        listing = json.loads(subprocess.check_output([tools / "vm-run", converted, "--list", "--json"]))
        if not listing["kernels"]:
            to_run_converted = []  # what TVM exported has nothing but the model
        outputs = {function["name"]: function["outputs"] for function in listing["functions"]}
        for call in case["calls"]:
            arguments = ["--function", call["function"], "--rtol", "0", "--atol", "0"]
            for i, given in enumerate(call["inputs"]):
                arguments += ["--input", f"{i}={spec(directory, given['value'])}"]
            for i, output in enumerate(outputs[call["function"]]):
                expected = part(call["expected"], i, output["name"])
                arguments += ["--expect", f"{i}={spec(directory, expected)}"]
            failures.append(run([tools / "vm-run", model, *to_run, *arguments]))
            failures.append(run([tools / "vm-run", converted, *to_run_converted, *arguments]))
    return len(case["calls"]), [failure for failure in failures if failure]


def main(tools, directories):
    calls, failed = 0, 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for directory, (count, failures) in zip(directories, pool.map(lambda each: check(tools, each), directories)):
            calls += count
            failed += 1 if failures else 0
            for failure in failures:
                print(f"FAILED {directory}\n  {failure}")
    print(f"{calls} calls of {len(directories)} cases, each from TVM's files and from what vm-convert wrote: {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", type=pathlib.Path, help="the folder of vm-run and vm-convert")
    parser.add_argument("cases", type=pathlib.Path, nargs="+", metavar="case", help="the folder of a case")
    options = parser.parse_args()
    sys.exit(main(options.bin.resolve(), [case.resolve() for case in options.cases]))
