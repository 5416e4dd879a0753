#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Includes between folders are known, and folders that include each other only get fewer.

    check_arrows.py              compare the tree with tests/ci/arrows.txt
    check_arrows.py --write      write that file again: an arrow "a -> b" a line where a file of folder a includes one of b
    check_arrows.py --self-test

check_layering.py says which layers may include which. This check sees every folder. Two folders that include each other are a
pair. Folders that all reach each other are a knot. MOST_PAIRS, MOST_KNOTTED and LARGEST_KNOT may only be lowered.
"""
import argparse
import collections
import pathlib
import re
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
ARROWS = pathlib.Path("tests/ci/arrows.txt")
TOPS = ["base", "executable_format", "vm", "kernels", "devices", "compiler", "python", "serve", "onnxruntime_api", "tools"]
SUFFIXES = {".h", ".cc", ".c", ".cu", ".def", ".inc"}
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]rewire/([^>"]+)[>"]', re.M)

MOST_PAIRS = 0  # pairs of folders that include each other
MOST_KNOTTED = 0  # folders that are in some knot
LARGEST_KNOT = 0


def arrows_of(root):
    """{(folder, folder): "file includes file"} with the first such file of each."""
    arrows = {}
    for top in TOPS:
        for file in sorted((root / top).rglob("*")):
            if file.suffix not in SUFFIXES or not file.is_file():
                continue
            folder = file.parent.relative_to(root).as_posix()
            for target in INCLUDE.findall(file.read_text(encoding="utf-8")):
                other = pathlib.PurePosixPath(target).parent.as_posix()
                if other != folder and (root / target).is_file():
                    arrows.setdefault((folder, other), f"{file.relative_to(root).as_posix()} includes {target}")
    return arrows


def knots_of(arrows):
    """Sets of more than one folder that all reach each other (Tarjan's strongly connected components)."""
    follows = collections.defaultdict(set)
    for folder, other in arrows:
        follows[folder].add(other)
    number, low, stack, knots = {}, {}, [], []

    def visit(folder):
        number[folder] = low[folder] = len(number)
        stack.append(folder)
        for other in sorted(follows[folder]):
            if other not in number:
                visit(other)
                low[folder] = min(low[folder], low[other])
            elif other in stack:
                low[folder] = min(low[folder], number[other])
        if low[folder] == number[folder]:
            knot = set()
            while folder not in knot:
                knot.add(stack.pop())
            if len(knot) > 1:
                knots.append(sorted(knot))

    for folder in sorted(follows):
        if folder not in number:
            visit(folder)
    return sorted(knots)


def faults(arrows, listed, most_pairs=MOST_PAIRS, most_knotted=MOST_KNOTTED, largest_knot=LARGEST_KNOT):
    """What is wrong, in words."""
    for arrow in sorted(set(arrows) - listed):
        yield f"{arrow[0]} -> {arrow[1]} is new ({arrows[arrow]}); if it is wanted, run check_arrows.py --write"
    for folder, other in sorted(listed - set(arrows)):
        yield f"{folder} -> {other} is gone; run check_arrows.py --write"
    pairs = sorted(pair for pair in arrows if pair[0] < pair[1] and pair[::-1] in arrows)
    if len(pairs) != most_pairs:
        yield f"{len(pairs)} pairs of folders include each other, {most_pairs} expected: " + "; ".join(
            f"{arrows[pair]}, {arrows[pair[::-1]]}" for pair in pairs)
    knots = knots_of(arrows)
    knotted, largest = sum(map(len, knots)), max(map(len, knots), default=0)
    if (knotted, largest) != (most_knotted, largest_knot):
        yield (f"{knotted} folders are in knots, the largest has {largest}; {most_knotted} and {largest_knot} expected: "
               + "; ".join(" ".join(knot) for knot in knots))


def listed_in(root):
    lines = (root / ARROWS).read_text(encoding="utf-8").splitlines()
    return {tuple(line.split(" -> ")) for line in lines if line and not line.startswith("#")}


def self_test():
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for path, target in [("vm/run/a.cc", "vm/link/b.h"), ("vm/link/b.h", "vm/run/a.h"), ("vm/run/a.h", "base/c.h"),
                             ("base/c.h", "base/d.h"), ("base/d.h", "gone.h")]:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(f'#include "rewire/{target}"\n', encoding="utf-8")
        arrows = arrows_of(root)
        assert sorted(arrows) == [("vm/link", "vm/run"), ("vm/run", "base"), ("vm/run", "vm/link")], arrows
        assert knots_of(arrows) == [["vm/link", "vm/run"]]
        assert list(faults(arrows, set(arrows), 1, 2, 2)) == []
        new = list(faults(arrows, set(arrows) - {("vm/run", "base")}, 1, 2, 2))
        assert new == ["vm/run -> base is new (vm/run/a.h includes base/c.h); if it is wanted, run check_arrows.py --write"]
        assert len(list(faults(arrows, {*arrows, ("base", "vm")}, 1, 2, 2))) == 1
        assert len(list(faults(arrows, set(arrows), 0, 2, 2))) == 1
        assert len(list(faults(arrows, set(arrows), 1, 2, 1))) == 1
    print("check_arrows: self-test passed")
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--self-test", action="store_true")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    if options.self_test:
        return self_test()
    arrows = arrows_of(ROOT)
    if options.write:
        text = "".join(f"{folder} -> {other}\n" for folder, other in sorted(arrows))
        (ROOT / ARROWS).write_text("# Which folder includes which; written by tests/ci/check_arrows.py --write.\n" + text)
    wrong = list(faults(arrows, listed_in(ROOT)))
    for fault in wrong:
        print(fault, file=sys.stderr)
    if not wrong:
        print(f"check_arrows: {len(arrows)} arrows between folders, {MOST_PAIRS} pairs that include each other")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
