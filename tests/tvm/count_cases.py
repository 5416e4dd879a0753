#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts the generated cases, and fails when the tests over them would show less than they are to show.

    count_cases.py CASES
"""

import argparse
import json
import pathlib
import sys

NAMED = ("resnet8", "mobilenet", "lstm")
TAGS = ("elementwise", "dense", "if", "recursion", "adts", "trees", "closure", "tuple_in", "tuple_out", "reshape")
TAGS += ("several_functions", "int64", "float16", "bool", "sort", "detector", "nested_match", "target_c")


def read(cases, kind):
    return [json.loads(path.read_text()) for path in sorted(cases.glob(f"relay-*/{kind}/*/case.json"))]


def minor(case):
    """8 of "0.8.dev0"."""
    return int(case["tvm"].split(".")[1])


def programs(cases, *tags):
    """How many programs have one of the tags, in whatever versions of TVM."""
    return len({case["name"] for case in cases if not tags or set(tags) & set(case["tags"])})


def main(cases):
    relay, graphs, exports, opencl = (read(cases, kind) for kind in ("relay", "graph", "onefile", "opencl"))
    # What is counted, how many there are, how many there must be.
    rows = [
        ("Relay programs", programs(relay), 40),
        ("Relay VM executables by TVM up to 0.13", sum(minor(case) <= 13 for case in relay), 10),
        ("Relay VM executables by TVM from 0.14", sum(minor(case) >= 14 for case in relay), 10),
        ("programs that take or return ADTs", programs(relay, "adt_in", "adt_out"), 10),
        ("programs with dynamic shapes", programs(relay, "dynamic"), 5),
        ("executables with late-bound constants", sum("late_bound" in case["files"] for case in relay), 2),
        ("graph-executor artifacts", len(graphs), 8),
        ("exported graphs", sum("GraphExecutorFactory" in case["tags"] for case in exports), 2),
        ("exported Relay VM executables", sum("VMExecutable" in case["tags"] for case in exports), 2),
    ]
    rows += [(f"OpenCL by TVM 0.{version}", sum(minor(case) == version for case in opencl), 15) for version in (8, 9, 16, 19)]
    rows += [(f"OpenCL, {kind}", programs([case for case in opencl if case["kind"] == kind]), 5) for kind in ("graph", "relay_vm")]
    rows += [(f"programs with {tag}", programs(relay, tag), 1) for tag in TAGS]
    rows += [(f"{name}", sum(case["name"] == name for case in relay), 1) for name in NAMED]
    for what, count, least in rows:
        print(f"{count:4} {what}, at least {least}" + ("" if count >= least else ": FAILED"))
    return 0 if all(count >= least for _, count, least in rows) else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", type=pathlib.Path, help="what generate.py has filled")
    sys.exit(main(parser.parse_args().cases))
