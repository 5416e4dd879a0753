#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""spotters.py BUILD: the four keyword spotters of pymicro-wakeword, streaming over a minute of sound, by the VM and as C beside LiteRT.

The sound is made: noise, tones that slide and silence, as the features that the models read, 40 bands each 10 ms. The models are also
run with all of their tensors of bytes as outputs, so that what lies between is compared, too. Everything must be equal to the bit. The
arena of the C source must be at most LIMIT of what TensorFlow Lite Micro takes. Runs in an environment of its own:

    tests/support/environments.py --run tests/compiler/tflite/requirements/litert.txt tests/compiler/tflite/spotters.py build/release
"""
import argparse
import importlib.util
import pathlib
import sys
import tempfile

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema

from running import C_OPTIONS, CSource, LiteRT, Machine, compile_kernels, compile_model

SECONDS, BANDS, ROW_SECONDS = 60, 40, 0.01
LIMIT = 0.4
# Bytes that TensorFlow Lite Micro of 23 October 2026 takes on 64 bits, as its print_allocations() says.
MICRO = {"alexa": 20432, "okay_nabu": 25904}


def sound():
    """Features of a minute: rows of bytes."""
    random = np.random.default_rng(5)
    rows = round(SECONDS / ROW_SECONDS)
    time, band = np.arange(rows)[:, None] * ROW_SECONDS, np.arange(BANDS)[None, :]
    level = random.uniform(0, 40, (rows, BANDS)) * (np.sin(time * 0.7) > -0.5)
    for _ in range(6):
        center = BANDS / 2 + BANDS / 2 * np.sin(time * random.uniform(0.3, 4) + random.uniform(0, 6))
        loud = np.maximum(np.sin(time * random.uniform(1, 9)), 0) * random.uniform(60, 220)
        level = np.maximum(level, loud * np.exp(-((band - center) ** 2) / random.uniform(2, 30)))
    return np.clip(level - 128, -128, 127).astype(np.int8)


def with_all_outputs(content):
    """The model with all bytes that its operators compute as outputs, behind those that it has."""
    model = schema.ModelT.InitFromPackedBuf(content, 0)
    graph = model.subgraphs[0]
    computed = [int(index) for op in graph.operators if op.outputs is not None for index in op.outputs]
    more = [index for index in computed if graph.tensors[index].type == schema.TensorType.INT8 and index not in graph.outputs]
    graph.outputs = [int(index) for index in graph.outputs] + more
    model.signatureDefs = None  # it names the outputs
    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def stream(name, content, run, state, outputs):
    """Runs a model over the sound beside LiteRT: how many results were compared, and which values the first one had. `run` takes the input
    and the state and gives outputs and the next state."""
    peer = LiteRT(content)
    shape = peer.inputs[0]["shape"]
    rows, compared, seen = sound(), 0, set()
    for at in range(0, len(rows) - shape[1] + 1, shape[1]):
        x = rows[at:at + shape[1]].reshape(shape)
        expected = peer.call([x])
        results = run([x, *state])
        given, state = results[:outputs], results[outputs:]
        for i, (array, reference) in enumerate(zip(given, expected)):
            if array.tobytes() != reference.tobytes():
                raise RuntimeError(f"{name}: step {at // shape[1]}, output {i} is {array.ravel()[:8]}, LiteRT has {reference.ravel()[:8]}")
            compared += array.size
        seen.add(int(given[0].ravel()[0]))
    return compared, seen


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    build = parser.parse_args().build.resolve()
    models = sorted((pathlib.Path(importlib.util.find_spec("pymicro_wakeword").origin).parent / "models").glob("*.tflite"))
    faults = [] if len(models) == 4 else [f"there are {len(models)} models, expected 4"]
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        objects = compile_kernels(folder / "kernels")
        for model in models:
            content, name = model.read_bytes(), model.stem
            plain, whole = folder / f"{name}.tflite", folder / f"{name}_all.tflite"
            plain.write_bytes(content)
            whole.write_bytes(with_all_outputs(content))
            source = CSource(build, compile_model(build, plain, *C_OPTIONS), objects)
            state = initial_state(content, source.function)
            machine = Machine(build, compile_model(build, whole))
            outputs = len(LiteRT(whole.read_bytes()).outputs)
            count, _ = stream(f"{name}, VM", whole.read_bytes(), lambda x: machine.call(x, outputs + len(state)), state, outputs)
            of_c, seen = stream(f"{name}, C", content, source.call, state, 1)
            machine.close()
            arena = source.function.arena_bytes
            told = f", {arena / MICRO[name]:.2f} of TensorFlow Lite Micro's {MICRO[name]}" if name in MICRO else ""
            print(f"{name}: {count} bytes of the VM and {of_c} results of C as LiteRT's, {len(seen)} different ones; arena {arena} B{told}", flush=True)
            if name in MICRO and arena > LIMIT * MICRO[name]:
                faults.append(f"{name}: an arena of {arena} B, at most {LIMIT * MICRO[name]:.0f} are allowed")
    print("\n".join(faults))
    sys.exit(bool(faults))


def initial_state(content, function):
    """The variables before the first run, in the order of the function's inputs behind the sound."""
    model = schema.ModelT.InitFromPackedBuf(content, 0)
    graph, stored, names = model.subgraphs[1], {}, {}
    for op in graph.operators:
        code = model.operatorCodes[op.opcodeIndex].builtinCode
        if code == schema.BuiltinOperator.VAR_HANDLE:
            names[op.outputs[0]] = op.builtinOptions.sharedName.decode()
        else:
            tensor = graph.tensors[op.inputs[1]]
            stored[names[op.inputs[0]]] = np.asarray(model.buffers[tensor.buffer].data, np.uint8).view(np.int8).reshape(tensor.shape)
    return [np.array(stored[function.inputs[i].name.decode()]) for i in range(1, function.input_count)]


if __name__ == "__main__":
    main()
