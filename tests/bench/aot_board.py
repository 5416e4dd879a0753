#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds examples/digits as C source of vm-aot beside the C of emx-onnx-cgen and of BakeNN, on an emulated Cortex-M4.

    aot_board.py --build BUILD     by tests/support/environments.py, with requirements/aot.txt; needs third_party/install.sh boards

The same compiler, start code, images and emulator serve all programs (tests/compiler/aot/emulated_board.py). emx-onnx-cgen computes in
floats. BakeNN computes in 8 bits: its own C, and CMSIS-NN's kernels where it has them. It quantizes the network by the images, as vm-compile does.
A row has the bytes of code without the C library, those of the arena, the stack's depth by painting it, the instructions of one image, and on how many
of the images the program sees the digit that ONNX Runtime sees. Behind the rows stands what issue 36 of the project asks for.
"""
import argparse
import json
import pathlib
import struct
import subprocess
import sys
import tempfile

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/compiler/aot"))
import digits  # noqa: E402
import emulated_board  # noqa: E402

LEVELS = ("-Os", "-O2", "-O3")
MAIN = emulated_board.WRITE_LINE + """
#include "images.h"
#include "network.h"

int main(void) {
  int i;
  board_paint_stack();
  board_start_clock();
  (void)see(images);
  line("ticks", board_ticks());
  line("stack", board_stack_depth());
  for (i = 0; i < IMAGES; ++i) line("digit", (uint32_t)see(images + 64 * i));
  return 0;
}
"""
# A digit by scores of this type.
LARGEST = """
static int see(const float *image) {
  static %s scores[10];
  int k, best = 0;
  call(image, scores);
  for (k = 1; k < 10; ++k) best = scores[k] > scores[best] ? k : best;
  return best;
}
"""


def rewire(tools, folder, precision):
    """Sources of the network, bytes of arena, options of the compiler."""
    arena = digits.write_source(tools, folder, precision)["arena_bytes"]
    (folder / "network.h").write_text('#include "digits.h"\nstatic void call(const float *image, float *scores) {\n'
                                      "  (void)digits_main((const void *)image, (void *)scores);\n}\n" + LARGEST % "float")
    sources = [*digits.KERNELS, folder / "digits.c"]
    return sources, arena, ["-std=c99"]


def emx(folder):
    subprocess.run([pathlib.Path(sys.executable).parent / "emx-onnx-cgen", "compile", ROOT / "examples/digits/digits.onnx", folder / "emx.c",
                    "--large-temp-threshold", "0", "--large-weight-threshold", "0", "--model-name", "emx", "--input-dim", "N=1"],
                   check=True, capture_output=True, text=True)
    (folder / "network.h").write_text("void emx(const float image[1][1][8][8], float scores[1][10]);\nstatic void call(const float *image, float *scores) {\n"
                                      "  emx((const void *)image, (void *)scores);\n}\n" + LARGEST % "float")
    return [folder / "emx.c"], 0, ["-std=c99", "-w"]


def float_graph():
    """The network as BakeNN's frontends give it."""
    from bakenn.frontends.torch_export import model

    data = (ROOT / "examples/digits/weights.safetensors").read_bytes()
    begin = 8 + struct.unpack("<Q", data[:8])[0]
    weights = {}
    for name, each in json.loads(data[8:begin]).items():
        if name != "__metadata__":
            first, last = each["data_offsets"]
            weights[name] = np.frombuffer(data[begin + first:begin + last], np.float32).reshape(each["shape"])
    layouts = {4: model.FloatLayout.OIHW, 2: model.FloatLayout.OI, 1: model.FloatLayout.C}
    values, steps = {}, []

    def value(name, shape, layout, kind):
        values[name] = model.FloatValue(name, shape, model.FloatDType.FLOAT32, layout, kind)

    def step(kind, output, shape, *arguments):
        value(output, shape, model.FloatLayout.NCHW if len(shape) == 4 else model.FloatLayout.NC, model.FloatValueKind.ACTIVATION)
        steps.append(kind(output, *arguments))
        return output

    for name, array in weights.items():
        value(name, array.shape, layouts[array.ndim], model.FloatValueKind.PARAMETER)
    value("image", (1, 1, 8, 8), model.FloatLayout.NCHW, model.FloatValueKind.INPUT)
    at, size = "image", 8
    for layer in ("conv1", "conv2"):
        channels = len(weights[f"{layer}.bias"])
        shape, half = (1, channels, size, size), (1, channels, size // 2, size // 2)
        conv = step(model.FloatConv2DOp, layer, shape, at, f"{layer}.weight", f"{layer}.bias", layer, (1, 1), (1, 1, 1, 1), (1, 1))
        relu = step(model.FloatReLUOp, f"{layer}.relu", shape, conv, f"{layer}.relu")
        at = step(model.FloatMaxPool2DOp, f"{layer}.pool", half, relu, f"{layer}.pool", (2, 2), (2, 2), (0, 0, 0, 0))
        size //= 2
    at = step(model.FloatFlattenOp, "flat", (1, weights["fc1.weight"].shape[1]), at, "flat")
    at = step(model.FloatLinearOp, "fc1", (1, len(weights["fc1.bias"])), at, "fc1.weight", "fc1.bias", "fc1")
    at = step(model.FloatReLUOp, "fc1.relu", (1, len(weights["fc1.bias"])), at, "fc1.relu")
    at = step(model.FloatLinearOp, "fc2", (1, 10), at, "fc2.weight", "fc2.bias", "fc2")
    at = step(model.FloatSoftmaxOp, "probabilities", (1, 10), at, "probabilities", 1)
    return model.FloatGraph("digits", values, weights, tuple(steps), ("image",), (at,))


def bakenn(folder, cmsis):
    import bakenn as package
    from bakenn.backend.portable_c import CBackendOptions
    from bakenn.backend.portable_c.selection import KernelPolicy
    from bakenn.quantization.ptq_graph import quantize_float_graph

    images = np.load(ROOT / "examples/digits/images.npy")
    graph = quantize_float_graph(float_graph(), [image[None] for image in images])
    options = CBackendOptions(kernel_policy=KernelPolicy.STATIC_PRIORITY, enable_cmsis_nn=True, target=package.CORTEX_M4) if cmsis else CBackendOptions()
    made = package.compile(graph, folder / "bakenn", backend_options=options).artifacts
    # Its input is bytes, of which the caller makes them; that is part of what the other programs do, so it is counted as time, not as code.
    (folder / "network.h").write_text('#include <stdint.h>\n#include "bknn_digits.h"\nstatic uint8_t arena[BKNN_DIGITS_ARENA_SIZE] __attribute__((aligned(16)));\n'
                                      "static void call(const float *image, int8_t *scores) {\n  static int8_t bytes[64];\n  int i;\n"
                                      "  for (i = 0; i < 64; ++i) {\n    float x = image[i] * (1.0f / BKNN_DIGITS_INPUT_SCALE) + BKNN_DIGITS_INPUT_ZERO_POINT;\n"
                                      "    bytes[i] = (int8_t)(x < 0.0f ? x - 0.5f : x + 0.5f);\n  }\n"
                                      "  bknn_digits_infer(arena, bytes, scores);\n}\n" + LARGEST % "int8_t")
    sources = [made.model_source, made.weights_source, made.kernels_source, *made.support_sources]
    includes = [f"-I{folder / 'bakenn' / each}" for each in (".", "third_party/cmsis_nn/Include", "third_party/cmsis_core/Include")]
    return sources, made.memory_report.arena_bytes, ["-std=gnu11", "-w", "-DBAKENN_CMSIS_NN_BUILTIN_MEMORY", *includes]


def measure(name, write):
    rows, expected = {}, digits.expected_digits()
    for level in LEVELS:
        with tempfile.TemporaryDirectory() as temporary:
            folder = pathlib.Path(temporary)
            digits.write_images(folder)
            sources, arena, options = write(folder)
            (folder / "main.c").write_text(MAIN)
            elf, code = emulated_board.link(folder, level, [*sources, folder / "main.c"], sources, options)
            found = emulated_board.emulate(elf)
        right = sum(a == b for a, b in zip(found["digit"], expected, strict=True))
        rows[level] = {"code": code, "arena": arena, "stack": found["stack"][0], "instructions": found["ticks"][0] * emulated_board.INSTRUCTIONS_A_TICK, "right": right}
        print(f"{name} {level}: {right} of {len(expected)} as expected; "
              + ", ".join(f"{key} {value:,}" for key, value in rows[level].items() if key != "right"), flush=True)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    tools = parser.parse_args().build.resolve() / "bin"
    count = len(digits.expected_digits())
    floats = measure("vm-aot, float32", lambda folder: rewire(tools, folder, "f32"))
    measure("emx-onnx-cgen, float32", emx)
    whole = measure("vm-aot, int8", lambda folder: rewire(tools, folder, "int8"))
    measure("BakeNN, int8", lambda folder: bakenn(folder, False))
    cmsis = measure("BakeNN with CMSIS-NN, int8", lambda folder: bakenn(folder, True))
    small = floats["-Os"]
    asked = [
        ("float32: code", small["code"], 2000), ("float32: arena and stack", small["arena"] + small["stack"], 5000),
        ("float32: instructions at -O3", floats["-O3"]["instructions"], 650_000), ("int8: code", whole["-Os"]["code"], 2500),
        ("int8: arena", whole["-Os"]["arena"], 1280), ("int8: instructions at -O2, by BakeNN with CMSIS-NN's", whole["-O2"]["instructions"], cmsis["-O2"]["instructions"]),
        ("float32: images seen otherwise", count - min(row["right"] for row in floats.values()), 0),
        ("int8: images seen otherwise", count - min(row["right"] for row in whole.values()), 1),
    ]
    for name, given, most in asked:
        print(f"{name}: {given:,}, at most {most:,} asked{'' if given <= most else ': MISSED'}")


if __name__ == "__main__":
    main()
