#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the ranks of a job do when one dies, leaves, comes late or makes another call. ranks.py BUILD"""

import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
import time

MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none"]
# mpirun ends a job as soon as one of its ranks has died. With these the others can say themselves what they know, and
# mpirun's own status is 0.
RECOVERY = ["--enable-recovery", "--mca", "orte_abort_on_non_zero_status", "0"]
REDUCE = "all_reduce,,f32[4],f32[4]"
REDUCE_LARGE = "all_reduce,,f32[400000],f32[400000]"
NEVER_SENT = "receive,peer=0;tag=7,,f32[4]"
PROMISED = 2.0  # seconds from a rank's death to the end of the others


class Job:
    """A job with one list of steps for each rank. Its lines can be waited for."""

    def __init__(self, program, ranks, options=(), environment=()):
        command = MPIRUN + list(options)
        for i, steps in enumerate(ranks):
            # The shell's process becomes the rank's.
            start = f'echo "rank {i}: process $$"; exec "$0" "$@"'
            command += ([":"] if i else []) + ["-n", "1", "sh", "-c", start, program, *steps]
        self.start(command, environment)

    def start(self, command, environment):
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                        env={**os.environ, **dict(environment)})
        self.lines, self.changed = [], threading.Condition()
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            with self.changed:
                self.lines.append((time.monotonic(), line.rstrip("\n")))
                self.changed.notify_all()

    def wait_for(self, pattern, seconds=60):
        """The time at which a line with the pattern came, and what matched."""
        def found():
            return next(((at, match) for at, line in self.lines if (match := re.search(pattern, line))), None)
        with self.changed:
            assert self.changed.wait_for(found, seconds), f"no line has '{pattern}':\n{self.text()}"
            return found()

    def text(self):
        return "\n".join(line for _, line in self.lines)

    def end(self, seconds=60):
        """Waits for the job's end. Its exit status."""
        try:
            status = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise AssertionError(f"the job has not ended within {seconds} s:\n{self.text()}") from None
        self.reader.join()
        return status

    def pid(self, rank):
        return int(self.wait_for(rf"rank {rank}: process (\d+)")[1][1])


def killed(program, options, ranks, dies, waits_after):
    """Kills a rank when all have done so many steps. Returns the job, the time, and the rank's process."""
    job = Job(program, ranks, options)
    pids = [job.pid(rank) for rank in range(len(ranks))]
    for rank, step in enumerate(waits_after):
        job.wait_for(rf"rank {rank}: done {re.escape(step)}")
    at = time.monotonic()
    os.kill(pids[dies], signal.SIGKILL)
    return job, at, pids[dies]


def a_rank_that_dies_is_named_by_all_others(program):
    for call in (REDUCE, REDUCE_LARGE):
        ranks = [[REDUCE, call], [REDUCE, NEVER_SENT], [REDUCE, call], [REDUCE, "receive,peer=1;tag=3,,f32[4]"]]
        job, at, pid = killed(program, RECOVERY, ranks, 1, [REDUCE] * 4)
        for rank in (0, 2, 3):
            told, match = job.wait_for(rf"rank {rank}: failed: .*(rank 1 \(process {pid} on host \S+\) has ended|has left: .*rank 1 .*has ended)")
            assert told - at < PROMISED, f"rank {rank} knew after {told - at:.2f} s"
            print(f"  rank {rank} after {told - at:.2f} s: {match[1]}")
        job.end()
        assert time.monotonic() - at < 2 * PROMISED, f"the job ended {time.monotonic() - at:.2f} s later"


def mpirun_alone_ends_the_job(program):
    job, at, pid = killed(program, [], [[REDUCE, REDUCE], [REDUCE, NEVER_SENT]], 1, [REDUCE] * 2)
    assert job.end() != 0
    assert time.monotonic() - at < PROMISED, job.text()
    assert f"PID {pid}" in job.text() or "rank 1 (process" in job.text(), job.text()


def a_rank_that_is_at_its_end_does_not_wait_for_a_dead_one(program):
    job, at, _ = killed(program, RECOVERY, [[REDUCE], [REDUCE, NEVER_SENT]], 1, [REDUCE] * 2)
    job.end()
    assert time.monotonic() - at < PROMISED, job.text()


