#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""No script pipes into a command that may end before it has read everything.

What writes into such a pipe is killed by SIGPIPE if it is not done by then. Under `set -o pipefail` the script then fails,
on some runs only: a matter of who was faster. `sed -n 1,5p` in place of `head -5`, and grep with >/dev/null in place of -q,
read to the end.

    check_pipes.py [--self-test | TREE]
"""
import re
import subprocess

import tree_check

# A reader that ends early, as the first word behind a pipe.
EARLY = re.compile(r"(?<!\|)\|\s*(head\b|grep\s+(?:-\S+\s+)*(?:-[a-zA-Z]*[qm][a-zA-Z]*\b|--quiet|--max-count)|"
                   r"sed\s+[^|]*?[0-9$/]q\b|awk\s+[^|]*\bexit\b)")


def faults(path, text):
    """One line for each such pipe of a script that asks for pipefail."""
    if "pipefail" not in text:
        return
    joined = re.sub(r"(\|[ \t]*|\\)\n", lambda match: match[0].rstrip("\n") + "\0", text)  # a pipeline is one line
    number = 1
    for line in joined.split("\n"):
        code = line.replace("\\\0", " ").replace("\0", " ")
        if not code.lstrip().startswith("#"):
            for match in EARLY.finditer(code):
                yield (f"{path}:{number}: '{match[1]}' may end before it has read everything, and pipefail makes that a "
                       "failure of the script: read to the end, as 'sed -n 1,5p' does")
        number += 1 + line.count("\0")


def check(root):
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, text=True, check=True).stdout
    scripts = [name for name in listed.split("\0") if name.endswith(".sh") or name in (".ci/run", "Makefile")]
    if len(scripts) < 10:  # the tree is not laid out as this check reads it
        yield f"only {len(scripts)} scripts are found, at least 10 expected"
    for name in scripts:
        yield from faults(name, (root / name).read_text())
    print(f"check_pipes: {len(scripts)} scripts, no pipe's reader ends early")


def self_test():
    head = "set -euo pipefail\n"
    cases = [
        ("sort file | head -5\n", 1), ("sort file |\n  head -5\n", 1), ("sort file | sort \\\n  | head -1\n", 1),
        ("if ls | grep -q x; then\n", 1), ("ls | grep -i --quiet x\n", 1), ("ls | grep -E -m 1 x\n", 1),
        ("ls | sed 1q\n", 1), ("ls | awk '{print; exit}'\n", 1), ("a | head -1 && b | head -1\n", 2),
        ("head -5 file\n", 0), ("ls | sed -n 1,5p\n", 0), ("grep -q x file || head -1 file\n", 0), ("# ls | head\n", 0),
        ("ls | grep -E 'quick'\n", 0), ("ls | awk '{print}'\n", 0),
    ]
    failed = 0
    for text, expected in cases:
        found = list(faults("script.sh", head + text))
        if len(found) != expected:
            failed += 1
            print(f"expected {expected} faults, found {found} in: {text}")
    if list(faults("script.sh", "ls | head\n")):
        failed += 1
        print("a script without pipefail has no such fault")
    print(f"check_pipes self-test: {len(cases) + 1 - failed} of {len(cases) + 1} cases right")
    return failed


if __name__ == "__main__":
    tree_check.run(check, self_test)
