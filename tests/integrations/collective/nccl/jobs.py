#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a test's program as the ranks of a job over the simulated NCCL.

    jobs.py PROGRAM alone      one process
    jobs.py PROGRAM mpi N      by mpirun
    jobs.py PROGRAM file N     processes that find each other by a file
"""

import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from ranks import MPIRUN  # noqa: E402

CASES = ["~[host]"]


def run(program, how, ranks=1):
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "REWIRE_SIMULATED_NCCL_FOLDER": folder}
        if how != "file":
            command = [*MPIRUN, "-n", str(ranks)] if how == "mpi" else []
            return subprocess.run([*command, program, *CASES], env=environment).returncode
        environment |= {"REWIRE_COLLECTIVE_FILE": f"{folder}/job", "REWIRE_COLLECTIVE_RANKS": str(ranks)}
        processes = [subprocess.Popen([program, *CASES], env=environment | {"REWIRE_COLLECTIVE_RANK": str(rank)})
                     for rank in range(ranks)]
        return max(abs(process.wait()) for process in processes)


if __name__ == "__main__":
    sys.exit(run(sys.argv[1], sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 1))
