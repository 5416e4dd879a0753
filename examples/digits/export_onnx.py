#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes digits.onnx from weights.safetensors: the model of this folder as a framework would export it. Needs numpy and onnx.

    export_onnx.py            writes the file
    export_onnx.py --check    fails if the file is another one
"""

import argparse
import json
import pathlib
import struct
import sys

import numpy as np
from onnx import TensorProto, checker, helper, numpy_helper

HERE = pathlib.Path(__file__).resolve().parent


def weights():
    data = (HERE / "weights.safetensors").read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    for name, entry in json.loads(data[8 : 8 + size]).items():
        if name != "__metadata__":
            begin, end = (8 + size + offset for offset in entry["data_offsets"])
            yield numpy_helper.from_array(np.frombuffer(data[begin:end], "<f4").reshape(entry["shape"]), name)


def model():
    nodes = []
    x = "image"
    for layer in ["conv1", "conv2"]:
        nodes.append(helper.make_node("Conv", [x, f"{layer}.weight", f"{layer}.bias"], [layer], name=layer, pads=[1, 1, 1, 1]))
        nodes.append(helper.make_node("Relu", [layer], [f"{layer}.relu"]))
        nodes.append(helper.make_node("MaxPool", [f"{layer}.relu"], [f"{layer}.pool"], kernel_shape=[2, 2], strides=[2, 2]))
        x = f"{layer}.pool"
    nodes += [
        helper.make_node("Flatten", [x], ["flat"]),
        helper.make_node("Gemm", ["flat", "fc1.weight", "fc1.bias"], ["fc1"], name="fc1", transB=1),
        helper.make_node("Relu", ["fc1"], ["fc1.relu"]),
        helper.make_node("Gemm", ["fc1.relu", "fc2.weight", "fc2.bias"], ["fc2"], name="fc2", transB=1),
        helper.make_node("Softmax", ["fc2"], ["probabilities"], axis=1),
    ]
    graph = helper.make_graph(
        nodes,
        "digits",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["N", 1, 8, 8])],
        [helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, ["N", 10])],
        list(weights()),
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    checker.check_model(made, full_check=True)
    return made.SerializeToString()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="fail if the file is another one")
    path = HERE / "digits.onnx"
    if parser.parse_args().check:
        return 0 if path.read_bytes() == model() else f"{path} is not what this script writes"
    path.write_bytes(model())
    return 0


if __name__ == "__main__":
    sys.exit(main())
