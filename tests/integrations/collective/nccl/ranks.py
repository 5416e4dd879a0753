#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ranks whose tensors are on a device, over the simulated NCCL: one dies, leaves, comes late. ranks.py BUILD"""

import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import ranks as by_mpi  # noqa: E402

REDUCE, REDUCE_LARGE = by_mpi.REDUCE, by_mpi.REDUCE_LARGE
NEVER_SENT = "receive,peer=0;tag=7,,f32[4]"


class FileJob(by_mpi.Job):
    """As by_mpi.Job, of processes that no mpirun has started: a shell starts them, and they meet by a file."""

    def __init__(self, program, ranks, environment=()):
        self.folder = tempfile.TemporaryDirectory()
        starts = [f"REWIRE_COLLECTIVE_RANK={i} sh -c 'echo \"rank {i}: process $$\"; exec \"$0\" \"$@\"' '{program}' "
                  + " ".join(f"'{step}'" for step in steps) + " &" for i, steps in enumerate(ranks)]
        super().start(["sh", "-c", "\n".join([*starts, "wait"])],
                      {"REWIRE_COLLECTIVE_FILE": self.folder.name + "/job", "REWIRE_COLLECTIVE_RANKS": str(len(ranks)),
                       **dict(environment)})

    def end(self, seconds=60):
        status = super().end(seconds)
        self.folder.cleanup()
        return status


def jobs(program, ranks, environment=()):
    """The same job by mpirun and by a file."""
    yield by_mpi.Job(program, ranks, by_mpi.RECOVERY, environment)
    yield FileJob(program, ranks, environment)


def calls_end_well(program):
    steps = [REDUCE, REDUCE_LARGE, "broadcast,root=1,f32[4],f32[4]", "all_gather,,f32[4],f32[8]"]
    for job in jobs(program, [[*steps, "send,peer=1,f32[4],i64[]"], [*steps, "receive,peer=0,,f32[4]"]]):
        assert job.end() == 0, job.text()
        assert "failed" not in job.text(), job.text()
        assert len(re.findall("done ", job.text())) == 10, job.text()


def a_rank_that_dies_is_named_by_all_others(program):
    for call in (REDUCE, REDUCE_LARGE):
        for job in jobs(program, [[REDUCE, call], [REDUCE, "sleep:60"], [REDUCE, call]]):
            for rank in range(3):
                job.wait_for(rf"rank {rank}: done {re.escape(REDUCE)}")
            pid = job.pid(1)
            time.sleep(0.2)  # the others have given their devices the next call
            at = time.monotonic()
            os.kill(pid, signal.SIGKILL)
            for rank in (0, 2):
                told, match = job.wait_for(
                    rf"rank {rank}: failed: (.*rewire.device.collective.all_reduce: .*rank 1 \(process {pid} on host \S+\) has ended.*)")
                assert told - at < by_mpi.PROMISED, f"rank {rank} knew after {told - at:.2f} s"
                print(f"  rank {rank} after {told - at:.2f} s: {match[1]}")
            job.end()


def a_rank_that_dies_before_ranks_are_connected_is_named(program):
    waits = "all_reduce,channel=3,f32[4],f32[4]"
    for job in jobs(program, [[REDUCE, "sleep:60"], [REDUCE, waits], [REDUCE, NEVER_SENT]]):
        for rank in range(3):
            job.wait_for(rf"rank {rank}: done {re.escape(REDUCE)}")
        pid = job.pid(0)
        time.sleep(0.2)
        os.kill(pid, signal.SIGKILL)
        for rank in (1, 2):
            job.wait_for(rf"rank {rank}: failed: .*rank 0 \(process {pid} on host \S+\) has ended")
        job.end()


def nobody_waits_longer_than_the_timeout(program):
    environment = {"REWIRE_COLLECTIVE_TIMEOUT": "0.5"}.items()
    for job in jobs(program, [[REDUCE, "fails:" + REDUCE, REDUCE], [REDUCE, "sleep:3", REDUCE]], environment):
        job.wait_for(r"rank 0: failed: .*rewire.device.collective.all_reduce: the other ranks have not come to this call within 0.5\d* s")
        job.wait_for(r"rank 0: failed: .*collectives of this process work again after a new start of all ranks")
        job.wait_for(r"rank 1: failed: .*has left: the other ranks have not come")
        job.end()


def an_error_that_nccl_finds_ends_the_call(program):
    for job in jobs(program, [[REDUCE, REDUCE], [REDUCE, REDUCE]], {"REWIRE_SIMULATED_NCCL_ERROR": "2"}.items()):
        job.wait_for(r"failed: .*(an exchange of NCCL|ncclAllReduce): remote process exited or there was a network error: simulated: the peer has closed")
        job.end()
        assert len(re.findall("failed: ", job.text())) == 2, job.text()


def what_is_missing_is_named(program):
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "libnccl.so.2").touch()
        broken = {"LD_LIBRARY_PATH": folder + ":" + os.environ["LD_LIBRARY_PATH"]}
        old = {"REWIRE_SIMULATED_NCCL_VERSION": "21205"}
        for environment, words in ((broken, "collectives on a device need NCCL: .*libnccl.so.2: file too short"),
                                   (old, r"is NCCL 2\.12\.5, expected at least 2\.14\.0")):
            job = FileJob(program, [[REDUCE], [REDUCE]], environment.items())
            job.wait_for(r"rank 0: failed: .*" + words)
            job.end()
    for name, value in (("REWIRE_COLLECTIVE_RANKS", "none"), ("REWIRE_COLLECTIVE_RANKS", "0"), ("REWIRE_COLLECTIVE_FILE", "/no/such/folder/job")):
        job = FileJob(program, [[REDUCE]], {name: value}.items())
        job.wait_for(rf"rank 0: failed: .*{name}")
        job.end()


def files_of_an_earlier_job_are_refused(program):
    with tempfile.TemporaryDirectory() as folder:
        environment = {"REWIRE_COLLECTIVE_FILE": folder + "/job"}.items()
        for expected in ("rank 0: done", "rank 0: failed: .*job.rank0 is there already: .*REWIRE_COLLECTIVE_FILE names another path"):
            job = FileJob(program, [[REDUCE]], environment)
            job.wait_for(expected)
            job.end()


def one_process_is_a_job_of_one(program):
    alone = subprocess.run([program, REDUCE, "all_gather,,f32[4],f32[4]"], capture_output=True, text=True, timeout=60)
    assert alone.returncode == 0, alone.stdout + alone.stderr


def main(build):
    build = pathlib.Path(build).resolve()
    os.environ.setdefault("REWIRE_LIBRARY_PATH", str(build / "lib/rewire"))
    program = str(build / "tests/bin/collective_rank")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["REWIRE_SIMULATED_NCCL_FOLDER"] = folder
        for test in (calls_end_well, a_rank_that_dies_is_named_by_all_others,
                     a_rank_that_dies_before_ranks_are_connected_is_named, nobody_waits_longer_than_the_timeout,
                     an_error_that_nccl_finds_ends_the_call, what_is_missing_is_named,
                     files_of_an_earlier_job_are_refused, one_process_is_a_job_of_one):
            print(test.__name__.replace("_", " "), flush=True)
            test(program)


if __name__ == "__main__":
    main(*sys.argv[1:])
