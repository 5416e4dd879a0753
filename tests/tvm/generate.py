#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Generates every case: makes the environments that are missing, then runs the generators in them.

    generate.py OUTPUT [--jobs N]

Writes OUTPUT/<environment>/<kind>/<case>/ and one log a generator, OUTPUT/<environment>/<kind>.log. Prints a line per
generator and the totals; exits with 1 when anything failed. What exists in OUTPUT from the same scripts is kept.
"""

import argparse
import concurrent.futures
import hashlib
import json
import pathlib
import shutil
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))
import environments  # noqa: E402  (after the path is set)

RELAY = ("relay", "graph", "onefile", "opencl", "kernels")
# Slowest first, so that two jobs end at about the same time.
GENERATORS = [(name, kind) for name in ("relay-0.8", "relay-0.19", "relay-0.16", "relay-0.9") for kind in RELAY]
GENERATORS += [("tvm-0.25", "kernels"), ("tvm-ffi", "kernels")]


def requirements(environment):
    return HERE / "requirements" / f"{environment}.txt"


def fingerprint(environment, kind):
    """Changes when the environment does, or what the generator is made of."""
    digest = hashlib.sha256(str(environments.environment(requirements(environment))).encode())
    kernels = HERE / "gen_kernels.py"
    if kind == "kernels":
        sources = [kernels, HERE / "toolchain.py"]
    else:
        modules = [path for path in sorted(HERE.glob("gen_*.py")) if path != kernels]
        sources = [HERE / "casefile.py", HERE / "toolchain.py", *modules, *sorted(HERE.glob("relay_cases/*.py"))]
    for path in sources:
        digest.update(path.read_bytes())
    return digest.hexdigest()


def run(output, environment, kind):
    """Runs one generator; gives (environment, kind, cases, failures, seconds)."""
    directory = output / environment / kind
    directory.mkdir(parents=True, exist_ok=True)
    stamp = directory / "stamp"
    wanted = fingerprint(environment, kind)
    if stamp.exists() and stamp.read_text() == wanted:
        return environment, kind, len(list(directory.glob("*/case.json"))), [], 0.0
    # Cases that are no longer made must not linger.
    shutil.rmtree(directory)
    directory.mkdir()
    start = time.monotonic()
    command = [environments.python_of(requirements(environment)), "-B", HERE / f"gen_{kind}.py", directory]
    log = output / environment / f"{kind}.log"
    with log.open("w") as file:
        status = subprocess.run(command, stdout=file, stderr=subprocess.STDOUT, check=False).returncode
    lines = log.read_text(errors="replace").splitlines()
    failures = [line for line in lines if line.startswith("FAILED")]
    if status != 0 and not failures:
        failures = [f"exit status {status}, see {log}"]
    if not failures:
        stamp.write_text(wanted)
    return environment, kind, len(list(directory.glob("*/case.json"))), failures, time.monotonic() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("output", type=pathlib.Path)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    start = time.monotonic()
    status = environments.main(sorted((HERE / "requirements").glob("*.txt")))
    if status != 0:
        return status
    print(f"environments ready after {time.monotonic() - start:.0f}s", flush=True)

    start = time.monotonic()
    failed, totals = 0, {}
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        made = [each for each in GENERATORS if environments.is_ready(requirements(each[0]))]
        jobs = [pool.submit(run, options.output, *generator) for generator in made]
        for job in concurrent.futures.as_completed(jobs):
            environment, kind, count, failures, seconds = job.result()
            print(f"{environment} {kind}: {count} cases in {seconds:.0f}s", flush=True)
            for failure in failures:
                print(f"  {failure}", flush=True)
            failed += len(failures)
            totals[kind] = totals.get(kind, 0) + count
    print(json.dumps(totals), f"in {time.monotonic() - start:.0f}s, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
