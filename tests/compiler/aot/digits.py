# SPDX-License-Identifier: Apache-2.0
"""The network of examples/digits as C source: what the tests of boards and processors share."""
import array
import ast
import json
import pathlib
import struct
import subprocess
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
# What makes kernels or constants that C source cannot have (docs/aot.md).
PASSES = ["pack-onednn", "winograd"]
KERNELS = sorted(ROOT.glob("kernels/embedded/*.c")) + sorted(ROOT.glob("kernels/embedded/*/*.c"))


def run(*command, errors=subprocess.PIPE):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=errors, text=True, timeout=170)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command[:4]))} ...: exit {done.returncode}\n{(done.stderr or '')[-3000:]}{done.stdout[-1000:]}")
    return done.stdout


def read_floats(path):
    """The shape and the elements of an .npy file of floats."""
    data = path.read_bytes()
    begin = 10 + struct.unpack("<H", data[8:10])[0]
    return ast.literal_eval(data[10:begin].decode())["shape"], array.array("f", data[begin:])


def expected_digits():
    """The digit that ONNX Runtime sees in each image."""
    (count, classes), scores = read_floats(ROOT / "examples/digits/expected.npy")
    return [max(range(classes), key=lambda k: scores[i * classes + k]) for i in range(count)]


def write_images(folder):
    """images.h: IMAGES of them, each of 64 floats."""
    (count, *_), images = read_floats(ROOT / "examples/digits/images.npy")
    texts = [f"{value:.9g}" for value in images]
    pixels = ",\n".join(",".join(text + ("f" if "." in text else ".0f") for text in texts[i * 64:(i + 1) * 64]) for i in range(count))
    (folder / "images.h").write_text(f"#define IMAGES {count}\nstatic const float images[IMAGES * 64] = {{\n{pixels}\n}};\n")


def write_samples(path):
    """The images as an archive for --calibrate: each is a sample of one image."""
    (count, *shape), images = read_floats(ROOT / "examples/digits/images.npy")
    header = repr({"descr": "<f4", "fortran_order": False, "shape": (count, 1, *shape)}).encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("image.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + images.tobytes())


def write_source(tools, folder, precision="f32"):
    """digits.c and digits.h; returns what vm-aot says of them."""
    options = [word for name in PASSES for word in ("--disable-pass", name)]
    if precision == "int8":
        write_samples(folder / "samples.npz")
        options += ["--precision", "int8", "--calibrate", folder / "samples.npz"]
    run(tools / "vm-compile", ROOT / "examples/digits/digits.onnx", "--dim", "N=1", *options, "-o", folder / "digits.rwx")
    return emit(tools, folder)


def emit(tools, folder, *options, name="digits"):
    """Makes NAME.c and NAME.h of NAME.rwx; returns what vm-aot says of them."""
    return json.loads(run(tools / "vm-aot", folder / f"{name}.rwx", "-o", folder / f"{name}.c", "--prefix", name, "--json", *options))
