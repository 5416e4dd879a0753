#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the node cases of the installed `onnx` package as files that onnx_node_suite reads.

    tests/support/environments.py --run tests/models/requirements/models.txt tests/compiler/onnx_cases.py FOLDER

The package holds its cases as Python functions. FOLDER/node/CASE gets each case's model and its first data set.
"""

import argparse
import pathlib
import warnings

import onnx
from onnx import numpy_helper
from onnx.backend.test.case.node import collect_testcases


def proto_of(value, info):
    """The message that holds a value of the type that the model declares."""
    if info.type.HasField("map_type"):
        return numpy_helper.from_dict(value, info.name)
    if info.type.HasField("sequence_type"):
        return numpy_helper.from_list(value, info.name)
    if info.type.HasField("optional_type"):
        return numpy_helper.from_optional(value, info.name)
    if isinstance(value, onnx.TensorProto):
        return value
    return numpy_helper.from_array(value, info.name)


def write(case, folder):
    data = folder / "test_data_set_0"
    data.mkdir(parents=True, exist_ok=True)
    (folder / "model.onnx").write_bytes(case.model.SerializeToString())
    inputs, outputs = case.data_sets[0]
    for kind, values, infos in (("input", inputs, case.model.graph.input), ("output", outputs, case.model.graph.output)):
        for i, (value, info) in enumerate(zip(values, infos, strict=True)):
            (data / f"{kind}_{i}.pb").write_bytes(proto_of(value, info).SerializeToString())


def main(folder):
    warnings.simplefilter("ignore")  # the cases divide by zero on purpose
    cases = collect_testcases(None)
    for case in cases:
        write(case, folder / "node" / case.name)
    print(f"{len(cases)} cases of onnx {onnx.__version__}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, help="where the cases are written")
    main(parser.parse_args().folder)
