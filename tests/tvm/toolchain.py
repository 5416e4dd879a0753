# SPDX-License-Identifier: Apache-2.0
"""What the generators share: the target, how a library is exported and loaded, and the loop over cases."""

import argparse
import os
import sys
import time
import traceback

os.environ["TOPHUB_LOCATION"] = "NONE"  # TVM would ask the network for tuning logs

import tvm  # noqa: E402  (after the environment is set)

# The triple is named because one of the builds aims at another machine by default; no -mcpu, so that the
# same kernels are made wherever the tests run.
TARGET = tvm.target.Target({"kind": "llvm", "mtriple": "x86_64-linux-gnu"})

# What TVM's own allocator gives tensors, and compiled kernels may rely on.
ALIGNMENT = 128 if tvm.__version__.startswith(("0.8", "0.9")) else 64


# C has no vectors.
C_CONFIG = {"tir.disable_vectorize": True}


def settings(program):
    """(target, configuration) that a program is compiled with."""
    return (program.target, C_CONFIG) if program.target else (TARGET, {})


def export(module, path):
    """Links a module to a shared library by the C++ compiler."""
    module.export_library(path)


def load(path):
    return tvm.runtime.load_module(path)


def _run_in_child(generate, output, name):
    """Runs one case in a child process: TVM's parser and compiler can take their process down."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        try:
            generate(output, name)
            os._exit(0)
        except BaseException:
            traceback.print_exc(file=sys.stdout)
            sys.stdout.flush()
            os._exit(1)
    return os.waitpid(child, 0)[1]


def run_all(cases, generate, arguments):
    """Generates the named cases, or all; prints a line for each and returns the exit status."""
    parser = argparse.ArgumentParser()
    parser.add_argument("output", help="the folder of the generated cases")
    parser.add_argument("cases", nargs="*", metavar="case", help="one of " + ", ".join(cases) + "; all by default")
    options = parser.parse_args(arguments)
    output = options.output
    failed = 0
    for name in options.cases or list(cases):
        start = time.monotonic()
        status = _run_in_child(generate, output, name)
        failed += status != 0
        outcome = f"FAILED (wait status {status})" if status else "ok"
        print(f"{outcome} {name} {time.monotonic() - start:.2f}s", flush=True)
    return 1 if failed else 0
