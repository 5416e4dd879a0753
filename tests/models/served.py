#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Serves each model by vm-serve, and compares what vm-run gets over each transport with a local run of one thread, byte
by byte. Another number of threads may add up in another order.

    served.py --bin build/release/bin --cases CASES [--model NAME]...

CASES is what reference.py wrote. All models are compared with all their inputs. Prints a line for each set of inputs, and how many
models there are and were compared. A model that cannot be served must be refused by name with the reason in REFUSED. Exits with 1 when any
differs, failed or was left out otherwise, or when there was nothing to compare.
"""

import argparse
import contextlib
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

import check

# Models that cannot be served, with what vm-serve says.
REFUSED = {"loss_quality": "output 'plcmos' is no tensor of known rank, so it cannot be served"}

TRANSPORTS = [("http", ""), ("grpc", ""), ("http", "?shared_memory"), ("grpc", "?shared_memory")]


@contextlib.contextmanager
def server(tools, executable):
    """Gives the address of each protocol. SIGTERM must end the server with success."""
    command = [tools / "vm-serve", executable, "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0", "--loops", "1", "--threads", "1"]
    with subprocess.Popen([str(part) for part in command], stdout=subprocess.PIPE, text=True) as process:
        try:
            told = [process.stdout.readline().split() for _ in range(2)]
            if any(not words for words in told):
                raise RuntimeError(f"vm-serve does not serve {executable.name}")
            yield {words[1].lower(): words[-1] for words in told}
        finally:
            process.terminate()
        if process.wait(60) != 0:
            raise RuntimeError(f"vm-serve exited with {process.returncode}")


def results(tools, program, case, scratch, options=()):
    path = scratch / "served.npz"
    command = [tools / "vm-run", program, "--output", f"@{path}", *options]
    for file in sorted((case / "in").glob("*.npy")):
        command += ["--input", f"{file.stem}=@{file}"]
    check.call(command)
    with np.load(path) as values:
        return {name: values[name] for name in values.files}


def difference(given, expected):
    """None, or what is wrong."""
    if given.keys() != expected.keys():
        return f"outputs {sorted(given)}, locally {sorted(expected)}"
    for name, value in expected.items():
        other = given[name]
        if other.dtype != value.dtype or other.shape != value.shape:
            return f"{name} is {other.dtype}{list(other.shape)}, locally {value.dtype}{list(value.shape)}"
        if other.tobytes() != value.tobytes():
            return f"{name}: other bytes than locally"
    return None


def refusal(tools, executable):
    """None, or what is wrong with how vm-serve refuses the model."""
    expected = REFUSED[executable.stem]
    try:
        check.call([tools / "vm-serve", executable, "--http", "127.0.0.1:0"])
    except RuntimeError as error:
        return None if expected in str(error) else f"{error}; expected: {expected}"
    return f"is served; expected: {expected}"


def compare_model(tools, folder, scratch):
    """Yields (what was compared, problem or None)."""
    executable = scratch / f"{folder.name}.rwx"
    check.compile_model(tools, folder, executable)
    if folder.name in REFUSED:
        yield f"{folder.name} is refused: {REFUSED[folder.name]}", refusal(tools, executable)
        return
    with server(tools, executable) as addresses:
        for case in sorted(path for path in folder.iterdir() if path.is_dir()):
            given = check.split_texts(case, scratch)
            local = results(tools, executable, given, scratch, ["--threads", "1"])
            for protocol, query in TRANSPORTS:
                url = f"{protocol}://{addresses[protocol]}/{folder.name}{query}"
                label = f"{folder.name}, inputs {case.name}, {protocol}{query}: {len(local)} outputs"
                yield label, difference(results(tools, url, given, scratch), local)
    executable.unlink()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", type=pathlib.Path, required=True, help="folder of vm-compile, vm-run and vm-serve")
    parser.add_argument("--cases", type=pathlib.Path, required=True)
    parser.add_argument("--model", action="append")
    options = parser.parse_args()
    models = options.model or sorted(path.name for path in options.cases.iterdir() if path.is_dir())
    compared, refused, failures, same = set(), set(), 0, 0
    for model in models:
        with tempfile.TemporaryDirectory() as scratch:
            try:
                for label, problem in compare_model(options.bin, options.cases / model, pathlib.Path(scratch)):
                    (refused if model in REFUSED else compared).add(model)
                    failures += problem is not None
                    same += problem is None
                    print(f"{'FAILED' if problem else 'ok    '} {label}{f': {problem}' if problem else ''}", flush=True)
            except (RuntimeError, OSError, subprocess.TimeoutExpired) as error:
                failures += 1
                print(f"FAILED {model}: {error}", flush=True)
    left_out = sorted(set(models) - compared - refused)
    print(f"{len(models)} models, {len(compared)} compared, refused by name: {', '.join(sorted(refused)) or 'none'}, left out: "
          f"{', '.join(left_out) or 'none'}; {same} checks passed, {failures} failed")
    return 1 if failures or left_out or not same else 0


if __name__ == "__main__":
    sys.exit(main())
