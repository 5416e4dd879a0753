# SPDX-License-Identifier: Apache-2.0
"""The command line that checks of the whole tree share."""

import pathlib
import sys


def run(check, self_test):
    """With --self-test runs self_test(), which returns how many cases fail. Else prints the faults of check(root) in the tree
    that the command line names, or in the one that this file is in. Exits with 1 if there are any."""
    if sys.argv[1:] == ["--self-test"]:
        sys.exit(1 if self_test() else 0)
    root = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parents[2]
    faults = list(check(root))
    for fault in faults:
        print(fault)
    sys.exit(1 if faults else 0)
