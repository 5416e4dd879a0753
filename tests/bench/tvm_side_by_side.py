#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Rewire's VM and TVM's own on the same files, kernels included, in one run.

    tvm_side_by_side.py PEER CASES [--samples N] [--only TEXT]

PEER is the program of tvm_peer.cc, CASES what tests/tvm/generate.py wrote. Every Relay VM executable of every TVM is
called with the inputs of its first call, bound once; each call makes its own outputs, as TVM's VM always does. Both
sides run on one CPU with one thread. Their samples of a few milliseconds alternate, so that a change of the machine's
speed meets both, and what is compared is the two of a pair. Prints tables in Markdown.

The kernels are the same machine code on both sides. What they alone take is measured on ours, by calling each of them
three times and once in place of once; where TVM's VM is not slower by three times, a second table says how far the
kernels are to blame.
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
SHORT_FACTOR = 3


class Worker:
    def __init__(self, command):
        environment = dict(os.environ, TVM_NUM_THREADS="1", TVM_BIND_THREADS="0", OMP_NUM_THREADS="1")
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )

    def seconds(self, case, calls, *more):
        """Seconds that one of `calls` calls took."""
        print(case, calls, *more, file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline().strip()
        if not answer or answer.startswith("error"):
            raise RuntimeError(f"{case}: {answer or 'the process ended'}")
        return float(answer) / calls

    def close(self):
        self._process.stdin.close()
        self._process.wait()


def calls_for(call):
    """How many calls make a sample. Leaves everything warm."""
    calls = 1
    call(1)
    while calls < 1 << 20 and call(calls) * calls < SAMPLE_SECONDS / 2:
        calls *= 2
    return calls


def samples(first, second, count):
    """Seconds of two ways to call, in turn: a list of each."""
    both = (first, calls_for(first)), (second, calls_for(second))
    taken = [], []
    for i in range(count):
        for side in (0, 1) if i % 2 == 0 else (1, 0):
            call, calls = both[side]
            taken[side].append(call(calls))
    return taken


class Program:
    """What one file came to, in seconds."""

    def __init__(self, version, case, peer, tvm, count):
        self.name, self.version = case.name, version
        ours, theirs = samples(
            lambda calls: peer.seconds(case, calls, 0), lambda calls: tvm.seconds(case, calls), count
        )
        self.ours, self.theirs = statistics.median(ours), statistics.median(theirs)
        self.low, self.factor, self.high = statistics.quantiles([b / a for a, b in zip(ours, theirs)], n=4)
        self.is_short = self.theirs < SHORT_SECONDS
        if self.factor < SHORT_FACTOR:
            once, thrice = samples(
                lambda calls: peer.seconds(case, calls, 1), lambda calls: peer.seconds(case, calls, 3), count
            )
            self.kernels = (statistics.median(thrice) - statistics.median(once)) / 2

    def cell(self):
        return (
            f"{1e6 * self.ours:.2f} {1e6 * self.theirs:.2f} "
            f"**{self.factor:.2f}** ({self.low:.2f} .. {self.high:.2f})"
        )

    def kernel_row(self):
        rest = self.ours - self.kernels, self.theirs - self.kernels
        cells = [f"{1e6 * each:.2f}" for each in (self.ours, self.theirs, self.kernels, *rest)]
        return f"| {self.name}, {self.version} | {' | '.join(cells)} | {rest[1] / rest[0]:.1f} |"


def measure(options, version, directory):
    requirements = HERE.parent / "tvm" / "requirements" / f"{version}.txt"
    peer = Worker([options.peer.resolve()])
    tvm = Worker([environments.python_of(requirements), "-B", HERE / "tvm_worker.py"])
    cases = sorted(path.parent.resolve() for path in directory.glob("*/case.json"))
    programs = [Program(version, case, peer, tvm, options.samples) for case in cases if options.only in str(case)]
    peer.close()
    tvm.close()
    return programs


def print_tables(versions, programs):
    by_place = {(each.name, each.version): each for each in programs}
    print("| | " + " | ".join(versions) + " |\n|---|" + "---|" * len(versions))
    for name in sorted({each.name for each in programs}):
        cells = [by_place[name, v].cell() if (name, v) in by_place else "" for v in versions]
        print(f"| {name} | {' | '.join(cells)} |")
    print("\n| | Rewire | TVM | kernels | Rewire without | TVM without | times |\n|---|---:|---:|---:|---:|---:|---:|")
    for each in sorted(programs, key=lambda each: (each.name, each.version)):
        if each.factor < SHORT_FACTOR:
            print(each.kernel_row())


def print_summary(programs):
    short = [each for each in programs if each.is_short]
    slower = [f"{each.name}, {each.version} ({each.factor:.3f})" for each in programs if each.factor <= 1]
    missed = [f"{each.name}, {each.version} ({each.factor:.2f})" for each in short if each.factor < SHORT_FACTOR]
    middle = statistics.median(each.factor for each in programs)
    print(f"\n{len(programs)} files, ours {middle:.1f} times as fast in the median; not faster: {', '.join(slower) or 'none'}")
    print(f"{len(short)} of them take TVM less than 20 us; less than {SHORT_FACTOR} times as fast: {', '.join(missed) or 'none'}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("peer", type=pathlib.Path)
    parser.add_argument("cases", type=pathlib.Path)
    parser.add_argument("--samples", type=int, default=31)
    parser.add_argument("--only", default="", help="take only the cases whose path has this in it")
    options = parser.parse_args()
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    directories = sorted(options.cases.glob("relay-*/relay"), key=lambda each: int(each.parent.name.split(".")[1]))
    measured = {each.parent.name: measure(options, each.parent.name, each) for each in directories}
    programs = [program for each in measured.values() for program in each]
    print_tables(list(measured), programs)
    print_summary(programs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
