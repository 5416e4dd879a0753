# SPDX-License-Identifier: Apache-2.0
"""The cases of ONNX's own backend tests, run by rewire.backend: what passes is what passes in onnx_node_suite.

The cases are those of Debian's libonnx-testdata. REWIRE_EVERY=N runs one of N.
"""

import os
import pathlib

import numpy
import onnx
import pytest
from onnx import numpy_helper

DATA = pathlib.Path("/usr/share/libonnx-testdata/data/node")
KNOWN = pathlib.Path(__file__).parent.parent / "compiler" / "onnx_known_failures.txt"
EVERY = int(os.environ.get("REWIRE_EVERY", "1"))


def read(path, info):
    data = path.read_bytes()
    kind = info.type.WhichOneof("value")
    if kind == "sequence_type":
        return numpy_helper.to_list(onnx.SequenceProto.FromString(data))
    if kind == "optional_type":
        value = numpy_helper.to_optional(onnx.OptionalProto.FromString(data))
        return [] if value is None else [value]
    array = numpy_helper.to_array(onnx.TensorProto.FromString(data))
    # Some files have the bits of bfloat16 as integers.
    if info.type.tensor_type.elem_type == onnx.TensorProto.BFLOAT16 and array.dtype == numpy.uint16:
        array = array.view(onnx.helper.tensor_dtype_to_np_dtype(onnx.TensorProto.BFLOAT16))
    return array


def same(given, expected):
    if isinstance(expected, list):
        return isinstance(given, list) and len(given) == len(expected) and all(map(same, given, expected))
    expected = numpy.asarray(expected)
    if given.dtype != expected.dtype or given.shape != expected.shape:
        return False
    if expected.dtype.name == "bfloat16":  # two units in the last place, as in onnx_node_suite
        return numpy.allclose(given.astype(numpy.float32), expected.astype(numpy.float32), rtol=2**-6, atol=1e-5, equal_nan=True)
    if expected.dtype.kind in "fc":
        return numpy.allclose(given, expected, rtol=1e-3, atol=1e-5, equal_nan=True)
    return numpy.array_equal(given, expected)


def passes(folder):
    import rewire.backend

    model = onnx.load(folder / "model.onnx")
    try:
        loaded = rewire.backend.prepare(model)
        for data in sorted(folder.glob("test_data_set_*")):
            inputs = [read(data / f"input_{i}.pb", info) for i, info in enumerate(model.graph.input)]
            outputs = loaded.run(inputs)
            for i, info in enumerate(model.graph.output):
                if not same(outputs[i], read(data / f"output_{i}.pb", info)):
                    return False
    except (rewire.Error, ValueError, TypeError):
        return False
    return True


@pytest.mark.skipif(not DATA.is_dir(), reason="ONNX's cases (Debian's libonnx-testdata) are not installed")
def test_what_passes_is_what_passes_in_the_node_suite():
    known = {line.split(":")[0].removeprefix("node/") for line in KNOWN.read_text().splitlines() if line.strip() and line[0] != "#"}
    folders = sorted(folder for folder in DATA.iterdir() if (folder / "model.onnx").exists())[::EVERY]
    failed = {folder.name for folder in folders if not passes(folder)}
    # Random values may be the expected ones by chance.
    names = {folder.name for folder in folders if "bernoulli" not in folder.name}
    assert sorted(failed & names) == sorted(known & names)
