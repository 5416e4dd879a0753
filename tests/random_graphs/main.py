#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws random ONNX models, runs each in several forms with Rewire, and compares with ONNX Runtime and the onnx package.

    PYTHONPATH=build/release/python tests/support/environments.py --run tests/python/requirements/python.txt \\
      tests/random_graphs/main.py --count 2000 --seed 1

README.md beside this file says what is drawn and compared. The same seed gives the same models. Prints a line for each model
that is refused, fails, is wrong, or ends the process, and at the end how many runs of each form ended in which way. With
--keep, each such model is made as small as it fails in the first such form, and written to a folder. Exits with 1 if there was
any, or nothing ran.
"""

import argparse
import collections
import pathlib
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))

BAD = ("refused", "failed", "wrong", "crashed", "hung")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1000, help="how many models")
    parser.add_argument("--seed", type=int, default=1, help="the first model's seed; the next ones follow")
    parser.add_argument("--seconds", type=float, help="stop after so many seconds")
    parser.add_argument("--forms", default="random", help="random (the default), all, or names such as passes,sizes,without:arena")
    parser.add_argument("--size", choices=["small", "medium", "large"], help="all models of this size")
    parser.add_argument("--only", help="operators that alone are drawn, such as Conv,ai.onnx.ml:Scaler")
    parser.add_argument("--nnsmith", action="store_true", help="models of nnsmith (requirements/nnsmith.txt) in place of our own")
    parser.add_argument("--device", action="store_true", help="also draw forms that run on a device of OpenCL")
    parser.add_argument("--keep", type=pathlib.Path, help="folder for models that fail, made small")
    parser.add_argument("--folder", type=pathlib.Path, action="append", help="run a model that --keep has written, in the forms of --forms")
    parser.add_argument("--limit", type=float, default=60, help="seconds for one model")
    return parser.parse_args()


def requests(options):
    if options.folder:
        return [{"folder": str(folder), "forms": options.forms, "device": options.device} for folder in options.folder]
    only = [(text.rpartition(":")[0], text.rpartition(":")[2]) for text in options.only.split(",")] if options.only else None
    return ({"seed": seed, "forms": options.forms, "only": only, "size": options.size, "nnsmith": options.nnsmith, "device": options.device}
            for seed in range(options.seed, options.seed + options.count))


def keep(options, request, form, status, detail):
    """Writes the model small. It is drawn again here, which is safe: drawing runs nothing of Rewire."""
    import reduce
    from worker import draw

    if "seed" not in request or form in ("drawing", "oracles", "start"):
        return
    folder = options.keep / f"{form.replace(':', '-')}-{request['seed']}"
    drawn = draw(request)
    small = reduce.to_folder(folder, drawn, form, status, detail, options.device, options.limit)
    operators = " ".join(node.op_type for node in small.proto.graph.node)
    print(f"      {folder}: {operators}", flush=True)


def main():
    from worker import Worker

    options = arguments()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # a long run that is ended says how far it came
    counts, models, began = collections.defaultdict(collections.Counter), 0, time.monotonic()
    worker = Worker(options.limit)
    try:
        for request in requests(options):
            if options.seconds and time.monotonic() - began > options.seconds:
                break
            models += 1
            kept = False
            for form, status, detail in worker.ask(request):
                counts[form.split(":")[0]][status] += 1
                if status in BAD:
                    name = request.get("seed", request.get("folder"))
                    print(f"{status.upper()} {name} {form}: {' '.join(detail.split())[:400]}", flush=True)
                    # What fails in one form mostly fails in others for the same reason.
                    if options.keep and not kept:
                        keep(options, request, form, status, detail)
                        kept = True
    except KeyboardInterrupt:
        print(f"stopped in the model {request.get('seed', request.get('folder'))}", flush=True)
        models -= 1
    finally:
        worker.stop()
    return report(counts, models, time.monotonic() - began)


def report(counts, models, seconds):
    for form, statuses in sorted(counts.items()):
        print(f"{form:12} " + ", ".join(f"{count} {status}" for status, count in sorted(statuses.items())))
    bad = sum(count for statuses in counts.values() for status, count in statuses.items() if status in BAD)
    ran = sum(statuses["ok"] for statuses in counts.values())
    print(f"{models} models in {seconds:.0f} s, {ran} runs right, {bad} not")
    return 1 if bad or not ran else 0


if __name__ == "__main__":
    sys.exit(main())
