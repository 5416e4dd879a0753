#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a sandbox costs: the same models served with and without it, over HTTP.

    serve_sandbox.py BUILD [--rounds 5] [--seconds 3] [--json FILE]

The models are a tiny MLP, of which a request shows what passing it on takes, and one that adds 4 MB to itself, of which it shows what copying
takes. One client asks. Server and sandbox have one core, and the client another one. Times are for a request, from the client, and ratios are
of one round.
"""
import contextlib
import json
import pathlib
import statistics
import subprocess
import sys

from pinned_server import OF_CLIENTS, new_folder, options_of, pinned_server

from tiny_mlp import mlp

LARGE = """.kernel add = "rewire.add"
.func main(x: f32[1024, 1024]) -> y: f32[1024, 1024]
  %a = alloc_storage _, alignment=64, f32[1024, 1024], cpu
  %y = alloc_tensor %a, _, f32[1024, 1024]
  invoke_packed add(%x, %x, %y), outputs=1
  ret %y
.end
"""
MODELS = {"tiny": mlp, "large": lambda: LARGE}


def microseconds(binary, address, model, seconds):
    command = [binary / "vm-bench", f"http://{address}/{model}", "--clients", "1", "--duration", f"{seconds}s", "--warmup", "4", "--json"]
    done = subprocess.run(["taskset", "-c", str(OF_CLIENTS), *map(str, command)], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stdout + done.stderr)
    return 1e6 / json.loads(done.stdout)["loads"][0]["answers_per_second"]


def main():
    options = options_of(__doc__, 5, lambda parser: parser.add_argument("--seconds", type=int, default=3))
    binary = options.build / "bin"
    with new_folder(), contextlib.ExitStack() as servers:
        pathlib.Path("models").mkdir()
        for name, text in MODELS.items():
            pathlib.Path(f"{name}.asm").write_text(text(), encoding="utf-8")
            subprocess.run([binary / "vm-as", f"{name}.asm", "-o", f"models/{name}.rwx"], check=True, stdout=subprocess.DEVNULL)
        common = ["models", "--loops", 1, "--instances", 1]
        addresses = {form: servers.enter_context(pinned_server(options.build, *common, *more))
                     for form, more in (("without", []), ("with", ["--sandbox"]))}
        rounds = [{f"{model} {form}": microseconds(binary, address, model, options.seconds)
                   for model in MODELS for form, address in addresses.items()} for _ in range(options.rounds)]
    figures = {"rounds": rounds}
    for model in MODELS:
        more = [row[f"{model} with"] - row[f"{model} without"] for row in rounds]
        usual = statistics.median(row[f"{model} without"] for row in rounds)
        figures[model] = {"without_us": usual, "more_us": statistics.median(more)}
        print(f"{model}: {usual:.0f} us for a request, in a sandbox {statistics.median(more):.0f} us more ({min(more):.0f} to {max(more):.0f})")
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
