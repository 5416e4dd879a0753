#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Models that vm-compile splits over the ranks of a job give what one process gives. sharded.py BUILD"""

import pathlib
import subprocess
import sys
import tempfile

MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none"]
# Caches are empty, so that a rank's random inputs are those of the whole.
MODELS = {"encoder": [], "decoder": ["--dim", "length=5", "--dim", "past=0"], "experts": ["--dim", "length=5"]}


def run(command, folder):
    done = subprocess.run([str(each) for each in command], cwd=folder, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, f"{command} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
    return done.stdout


def main(build):
    programs = build / "bin"
    with tempfile.TemporaryDirectory() as folder:
        run([build / "tests/bin/compiler_shards_test", "models of jobs are written"], folder)
        for name, sizes in MODELS.items():
            random = ["--random", "--seed", "3", "--threads", "1", *sizes]
            run([programs / "vm-compile", f"{name}.onnx", "-o", "whole.rwx"], folder)
            run([programs / "vm-run", "whole.rwx", *random, "-o", "y=@y.npy"], folder)
            rank = ["sh", "-c", f'exec "$0" {folder}/part.$OMPI_COMM_WORLD_RANK.rwx "$@"', programs / "vm-run", *random]
            for ranks in (2, 4):
                run([programs / "vm-compile", f"{name}.onnx", "--shards", ranks, "--shard-for", "memory", "-o", "part.rwx"], folder)
                run([*MPIRUN, "-n", ranks, *rank, "-q", "-e", f"y=@{folder}/y.npy", "--rtol", "1e-4", "--atol", "1e-5"], folder)
                print(f"{name}: {ranks} shards give what one process gives")
        # The last stage has the output, and gives it to the bit.
        run([programs / "vm-compile", "encoder.onnx", "-o", "whole.rwx"], folder)
        run([programs / "vm-run", "whole.rwx", "--random", "--seed", "3", "-o", "y=@y.npy"], folder)
        run([programs / "vm-compile", "encoder.onnx", "--stages", "2", "-o", "part.rwx"], folder)
        stage = [programs / "vm-run", "--random", "--seed", "3", "-q"]
        run([*MPIRUN, "-n", "1", *stage, f"{folder}/part.0.rwx", ":", "-n", "1", *stage, f"{folder}/part.1.rwx", "-e", f"y=@{folder}/y.npy", "--rtol", "0",
             "--atol", "0"], folder)
        print("encoder: 2 stages give what one process gives, to the bit")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]).resolve())
