#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that includes between the folders go one way.

usage: check_layering.py [ROOT]       check the tree (default: the one this script is in)
       check_layering.py --self-test  prove that each rule is enforced

A layer is a folder; the longest name that is a prefix of a file's path is its layer. ALLOWED names, for each
layer, the layers that it may include. HEADER_ONLY_IN_SOURCES are libraries that a public header must not bring
into an embedder's program.
"""

import pathlib
import re
import sys
import tempfile

ALLOWED = {
    "base": {"base"},
    "executable_format": {"base", "executable_format"},
    "executable_format/tensor_files": {"base", "executable_format/tensor_files"},
    "executable_format/text": {
        "base", "executable_format", "executable_format/tensor_files", "executable_format/text",
    },
    "executable_format/import": {"base", "executable_format", "executable_format/import"},
    # The readers of parameter files are part of librewire.
    "vm": {
        "base", "executable_format", "executable_format/tensor_files", "executable_format/import", "vm", "vm/kernel",
    },
    # What a kernel library sees. It stands alone: libraries are built against these headers and nothing else.
    "vm/kernel": {"vm/kernel"},
    "kernels": {"kernels", "vm/kernel"},
    "compiler": {
        "base", "executable_format", "executable_format/tensor_files", "executable_format/text", "vm", "compiler",
    },
    "tools": {
        "base", "executable_format", "executable_format/tensor_files", "executable_format/text",
        "executable_format/import", "vm", "vm/kernel", "compiler", "tools",
    },
    "examples": {"base", "executable_format", "executable_format/tensor_files", "vm", "vm/kernel", "examples"},
    "tests": {
        "base", "executable_format", "executable_format/tensor_files", "executable_format/text",
        "executable_format/import", "vm", "vm/kernel", "kernels", "compiler", "tools", "examples", "tests",
    },
}
LAYERS_OF_PUBLIC_HEADERS = {"base", "executable_format", "vm", "vm/kernel"}
NOT_IN_PUBLIC_HEADERS = {"fmt", "spdlog", "CLI", "nlohmann", "xxhash.h", "zstd.h"}

SUFFIXES = {".h", ".cc", ".c", ".cu", ".def", ".inc"}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def layer_of(path):
    """The layer of a path relative to the root, or None."""
    fitting = [layer for layer in ALLOWED if path.startswith(layer + "/")]
    return max(fitting, key=len, default=None)


def check_file(root, path):
    """The violations in one file, as 'file:line: what'."""
    layer = layer_of(path)
    lines = (root / path).read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines, start=1):
        match = INCLUDE.match(line)
        if not match:
            continue
        quote, target = match.groups()
        where = f"{path}:{number}"
        # Outside programs, and examples that are built like them, name our headers with the installed prefix.
        target = target.removeprefix("rewire/")
        target_layer = layer_of(target)
        if target_layer is not None:
            if target_layer not in ALLOWED[layer]:
                allowed = ", ".join(sorted(ALLOWED[layer]))
                yield f"{where}: {layer} must not include {target} (it may include {allowed})"
            elif not (root / target).exists():
                yield f"{where}: {target} does not exist"
        elif quote == '"':
            yield f"{where}: {target} must be named by its path from the root of the tree"
        elif (path.endswith(".h") and layer in LAYERS_OF_PUBLIC_HEADERS
              and target.split("/")[0] in NOT_IN_PUBLIC_HEADERS):
            yield f"{where}: <{target}> belongs in a .cc file, not in a header that embedders may see"


def check_tree(root):
    """All violations below root, in path order."""
    violations = []
    for layer in sorted(name for name in ALLOWED if "/" not in name):
        for file in sorted((root / layer).rglob("*")):
            if file.is_file() and file.suffix in SUFFIXES:
                violations += check_file(root, file.relative_to(root).as_posix())
    return violations


def self_test():
    """Writes small trees with one violation each and compares the exact report."""
    cases = [
        ("base/a.h", '#include "base/b.h"', None),
        ("executable_format/a.cc", '#include "base/b.h"', None),
        ("vm/a.cc", '#include "executable_format/b.h"', None),
        ("vm/a.cc", "#include <fmt/format.h>", None),
        ("vm/a.cc", '#include "executable_format/tensor_files/b.h"', None),
        ("kernels/cpu/a.cc", '#include "vm/kernel/b.h"', None),
        ("tools/a.cc", '#include "executable_format/text/b.h"', None),
        ("examples/a.cc", "#include <rewire/vm/b.h>", None),
        ("base/a.h", "#include <vector>", None),
        ("base/a.h", '#include "vm/b.h"', "base must not include vm/b.h (it may include base)"),
        ("base/a.h", "#  include <vm/b.h>", "base must not include vm/b.h (it may include base)"),
        ("executable_format/a.cc", '#include "vm/b.h"',
         "executable_format must not include vm/b.h (it may include base, executable_format)"),
        ("executable_format/a.cc", '#include "executable_format/text/b.h"',
         "executable_format must not include executable_format/text/b.h (it may include base, executable_format)"),
        ("vm/a.cc", '#include "kernels/b.h"',
         "vm must not include kernels/b.h (it may include base, executable_format, executable_format/import, "
         "executable_format/tensor_files, vm, vm/kernel)"),
        ("vm/kernel/a.h", '#include "base/b.h"', "vm/kernel must not include base/b.h (it may include vm/kernel)"),
        ("kernels/cpu/a.cc", '#include "base/b.h"',
         "kernels must not include base/b.h (it may include kernels, vm/kernel)"),
        ("kernels/cpu/a.cc", '#include "vm/b.h"',
         "kernels must not include vm/b.h (it may include kernels, vm/kernel)"),
        ("vm/a.h", "#include <fmt/format.h>",
         "<fmt/format.h> belongs in a .cc file, not in a header that embedders may see"),
        ("vm/a.cc", '#include "b.h"', "b.h must be named by its path from the root of the tree"),
        ("vm/a.cc", '#include "vm/gone.h"', "vm/gone.h does not exist"),
    ]
    failures = 0
    for path, line, message in cases:
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for layer in ALLOWED:
                (root / layer).mkdir(parents=True, exist_ok=True)
                (root / layer / "b.h").touch()
            file = root / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("// first line\n" + line + "\n", encoding="utf-8")
            expected = [] if message is None else [f"{path}:2: {message}"]
            given = check_tree(root)
            if given != expected:
                failures += 1
                print(f"self-test: {line} in {path}\n  expected {expected}\n  given    {given}", file=sys.stderr)
    print(f"check_layering self-test: {len(cases) - failures} of {len(cases)} cases right")
    return failures == 0


def main():
    if sys.argv[1:] == ["--self-test"]:
        return 0 if self_test() else 1
    default = pathlib.Path(__file__).resolve().parents[2]
    root = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else default
    violations = check_tree(root)
    for violation in violations:
        print(violation, file=sys.stderr)
    if not violations:
        print("check_layering: includes go one way")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