def a_rank_that_is_done_first_disturbs_nobody(program):
    swaps = [[], ["send,peer=2,f32[4],i64[]", "sleep:0.3", "receive,peer=2,,f32[4]"],
             ["receive,peer=1,,f32[4]", "sleep:0.3", "send,peer=1,f32[4],i64[]"]]
    job = Job(program, [[REDUCE, *steps] for steps in swaps], RECOVERY)
    assert job.end() == 0, job.text()


def other_calls_are_told_apart(program):
    for first, second in ((REDUCE, "all_reduce,,f32[5],f32[5]"), ("all_reduce,,f32[5],f32[5]", REDUCE)):
        job = Job(program, [[REDUCE, first], [REDUCE, second]], RECOVERY)
        job.wait_for(r"failed: .*rank \d \(process \d+ on host \S+\) sent (16 bytes, expected 20|more than 16 bytes); "
                     "all ranks must make the same calls in the same order")
        job.end()
        assert len(re.findall("failed: ", job.text())) == 2, job.text()


def a_rank_whose_deadline_has_passed_tells_the_others(program):
    first = [REDUCE, "deadline:0.3", "fails:" + REDUCE, "deadline:0", REDUCE]
    job = Job(program, [first, [REDUCE, NEVER_SENT], [REDUCE, REDUCE]], RECOVERY)
    job.wait_for(r"rank 0: failed: .*deadline")
    job.wait_for(r"rank 0: failed: .*collectives of this process work again after a new start of all ranks")
    job.wait_for(r"rank 1: failed: .*rank [02] \(process \d+ on host \S+\) has left: .*(cancelled|deadline)")
    job.wait_for(r"rank 2: failed: .*rank [01] \(process \d+ on host \S+\) has left: .*(cancelled|deadline)")
    job.end()


def nobody_waits_longer_than_the_timeout(program):
    late = [[REDUCE, REDUCE], [REDUCE, "sleep:2", REDUCE]]
    job = Job(program, late, RECOVERY, {"REWIRE_COLLECTIVE_TIMEOUT": "0.5"}.items())
    job.wait_for(r"rank 0: failed: .*the other ranks have not come to this call within 0.5\d* s \(REWIRE_COLLECTIVE_TIMEOUT\)")
    job.end()
    job = Job(program, late, (), {"REWIRE_COLLECTIVE_TIMEOUT": "30"}.items())
    assert job.end() == 0, job.text()
    job = Job(program, [[REDUCE]], (), {"REWIRE_COLLECTIVE_TIMEOUT": "soon"}.items())
    job.wait_for("REWIRE_COLLECTIVE_TIMEOUT is 'soon', expected seconds, more than 0")
    assert job.end() != 0


def hosts_may_have_initialized_mpi(program):
    for level in ("single", "funneled", "serialized", "multiple"):
        job = Job(program, [[f"host:{level}", REDUCE, REDUCE_LARGE]] * 2)
        assert job.end() == 0, job.text()
    job = Job(program, [["host:serialized", REDUCE, "other:" + REDUCE]] * 2)
    assert job.end() == 0, job.text()
    job = Job(program, [["host:funneled", REDUCE, "other:" + REDUCE]] * 2)
    job.wait_for("failed: .*the host has initialized MPI for one thread, and this is another one")
    assert job.end() != 0


def one_process_is_a_job_of_one(program):
    alone = subprocess.run([program, REDUCE, "all_gather,,f32[4],f32[4]"], capture_output=True, text=True, timeout=60)
    assert alone.returncode == 0, alone.stdout + alone.stderr


def main(build):
    build = pathlib.Path(build).resolve()
    os.environ.setdefault("REWIRE_LIBRARY_PATH", str(build / "lib/rewire"))
    program = str(build / "tests/bin/collective_rank")
    for test in (a_rank_that_dies_is_named_by_all_others, mpirun_alone_ends_the_job,
                 a_rank_that_is_at_its_end_does_not_wait_for_a_dead_one, a_rank_that_is_done_first_disturbs_nobody,
                 other_calls_are_told_apart, a_rank_whose_deadline_has_passed_tells_the_others,
                 nobody_waits_longer_than_the_timeout, hosts_may_have_initialized_mpi, one_process_is_a_job_of_one):
        print(test.__name__.replace("_", " "), flush=True)
        test(program)


if __name__ == "__main__":
    main(*sys.argv[1:])
