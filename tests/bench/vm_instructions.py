#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts the instructions of every case of bench-vm with callgrind: figures that repeat, whatever the machine does.

usage: vm_instructions.py BENCH_VM
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile

DIRECT_CALL = "direct call, "


def read_dump(path):
    """(case, instructions) of one of callgrind's dumps, or None for the one at the end, which no case asked for."""
    case = None
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        if line.startswith("desc: Trigger: Client Request: "):
            case = line.split(": ", 3)[3]
        elif line.startswith("totals: ") and case is not None:
            return case, int(line.split()[1])
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bench", help="the program bench-vm")
    bench = parser.parse_args().bench
    with tempfile.TemporaryDirectory() as folder:
        run = subprocess.run(
            ["valgrind", "--tool=callgrind", "-q", f"--callgrind-out-file={folder}/dump", bench,
             "--instructions"],
            stdout=subprocess.PIPE, text=True, check=False)
        if run.returncode != 0:
            sys.exit(f"vm_instructions.py: bench-vm under callgrind ended with {run.returncode}")
        dumps = dict(filter(None, map(read_dump, pathlib.Path(folder).iterdir())))
    operations = dict(line.rsplit("\t", 1) for line in run.stdout.splitlines())
    missing = sorted(set(operations) - set(dumps))
    if missing:
        sys.exit("vm_instructions.py: callgrind gave no dump for " + ", ".join(missing))
    counts = {case: dumps[case] / float(number) for case, number in operations.items()}
    direct = min(count for case, count in counts.items() if case.startswith(DIRECT_CALL))
    print(f"{'':<50}{'instructions':>14}{'x':>10}")
    for case, count in counts.items():
        print(f"{case:<50}{count:>14.1f}{count / direct:>10.2f}")


if __name__ == "__main__":
    main()
