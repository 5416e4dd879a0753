#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A job on two hosts: network namespaces with addresses, names, processes and boot ids of their own, joined by a cable.

    two_hosts.py BUILD [-- COMMAND [ARGUMENT...]]

mpirun starts the ranks of the second host there, as by ssh, and all messages between the hosts go over TCP. With COMMAND it runs that with a rank on
each, and nothing else. Needs root; exits with 77 where such hosts cannot be made.
"""

import os
import pathlib
import subprocess
import sys
import tempfile

import ranks
import sharded

NETWORK = "10.77.0"
HOSTS = 2


class NoHosts(RuntimeError):
    pass


def call(*command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise NoHosts(f"{' '.join(map(str, command))}: {done.stderr.strip()}")


class Hosts:
    """Two hosts, as long as this is entered. `mpirun` is the command that starts a job with a rank on the first, then on the second."""

    def __init__(self, folder):
        self.folder = folder
        self.processes = []

    def __enter__(self):
        try:
            for host in range(HOSTS):
                self.start(host)
            call("ip", "link", "add", "rewire0", "netns", self.processes[0].pid, "type", "veth",
                 "peer", "name", "rewire0", "netns", self.processes[1].pid)
            for host in range(HOSTS):
                for command in (["addr", "add", f"{NETWORK}.{host + 1}/24", "dev", "rewire0"], ["link", "set", "rewire0", "up"],
                                ["link", "set", "lo", "up"]):
                    call(*self.enter(host), "ip", *command)
        except (NoHosts, OSError):
            self.__exit__()
            raise
        # mpirun calls it in place of ssh: AGENT ADDRESS COMMAND.
        agent = self.folder / "agent"
        agent.write_text("#!/bin/sh\nhost=$1\nshift\ncase $host in\n" + "".join(
            f"{NETWORK}.{host + 1}) exec {' '.join(self.enter(host))} sh -c \"$*\" ;;\n" for host in range(HOSTS)) + "esac\nexit 1\n")
        agent.chmod(0o755)
        self.hostfile = self.folder / "hosts"
        self.hostfile.write_text("".join(f"{NETWORK}.{host + 1} slots=1\n" for host in range(HOSTS)))
        self.mpirun = [*self.enter(0), *ranks.MPIRUN, "--hostfile", str(self.hostfile), "--map-by", "node", "--mca", "plm_rsh_agent", str(agent),
                       "--mca", "oob_tcp_if_include", f"{NETWORK}.0/24", "--mca", "btl_tcp_if_include", f"{NETWORK}.0/24"]
        return self

    def start(self, host):
        """A process that keeps the host's namespaces."""
        boot = self.folder / f"boot{host}"
        boot.write_text(f"00000000-0000-4000-8000-00000000000{host}\n")
        script = f"hostname rewire{host} && mount --bind {boot} /proc/sys/kernel/random/boot_id && echo ready && exec sleep infinity"
        process = subprocess.Popen(["unshare", "--net", "--uts", "--mount", "sh", "-c", script], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        self.processes.append(process)
        if process.stdout.readline() != "ready\n":
            raise NoHosts(process.stderr.read().strip())

    def enter(self, host):
        return ["nsenter", f"--target={self.processes[host].pid}", "--net", "--uts", "--mount"]

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()
            process.wait()
            process.stdout.close()
            process.stderr.close()


def all_calls_give_the_same_between_hosts(hosts, build):
    for count in (2, 3):
        done = subprocess.run([*hosts.mpirun, "-n", str(count), build / "tests/bin/collective_test"], capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stdout.count("All tests passed") == count, done.stdout


def a_rank_that_dies_is_named_on_the_other_host(hosts, build):
    # Ranks 1 and 2 are on the second host. Rank 1 sees the end of rank 2, and tells rank 0.
    program = str(build / "tests/bin/collective_rank")
    steps = [[ranks.REDUCE, ranks.REDUCE], [ranks.REDUCE, "receive,peer=0;tag=3,,f32[4]"], [ranks.REDUCE, ranks.NEVER_SENT]]
    job, at, pid = ranks.killed(program, ranks.RECOVERY, steps, 2, [ranks.REDUCE] * 3)
    for rank, host in ((0, "rewire0"), (1, "rewire1")):
        told, match = job.wait_for(rf"rank {rank}: failed: .*rank 2 \(process {pid} on host rewire1\) has ended")
        assert told - at < ranks.PROMISED, f"rank {rank} knew after {told - at:.2f} s"
        print(f"  rank {rank} on {host} after {told - at:.2f} s: {match[0]}", flush=True)
    end(job)


def a_host_that_is_cut_off_ends_by_the_timeout(hosts, build):
    program = str(build / "tests/bin/collective_rank")
    job = ranks.Job(program, [[ranks.REDUCE, "sleep:4", ranks.REDUCE], [ranks.REDUCE, "sleep:4", ranks.REDUCE]], ranks.RECOVERY,
                    {"REWIRE_COLLECTIVE_TIMEOUT": "1"}.items())
    for rank in (0, 1):
        job.wait_for(rf"rank {rank}: done all_reduce")
    call(*hosts.enter(1), "ip", "link", "set", "rewire0", "down")
    _, match = job.wait_for(r"rank 0: failed: .*the other ranks have not come to this call within 1\.0* s", 60)
    print(f"  {match[0]}", flush=True)
    call(*hosts.enter(1), "ip", "link", "set", "rewire0", "up")
    end(job)


def end(job):
    """mpirun 4.1.4 does not see the end of a job that has lost a rank on another host, when it is told to recover."""
    job.process.terminate()
    job.end()


def split_models_give_what_one_process_gives(hosts, build):
    sharded.MPIRUN[:] = hosts.mpirun
    sharded.main(build)


def main(build, command):
    if os.geteuid() != 0:
        print("two_hosts: SKIPPED: only root can make hosts")
        return 77
    os.environ.setdefault("REWIRE_LIBRARY_PATH", str(build / "lib/rewire"))
    with tempfile.TemporaryDirectory() as folder:
        try:
            with Hosts(pathlib.Path(folder)) as hosts:
                if command:
                    return subprocess.run([*hosts.mpirun, "-n", "2", *command], check=False).returncode
                ranks.MPIRUN[:] = hosts.mpirun
                for test in (all_calls_give_the_same_between_hosts, a_rank_that_dies_is_named_on_the_other_host,
                             a_host_that_is_cut_off_ends_by_the_timeout, split_models_give_what_one_process_gives):
                    print(test.__name__.replace("_", " "), flush=True)
                    test(hosts, build)
        except NoHosts as error:
            print(f"two_hosts: SKIPPED: no hosts can be made here: {error}")
            return 77
    return 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]).resolve(), sys.argv[3:]))
