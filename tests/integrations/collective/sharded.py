#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Models that vm-compile splits over the ranks of a job give what one process gives.

    sharded.py BUILD            on the CPU
    sharded.py BUILD DEVICE     compiled for a device, on which collectives go over the simulated NCCL
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none"]
# Caches are empty, so that a rank's random inputs are those of the whole.
MODELS = {"encoder": [], "decoder": ["--dim", "length=5", "--dim", "past=0"], "experts": ["--dim", "length=5"], "towers": []}


def run(command, folder):
    done = subprocess.run([str(each) for each in command], cwd=folder, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, f"{command} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
    return done.stdout


def collectives(programs, folder):
    """The names of the collectives that the first rank calls."""
    text = run([programs / "vm-dis", "part.0.rwx"], folder)
    return set(re.findall(r"^\.kernel .*rewire\.(\S*collective\.\w+)", text, re.MULTILINE))


def libraries(programs, folder):
    """The parts of the names by which the libraries differ."""
    return {name.rpartition(".")[0] for name in collectives(programs, folder)}


def main(build, device=None):
    programs = build / "bin"
    place = ["--device", device, "--device-work", "0"] if device else []
    with tempfile.TemporaryDirectory() as folder:
        os.environ["REWIRE_SIMULATED_NCCL_FOLDER"] = folder
        run([build / "tests/bin/compiler_shards_test", "models of jobs are written"], folder)
        for name, sizes in MODELS.items():
            random = ["--random", "--seed", "3", "--threads", "1", *sizes]
            run([programs / "vm-compile", f"{name}.onnx", "-o", "whole.rwx"], folder)
            run([programs / "vm-run", "whole.rwx", *random, "-o", "y=@y.npy"], folder)
            rank = ["sh", "-c", f'exec "$0" {folder}/part.$OMPI_COMM_WORLD_RANK.rwx "$@"', programs / "vm-run", *random]
            for ranks in (2,) if device else (2, 4):
                run([programs / "vm-compile", f"{name}.onnx", "--shards", ranks, "--shard-for", "memory", *place, "-o", "part.rwx"], folder)
                assert libraries(programs, folder) == {"device.collective" if device else "collective"}
                # A sum is exchanged while the device computes what does not need it.
                assert ("device.collective.begin_all_reduce" in collectives(programs, folder)) == (device is not None and name == "towers")
                run([*MPIRUN, "-n", ranks, *rank, "-q", "-e", f"y=@{folder}/y.npy", "--rtol", "1e-4", "--atol", "1e-5"], folder)
                print(f"{name}: {ranks} shards give what one process gives")
        if device:
            # NCCL is for CUDA's devices alone.
            run([programs / "vm-compile", "encoder.onnx", "--shards", "2", "--shard-for", "memory", "--device", "opencl",
                 "--device-work", "0", "-o", "part.rwx"], folder)
            assert libraries(programs, folder) == {"collective"}
            return
        # The last stage has the output, and gives it to the bit.
        run([programs / "vm-compile", "encoder.onnx", "-o", "whole.rwx"], folder)
        run([programs / "vm-run", "whole.rwx", "--random", "--seed", "3", "-o", "y=@y.npy"], folder)
        run([programs / "vm-compile", "encoder.onnx", "--stages", "2", "-o", "part.rwx"], folder)
        stage = [programs / "vm-run", "--random", "--seed", "3", "-q"]
        run([*MPIRUN, "-n", "1", *stage, f"{folder}/part.0.rwx", ":", "-n", "1", *stage, f"{folder}/part.1.rwx", "-e", f"y=@{folder}/y.npy", "--rtol", "0",
             "--atol", "0"], folder)
        print("encoder: 2 stages give what one process gives, to the bit")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]).resolve(), *sys.argv[2:])
