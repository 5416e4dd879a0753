#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that each kernel of devices takes the tensors of the CPU's kernel of its name, in order: the compiler puts the
one in place of the other. Tensors that the CPU's kernel need not be given may be missing.

usage: device_names.py DOCS   the folder of kernels.md and kernels-device.md
"""
import argparse
import pathlib
import re
import sys

ROW = re.compile(r"\| `rewire\.(?:device\.)?([\w.]+)` \| ([^|]*)\|")
OPTIONAL_ON_THE_CPU = "?"
# Given as an attribute where it is constant, which the kernels of devices ask for.
ATTRIBUTES = {"axes"}


def rows(path):
    """{name: tensors, such as "scale" or "out_mean?"}"""
    found = {}
    for line in path.read_text().splitlines():
        if match := ROW.match(line):
            found[match[1]] = [part.split(" ")[0].replace("*", "") for part in match[2].strip().split(", ")]
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("docs", type=pathlib.Path, help="the folder of kernels.md and kernels-device.md")
    docs = parser.parse_args().docs
    cpu, device = rows(docs / "kernels.md"), rows(docs / "kernels-device.md")
    failed = []
    for name, tensors in device.items():
        theirs = [each for each in cpu.get(name, []) if each in tensors or not each.endswith(OPTIONAL_ON_THE_CPU)]
        theirs = [each for each in theirs if each in tensors or each not in ATTRIBUTES]
        if theirs != tensors:
            failed.append(f"rewire.device.{name} takes {', '.join(tensors)}; rewire.{name} takes {', '.join(cpu.get(name, ['nothing: there is none']))}")
    print("\n".join(failed))
    print(f"{len(device)} kernels of devices, {len(failed)} unlike the CPU's")
    return 1 if failed or not device else 0


if __name__ == "__main__":
    sys.exit(main())
