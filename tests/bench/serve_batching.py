#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What dynamic batching gives: rows a second of 32 clients, beside the same batches run directly and beside batching off.

    serve_batching.py BUILD [--rounds 5] [--seconds 3] [--clients 32] [--json FILE]

The model is an MLP 1024-2048-2048-1024, f32, for any number of rows. The server has one core, and the clients, with one row each, another one. The
direct run has the server's core. Each round measures all three, one behind the other, and ratios are of one round.

A batch is what waits when the instance is free, so those that form are not all of one size. `of the same batches` is the time that the batches which
formed take when they are run directly, by the time that they took with the server.

Runs in the environment of tests/serve/requirements/openai.txt.
"""
import collections
import contextlib
import functools
import json
import statistics
import subprocess
import sys
import urllib.request

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from pinned_server import OF_CLIENTS, OF_SERVER, new_folder, options_of, pinned_server

from free_port import free_port

WIDTHS = (1024, 2048, 2048, 1024)
WARMUP = 4  # requests of each client, one by one


def write_mlp(path):
    random = np.random.default_rng(3)
    nodes, weights, value = [], [], "x"
    for layer, (rows, columns) in enumerate(zip(WIDTHS, WIDTHS[1:])):
        array = random.standard_normal((rows, columns), dtype=np.float32) / np.float32(np.sqrt(rows))
        weights.append(numpy_helper.from_array(array, f"w{layer}"))
        last = layer + 2 == len(WIDTHS)
        nodes.append(helper.make_node("MatMul", [value, f"w{layer}"], ["y" if last else f"h{layer}"]))
        if not last:
            nodes.append(helper.make_node("Relu", [f"h{layer}"], [f"r{layer}"]))
            value = f"r{layer}"
    graph = helper.make_graph(nodes, "mlp", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", WIDTHS[0]])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", WIDTHS[-1]])], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def answers(binary, target, clients, rows, seconds, core):
    """A second, by vm-bench on one core."""
    command = [binary / "vm-bench", target, "--clients", str(clients), "--dim", f"N={rows}", "--duration", f"{int(1000 * seconds)}ms",
               "--warmup", str(WARMUP), "--json"]
    done = subprocess.run(["taskset", "-c", str(core), *map(str, command)], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stdout + done.stderr)
    return json.loads(done.stdout)["loads"][0]["answers_per_second"]


def formed(address):
    """How many batches of each size there have been."""
    with urllib.request.urlopen(f"http://{address}/v2/models/mlp/stats") as response:
        statistics_of = json.load(response)["model_stats"][0]
    return collections.Counter({batch["batch_size"]: batch["compute_infer"]["count"] for batch in statistics_of["batch_stats"]})


def share_of_runs(batches, rate, seconds_of):
    """Of the time with the server, what these batches take when they are run directly."""
    rows = sum(size * count for size, count in batches.items())
    return sum(seconds_of(size) * count for size, count in batches.items()) * rate / rows


def add_options(parser):
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--clients", type=int, default=32)


def main():
    options = options_of(__doc__, 5, add_options)
    binary = options.build / "bin"
    with new_folder(), contextlib.ExitStack() as servers:
        write_mlp("mlp.onnx")
        subprocess.run([binary / "vm-compile", "mlp.onnx", "--output", "mlp.rwx"], check=True, stdout=subprocess.DEVNULL)
        grpc = {size: f"127.0.0.1:{free_port()}" for size in (0, options.clients)}
        http = {size: servers.enter_context(pinned_server(options.build, "mlp.rwx", "--grpc", grpc[size], "--loops", 1, "--instances", 1,
                                                          *(["--max-batch", size] if size else []))) for size in grpc}
        rounds = []
        for _ in range(options.rounds):
            direct = options.clients * answers(binary, "mlp.rwx", 1, options.clients, options.seconds, OF_SERVER)
            row = {"direct": direct, "direct single": answers(binary, "mlp.rwx", 1, 1, options.seconds, OF_SERVER)}
            seconds_of = functools.cache(lambda rows: 1 / answers(binary, "mlp.rwx", 1, rows, 0.2, OF_SERVER))
            for name, of in (("http", http), ("grpc", grpc)):
                for size, address in of.items():
                    before = formed(http[size])
                    before[1] += WARMUP * options.clients
                    rate = answers(binary, f"{name}://{address}/mlp", options.clients, 1, options.seconds, OF_CLIENTS)
                    row[f"{name} {'batches' if size else 'single'}"] = rate
                    if size:
                        row[f"{name} same batches"] = share_of_runs(formed(http[size]) - before, rate, seconds_of)
            rounds.append(row)
    gain = [row["direct"] / row["direct single"] for row in rounds]
    print(f"{statistics.median(row['direct'] for row in rounds):.0f} rows/s in batches of {options.clients} run directly, "
          f"{statistics.median(gain):.2f} times those one by one ({min(gain):.2f} to {max(gain):.2f})")
    figures = {"rounds": rounds, "direct_gain": statistics.median(gain)}
    for name in ("http", "grpc"):
        of_direct = [row[f"{name} batches"] / row["direct"] for row in rounds]
        of_single = [row[f"{name} batches"] / row[f"{name} single"] for row in rounds]
        of_same = [row[f"{name} same batches"] for row in rounds]
        figures[name] = {"of_direct": statistics.median(of_direct), "of_same": statistics.median(of_same),
                         "of_single": statistics.median(of_single)}
        print(f"{name}: {statistics.median(row[f'{name} batches'] for row in rounds):.0f} rows/s of {options.clients} clients, "
              f"{statistics.median(of_direct):.2f} of full batches run directly ({min(of_direct):.2f} to {max(of_direct):.2f}), "
              f"{statistics.median(of_same):.2f} of the same batches ({min(of_same):.2f} to {max(of_same):.2f}), "
              f"{statistics.median(of_single):.2f} times batching off ({min(of_single):.2f} to {max(of_single):.2f})")
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
