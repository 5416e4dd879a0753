#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Memory of one vm-serve with a thousand models that share 256 MiB of weights, and with some more.

    many_models.py BUILD/bin [--models 1000] [--more 200]

Each model is a file of its own with parameters of one file of safetensors. All are ready, and some of them answer, so that all weights have been
read. It fails above 300 MB for all, and above 1 MB for ten further ones.

It needs nothing but Python.
"""
import argparse
import contextlib
import json
import pathlib
import struct
import subprocess
import sys
import tempfile
import time

from hardships import Client, pid_of, resident
from vm_server import server

PARTS, ROWS, COLUMNS = 16, 8192, 512  # 256 MiB of float32
ASKED = 20


def write_weights(path):
    """Each element of part p is p + 1."""
    size = ROWS * COLUMNS * 4
    header = json.dumps({f"w{p}": {"dtype": "F32", "shape": [ROWS, COLUMNS], "data_offsets": [p * size, (p + 1) * size]} for p in range(PARTS)})
    header += " " * (-len(header) % 8)
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(header)) + header.encode())
        for p in range(PARTS):
            file.write(struct.pack("<f", p + 1) * (ROWS * COLUMNS))


def program(number):
    """y = number + x times the sum of all parts."""
    lines = [f".param w{p}: f32[{ROWS}, {COLUMNS}]" for p in range(PARTS)]
    lines += [f".const own: f32[1] = {{{number}}}", '.kernel matmul = "rewire.matmul"', '.kernel add = "rewire.add"',
              f".func main(x: f32[1, {ROWS}]) -> y: f32[1, {COLUMNS}]", "  %last = load_const own"]
    for p in range(PARTS):
        for name in (f"a{p}", f"b{p}"):
            lines += [f"  %s{name} = alloc_storage _, alignment=64, f32[1, {COLUMNS}], cpu",
                      f"  %{name} = alloc_tensor %s{name}, _, f32[1, {COLUMNS}]"]
        before = f"b{p - 1}" if p > 0 else "last"
        lines += [f"  %w{p} = load_const w{p}", f"  invoke_packed matmul(%x, %w{p}, %a{p}), outputs=1",
                  f"  invoke_packed add(%a{p}, %{before}, %b{p}), outputs=1"]
    return "\n".join([*lines, f"  ret %b{PARTS - 1}", ".end", ""])


def write_models(binary, first, end):
    names = [f"m{number}" for number in range(first, end)]
    for number, name in zip(range(first, end), names):
        pathlib.Path(f"{name}.asm").write_text(program(number), encoding="utf-8")
        subprocess.run([binary / "vm-as", f"{name}.asm", "--output", f"models/{name}.rwx"], check=True)
        pathlib.Path(f"{name}.asm").unlink()


def measure(binary, count):
    """Bytes of a server with all models of the folder, and the seconds until they were ready."""
    begin = time.monotonic()
    with server(binary, "--config", "serve.toml") as address:
        ready = time.monotonic() - begin
        client = Client(address)
        index = json.loads(client.ask("POST", "/v2/repository/index", "{}")[1])
        assert sum(entry["state"] == "READY" for entry in index) == count, len(index)
        body = {"inputs": [{"name": "x", "shape": [1, ROWS], "datatype": "FP32", "data": [1] * ROWS}],
                "outputs": [{"name": "y", "parameters": {"classification": 1}}]}
        for number in range(0, count, count // ASKED):
            status, answer = client.ask("POST", f"/v2/models/m{number}/infer", json.dumps(body))
            assert status == 200, answer
            value = float(json.loads(answer)["outputs"][0]["data"][0].split(":")[0])
            assert value == number + ROWS * PARTS * (PARTS + 1) / 2, (number, value)
        return resident(pid_of(address)), ready


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", type=pathlib.Path)
    parser.add_argument("--models", type=int, default=1000)
    parser.add_argument("--more", type=int, default=200)
    options = parser.parse_args()
    binary = options.bin.resolve()
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        pathlib.Path("models").mkdir()
        write_weights(pathlib.Path("weights.safetensors"))
        pathlib.Path("serve.toml").write_text('models_in = ["models"]\n[defaults]\nparameters = ["weights.safetensors"]\n', encoding="utf-8")
        write_models(binary, 0, options.models)
        size, seconds = measure(binary, options.models)
        write_models(binary, options.models, options.models + options.more)
        larger, _ = measure(binary, options.models + options.more)
    ten = (larger - size) * 10 / options.more
    print(f"{options.models} models: {size / 1e6:.1f} MB, ready after {seconds:.1f} s; ten further ones: {ten / 1e6:.2f} MB")
    return 0 if size <= 300e6 and ten <= 1e6 else 1


if __name__ == "__main__":
    sys.exit(main())
