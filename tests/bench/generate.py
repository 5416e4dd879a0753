#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times each token of examples/generate beside ONNX Runtime's run of the same decoder with the same 4-bit weights.

    tests/support/environments.py --run tests/models/requirements/models.txt tests/bench/generate.py \\
        --bin build/release/bin [--size large] [--most 64] [--rounds 5] [--json FILE]

For each accuracy level (0: products of floats, 4: activations rounded to 8 bits) and number of threads, both run in
turn, pinned to the same CPUs. ONNX Runtime has IoBinding, and past and present share a buffer. Its time is that of the
decoder alone; ours also has the choice of the token, the loop and the call of the host. The prompt is not in it.
The figures are medians over all tokens of all rounds, with the 10th and 90th percentile, in milliseconds; the ratio is
the median over the rounds of the ratio of their medians.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnxruntime

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "examples" / "generate"))
import model as language_model  # noqa: E402

PROMPT = [3, 1, 4, 1, 5, 9, 2, 6]


class Peer:
    """ONNX Runtime as its own generators call it: all tensors bound once, the cache written in place."""

    def __init__(self, path, capacity, threads):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        self.session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        self.binding = self.session.io_binding()
        self.caches = []
        for value in self.session.get_inputs():
            if not value.name.startswith("past_"):
                continue
            array = np.zeros((1, value.shape[1], capacity, value.shape[3]), np.float32)
            cache = onnxruntime.OrtValue.ortvalue_from_numpy(array)
            self.caches.append(cache)
            self.binding.bind_ortvalue_input(value.name, cache)
            self.binding.bind_ortvalue_output(value.name.replace("past", "present"), cache)
        vocabulary = self.session.get_outputs()[0].shape[1]
        self.logits = np.zeros((1, vocabulary), np.float32)
        self.binding.bind_output("logits", "cpu", 0, np.float32, self.logits.shape, self.logits.ctypes.data)

    def times(self, most):
        """Milliseconds of each token but the first."""
        given, total, times = np.array([PROMPT], np.int64), 0, []
        for _ in range(most):
            total += given.shape[1]
            for name, array in (("tokens", given), ("lengths", np.array([total - 1], np.int32)),
                                ("total", np.array(total, np.int32))):
                self.binding.bind_ortvalue_input(name, onnxruntime.OrtValue.ortvalue_from_numpy(array))
            start = time.perf_counter()
            self.session.run_with_iobinding(self.binding)
            times.append((time.perf_counter() - start) * 1e3)
            given = np.array([[int(self.logits[0].argmax())]], np.int64)
        return times[1:]


def ours(runner, compiled, capacity, most, threads):
    command = [runner, compiled, str(capacity), str(most), str(threads), "", ",".join(map(str, PROMPT))]
    environment = {**os.environ, "GENERATED_TOKENS_TIMES": "1",
                   "REWIRE_LIBRARY_PATH": str(runner.parents[2] / "lib" / "rewire")}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode != 0:
        sys.exit(done.stderr)
    return [float(part) for part in done.stdout.splitlines()[1].split()]


def spread(times):
    low, middle, high = np.percentile(times, [10, 50, 90])
    return {"median": round(float(middle), 4), "p10": round(float(low), 4), "p90": round(float(high), 4)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path)
    parser.add_argument("--size", default="large", choices=language_model.SIZES)
    parser.add_argument("--most", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--levels", type=int, nargs="+", default=[0, 4])
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    work = options.work or pathlib.Path(tempfile.mkdtemp())
    runner = options.bin.parent / "tests" / "bin" / "generated_tokens"
    capacity, rows = len(PROMPT) + options.most, []
    cpus = sorted(os.sched_getaffinity(0))
    for level in options.levels:
        folder = work / f"{options.size}-{level}"
        language_model.write(folder, options.size, accuracy_level=level)
        compiled = folder / "generate.rwx"
        subprocess.run([options.bin / "vm-compile", folder / "generate.onnx", "-o", compiled], check=True, capture_output=True)
        for threads in options.threads:
            os.sched_setaffinity(0, cpus[:threads])
            peer = Peer(folder / "step.onnx", capacity, threads)
            peer.times(4)  # packs its weights, and touches its memory
            of_us, of_peer, ratios = [], [], []
            for _ in range(options.rounds):
                theirs = peer.times(options.most)
                mine = ours(runner, compiled, capacity, options.most, threads)
                of_peer += theirs
                of_us += mine
                ratios.append(np.median(mine) / np.median(theirs))
            os.sched_setaffinity(0, cpus)
            row = {"level": level, "threads": threads, "rewire": spread(of_us), "onnxruntime": spread(of_peer),
                   "ratio": round(float(np.median(ratios)), 3), "ratios": [round(float(r), 3) for r in ratios]}
            rows.append(row)
            print(f"accuracy level {level}, {threads} threads: Rewire {row['rewire']}, ONNX Runtime {row['onnxruntime']}, "
                  f"ratio {row['ratio']} {row['ratios']}", flush=True)
    best = {threads: min(row["onnxruntime"]["median"] for row in rows if row["threads"] == threads)
            for threads in options.threads}
    for row in rows:
        print(f"accuracy level {row['level']}, {row['threads']} threads: {row['rewire']['median'] / best[row['threads']]:.3f} "
              "of ONNX Runtime's better level")
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
