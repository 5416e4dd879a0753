#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Rewire's VM and TVM's own on the same files, kernels included, in one run.

    tvm_side_by_side.py PEER CASES [--samples N] [--markdown]

PEER is the program of tvm_peer.cc, CASES what tests/tvm/generate.py wrote. Every Relay VM executable of every TVM is
called with the inputs of its first call, bound once; each call makes its own outputs, as TVM's VM always does. Both
sides run on one CPU with one thread. Their samples of a few milliseconds alternate, so that a change of the machine's
speed meets both. A figure is the median of the samples, with the quartiles. --markdown prints tables.
"""

import argparse
import os
import pathlib
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))
import environments  # noqa: E402  (after the path is set)

SAMPLE_SECONDS = 2e-3
SHORT_SECONDS = 20e-6  # programs below this are to be three times as fast


class Worker:
    def __init__(self, command):
        environment = dict(os.environ, TVM_NUM_THREADS="1", TVM_BIND_THREADS="0", OMP_NUM_THREADS="1")
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )

    def seconds(self, case, calls):
        """Seconds that one of `calls` calls took."""
        print(case, calls, file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline().strip()
        if not answer or answer.startswith("error"):
            raise RuntimeError(f"{case}: {answer or 'the process ended'}")
        return float(answer) / calls

    def close(self):
        self._process.stdin.close()
        self._process.wait()


def calls_for(worker, case):
    """How many calls make a sample."""
    calls = 1
    worker.seconds(case, 1)
    while calls < 1 << 20:
        seconds = worker.seconds(case, calls) * calls
        if seconds >= SAMPLE_SECONDS / 2:
            break
        calls *= 2
    return calls


def measure(workers, case, samples):
    """For each worker the seconds of a call, sorted."""
    calls = [calls_for(worker, case) for worker in workers]
    taken = [[] for _ in workers]
    for i in range(samples):
        for side in (0, 1) if i % 2 == 0 else (1, 0):
            taken[side].append(workers[side].seconds(case, calls[side]))
    return [sorted(each) for each in taken]


def figure(seconds):
    low, middle, high = (1e6 * each for each in statistics.quantiles(seconds, n=4))
    return f"{middle:.2f}", f"{low:.2f} .. {high:.2f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("peer", type=pathlib.Path)
    parser.add_argument("cases", type=pathlib.Path)
    parser.add_argument("--samples", type=int, default=15)
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    slower, short, short_missed = [], 0, []
    for directory in sorted(options.cases.glob("relay-*/relay")):
        name = directory.parent.name
        requirements = HERE.parent / "tvm" / "requirements" / f"{name}.txt"
        python = environments.python_of(requirements)
        workers = [Worker([options.peer.resolve()]), Worker([python, "-B", HERE / "tvm_worker.py"])]
        ratios = []
        if options.markdown:
            print(f"\n| {name} | Rewire us | quartiles | TVM us | quartiles | times |\n|---|---:|---:|---:|---:|---:|")
        for case in sorted(path.parent.resolve() for path in directory.glob("*/case.json")):
            ours, theirs = measure(workers, case, options.samples)
            ratio = statistics.median(theirs) / statistics.median(ours)
            ratios.append(ratio)
            cells = [case.name, *figure(ours), *figure(theirs), f"{ratio:.1f}"]
            print("| " + " | ".join(cells) + " |" if options.markdown else f"{name} " + "  ".join(cells), flush=True)
            if ratio <= 1:
                slower.append(f"{name} {case.name} {ratio:.2f}")
            if statistics.median(theirs) < SHORT_SECONDS:
                short += 1
                if ratio < 3:
                    short_missed.append(f"{name} {case.name} {ratio:.2f}")
        for worker in workers:
            worker.close()
        middle = statistics.median(ratios)
        print(f"\n{name}: {len(ratios)} programs, {min(ratios):.2f} to {max(ratios):.1f} times as fast, median {middle:.1f}\n")
    print(f"not faster: {', '.join(slower) or 'none'}")
    print(f"under 20 us in TVM: {short}; less than 3 times as fast: {', '.join(short_missed) or 'none'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
