#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures sessions of real models on ONNX Runtime's library and on Rewire's, by one program that only knows the C interface.

    onnxruntime_api.py --build BUILD [--model NAME] [--sessions 8] [--rounds 3]     in the environment of tests/models

Every figure is of a process of its own, on one thread; times are the smallest of the rounds, memory the median. "cached" is Rewire's
library with a folder of compiled models that has the model. Memory is what the process takes beyond an empty one: `dirty` is private
and written, which no other process can share; `resident` includes mapped pages of files. A line for each library says how long a
run in a Loop goes on after RunOptionsSetTerminate.
"""
import argparse
import importlib.util
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

# name: package, file in it, sizes and values of inputs that are open, and runs to time
MODELS = {
    "silero_vad": ("silero_vad", "data/silero_vad.onnx", ["input=1x576", "state=2x1x128", "sr@16000"], 500),
    "magika": ("magika", "models/standard_v3_3/model.onnx", ["bytes=1x2048"], 100),
    "ocr_det": ("rapidocr_onnxruntime", "models/ch_PP-OCRv4_det_infer.onnx", ["x=1x3x320x320"], 20),
    "ocr_rec": ("rapidocr_onnxruntime", "models/ch_PP-OCRv4_rec_infer.onnx", ["x=1x3x48x320"], 20),
    "ocr6_rec": ("rapidocr", "models/PP-OCRv6_rec_small.onnx", ["x=1x3x48x320"], 20),
    "slider": ("captcha_recognizer", "models/slider.onnx", ["images=1x3x640x640"], 5),
}
TERMINATED = 20  # runs
LIBRARIES = ("ONNX Runtime", "Rewire", "cached")


def package(name):
    """The folder of an installed package, which need not be imported."""
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        sys.exit(f"onnxruntime_api.py: the package {name} is not installed: run this by tests/support/environments.py")
    return pathlib.Path(spec.origin).parent


def measure(program, library, model, sessions, runs, shapes, cache):
    environment = {key: value for key, value in os.environ.items() if key != "REWIRE_MODEL_CACHE"}
    if cache is not None:
        environment["REWIRE_MODEL_CACHE"] = str(cache)
    command = [program, library, model, str(sessions), str(runs), "1", *shapes]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=600)
    if done.returncode != 0:
        sys.exit(f"onnxruntime_api.py: {' '.join(map(str, command))}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def summary(rounds):
    """One figure of several rounds for each key."""
    times = ("first", "second", "run")
    return {key: (min if key in times else statistics.median)(each[key] for each in rounds) for key in rounds[0]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True, help="the folder of a build")
    parser.add_argument("--model", choices=MODELS, help="one model")
    parser.add_argument("--sessions", type=int, default=8, help="sessions of one process (default: 8)")
    parser.add_argument("--rounds", type=int, default=3, help="processes for each figure (default: 3)")
    parser.add_argument("--json", type=pathlib.Path, help="also write the figures to this file")
    options = parser.parse_args()
    theirs = next(iter(sorted(package("onnxruntime").glob("capi/libonnxruntime.so*"))))
    ours = (options.build / "lib/onnxruntime/libonnxruntime.so.1").resolve()
    program = options.build / "tests/bin/bench-onnxruntime-api"
    figures = {"terminate": {}}
    for library, path in zip(LIBRARIES, (theirs, ours)):
        done = subprocess.run([program.with_name("bench-onnxruntime-terminate"), path, str(TERMINATED)], capture_output=True, text=True,
                              check=True, timeout=600)
        row = figures["terminate"][library] = json.loads(done.stdout)
        print(f"{'a Loop':12} {library:13} {row['median']:.3f} ms from terminate to the end of the run, {row['largest']:.3f} at most of "
              f"{TERMINATED}", flush=True)
    print(f"{'model':12} {'library':13} {'open ms':>9} {'2nd ms':>8} {'run ms':>9} {'one MB resident/dirty':>22} "
          f"{'2nd +MB':>8} {f'{options.sessions} MB resident/dirty':>21}")
    for name, (of, file, shapes, runs) in MODELS.items():
        if options.model not in (None, name):
            continue
        model = package(of) / file
        with tempfile.TemporaryDirectory() as cache:
            measure(program, ours, model, 2, 1, shapes, cache)  # which fills the cache
            places = dict(zip(LIBRARIES, ((theirs, None), (ours, None), (ours, cache))))
            rounds = {library: [] for library in LIBRARIES}
            for _ in range(options.rounds):
                for library, (path, folder) in places.items():
                    rounds[library].append(measure(program, path, model, options.sessions, runs, shapes, folder))
        figures[name] = {library: summary(each) for library, each in rounds.items()}
        for library, row in figures[name].items():
            print(f"{name:12} {library:13} {row['first']:9.1f} {row['second']:8.2f} {row['run']:9.3f} "
                  f"{row['one_resident']:11.1f}/{row['one_dirty']:10.1f} {row['two_dirty'] - row['one_dirty']:8.2f} "
                  f"{row['all_resident']:10.1f}/{row['all_dirty']:10.1f}", flush=True)
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
