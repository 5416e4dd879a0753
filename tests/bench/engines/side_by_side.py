#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Four worker processes of an engine over one model: what they need in memory, and how fast they are, beside ONNX Runtime.

    side_by_side.py [--engine none|ray_data|beam|spark] [--model products|encoder] [--megabytes N] [--rows N] [--batch N] [--workers N] [--rounds N] [--json FILE]

Runs in an environment with the engines, rewire and rewire-integrations: `tests/integrations/run.sh BUILD PYTHON ENGINES -- SCRIPT` makes
one. `--model` is a chain of products of 2048 x 2048 with `--megabytes` of weights, or an encoder of texts, of the sizes of DistilBERT
(66 million parameters) over rows of 32 tokens. The engine "none" is processes that take batches from memory. A round of an engine runs the same job in fresh
processes: with workers that pass rows on (idle), with Rewire, and with ONNX Runtime, which gets the same arrays. Each worker of both
has one thread, as more would share the cores of the others. ONNX Runtime has all optimizations of graphs. It runs twice: as most
programs use it, and "mapped", where its workers share weights, too: they lie in a file beside the model and are not packed anew.
tests/integrations/test_one_copy.py holds the memory of Rewire.

memory   the sum over all workers of the proportional set size (Pss of /proc/PID/smaps_rollup), less that of idle workers. It is read
         while all workers have run three batches and hold still.
rows/s   rows after that moment, by the time from it to the end of the last batch. On a machine with other work it is a lower bound;
CPU      the workers' own CPU time for these rows, in microseconds a row, depends on it less. That of idle workers is the engine's share.
ratio    ONNX Runtime's CPU time a row by Rewire's, and Rewire's rows/s by ONNX Runtime's, in one round. Above 1, Rewire is faster.

A figure is the median of the rounds, and the range that they span. `tests/bench/results.py --take FILE engines` makes the page of them.
"""

import argparse
import collections
import importlib
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import measured_models
import numpy

HERE = pathlib.Path(__file__).resolve().parent
ENGINES = ("ray_data", "beam", "spark")
PEERS = ("onnxruntime", "onnxruntime_mapped")
KINDS = ("idle", "rewire", *PEERS)


def job(engine, kind, folder, batch, workers):
    """One job, in a process of its own. Workers import this folder's modules."""
    numpy.save(folder / f"{engine}-{kind}.npy", importlib.import_module(f"{engine}_job").run(kind, folder, batch, workers))


Measured = collections.namedtuple("Measured", "workers megabytes rows_per_second cpu_us_per_row")


def measured(marks):
    told = [json.loads(path.read_text()) for path in marks.glob("told-*.json")]
    rows = sum(each["rows"] for each in told)
    seconds = max((each["end"] for each in told), default=0) - min((each["begin"] for each in told), default=0)
    return Measured(len(told), sum(each["bytes"] for each in told) / 1e6, rows / seconds if rows else 0.0,
                    1e6 * sum(each["cpu"] for each in told) / rows if rows else 0.0)


def run_jobs(engine, folder, batch, workers, kinds=KINDS):
    """Runs the job of each kind in a process of its own, and returns what the workers have measured. Results are in `folder`."""
    results = {}
    paths = dict(os.environ, PYTHONPATH=f"{HERE}:{os.environ.get('PYTHONPATH', '')}")
    for kind in kinds:
        for old in (folder / kind).glob("*"):
            old.unlink()
        subprocess.run([sys.executable, __file__, "--job", kind, "--engine", engine, "--folder", folder, "--batch", str(batch),
                        "--workers", str(workers)], check=True, env=paths)
        results[kind] = measured(folder / kind)
    return results


def results_of(engine, folder, kind):
    return numpy.load(folder / f"{engine}-{kind}.npy")


def difference_of(engine, folder, kind):
    """The largest difference of results from Rewire's, by the largest value."""
    ours, theirs = (results_of(engine, folder, each) for each in ("rewire", kind))
    return float(numpy.abs(ours - theirs).max() / numpy.abs(theirs).max())


def summary_of(values):
    return {"median": statistics.median(values), "range": [min(values), max(values)]}


def summaries(rounds, workers, megabytes):
    """The row of an engine for docs/results: a summary of each figure of its rounds."""
    row = {"workers": workers, "megabytes": megabytes, "rounds": len(rounds),
           "idle": {"cpu": summary_of([each["idle"].cpu_us_per_row for each in rounds])}}
    for kind in KINDS[1:]:
        row[kind] = {"memory": summary_of([each[kind].megabytes - each["idle"].megabytes for each in rounds]),
                     "rows": summary_of([each[kind].rows_per_second for each in rounds]),
                     "cpu": summary_of([each[kind].cpu_us_per_row for each in rounds])}
    row["ratio"] = {peer: {"rows": summary_of([each["rewire"].rows_per_second / each[peer].rows_per_second for each in rounds]),
                           "cpu": summary_of([each[peer].cpu_us_per_row / each["rewire"].cpu_us_per_row for each in rounds])}
                    for peer in PEERS}
    return row


def measure(engine, folder, arguments):
    rounds, differences = [], {}
    for number in range(arguments.rounds):
        results = run_jobs(engine, folder, arguments.batch, arguments.workers)
        if {each.workers for each in results.values()} != {arguments.workers}:
            sys.exit(f"side_by_side.py: {engine}: not all {arguments.workers} workers got three batches; give it more --rows")
        differences = {peer: max(differences.get(peer, 0), difference_of(engine, folder, peer)) for peer in PEERS}
        rounds.append(results)
        for kind, each in results.items():
            print(f"{engine} round {number + 1}: {kind:18} {each.megabytes - results['idle'].megabytes:8.1f} MB beyond idle  "
                  f"{each.rows_per_second:8.1f} rows/s  {each.cpu_us_per_row:8.0f} us of CPU a row", flush=True)
    row = {"engine": engine, "model": arguments.model, "difference": max(differences.values()),
           **summaries(rounds, arguments.workers, os.path.getsize(folder / "model.rwx") / 1e6)}
    for peer in PEERS:
        ratio = row["ratio"][peer]
        print(f"{engine}: {peer}: rows/s {ratio['rows']['median']:.2f} of it, CPU {ratio['cpu']['median']:.2f}; "
              f"largest difference of results {differences[peer]:.1e} of the largest value", flush=True)
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", choices=("none", *ENGINES))
    parser.add_argument("--model", choices=tuple(measured_models.MODELS), default="products")
    parser.add_argument("--megabytes", type=float, default=256)
    parser.add_argument("--rows", type=int, default=2048)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--job", choices=KINDS, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=pathlib.Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.job:
        job(arguments.engine, arguments.job, arguments.folder, arguments.batch, arguments.workers)
        return
    with tempfile.TemporaryDirectory() as folder:
        measured_models.MODELS[arguments.model](pathlib.Path(folder), arguments.rows, arguments.megabytes)
        engines = [arguments.engine] if arguments.engine else ("none", *ENGINES)
        rows = [measure(engine, pathlib.Path(folder), arguments) for engine in engines]
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
