#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that includes between the folders go one way, that types of devices are read in one place, that no header includes itself by way of others, and that each
folder has a line in docs/architecture.md and at most 40 source files.

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
    "base": {"base", "base/standalone"},
    # What libraries that stand alone share with the rest.
    "base/standalone": {"base/standalone"},
    "executable_format": {"base", "executable_format"},
    "executable_format/tensor_files": {"base", "executable_format/tensor_files"},
    "executable_format/text": {
        "base", "executable_format", "executable_format/tensor_files", "executable_format/text",
    },
    "executable_format/import": {"base", "executable_format", "executable_format/import"},
    # The readers of parameter files are part of librewire.
    "vm": {
        "base", "base/standalone", "executable_format", "executable_format/tensor_files", "executable_format/import", "vm", "vm/kernel",
        "kernels/contract",
    },
    # What a kernel library sees. It stands alone: libraries are built against these headers and nothing else.
    "vm/kernel": {"vm/kernel"},
    "kernels": {"kernels", "kernels/contract", "vm/kernel"},
    # What a kernel is and computes, said once: headers alone, which every other floor may include.
    "kernels/contract": {"kernels/contract", "vm/kernel"},
    # Libraries that make something a device.
    "devices": {"devices", "vm/kernel", "base/standalone"},
    "compiler": {
        "base", "base/standalone", "executable_format", "executable_format/tensor_files", "executable_format/text", "vm", "vm/kernel", "compiler",
        "kernels/contract",
    },
    # A host like any other: it uses the public interfaces.
    "serve": {"base", "base/standalone", "executable_format", "vm", "vm/kernel", "compiler", "serve"},
    "onnxruntime_api": {"base", "executable_format", "vm", "vm/kernel", "compiler", "onnxruntime_api"},
    # A library of kernels, like those in kernels.
    "integrations/collective": {"kernels", "kernels/contract", "vm/kernel", "integrations/collective"},
    "integrations": {"base", "executable_format", "vm", "vm/kernel", "serve", "integrations"},
    "tools": {
        "base", "executable_format", "executable_format/tensor_files", "executable_format/text",
        "executable_format/import", "vm", "vm/kernel", "kernels/contract", "compiler", "serve", "tools", "tools/io",
    },
    # The bindings of the Python package. Opening a file is what the tools do, and it has them as commands.
    "python": {
        "base", "executable_format", "executable_format/text", "vm", "vm/kernel", "compiler", "tools", "tools/io", "python",
    },
    "tools/io": {
        "base", "executable_format", "executable_format/tensor_files", "executable_format/text",
        "executable_format/import", "vm", "vm/kernel", "compiler", "tools/io",
    },
    "examples": {"base", "executable_format", "executable_format/tensor_files", "vm", "vm/kernel", "kernels", "examples"},
    "tests": {
        "base", "base/standalone", "executable_format", "executable_format/tensor_files", "executable_format/text",
        "executable_format/import", "vm", "vm/kernel", "kernels", "kernels/contract", "devices", "compiler", "serve", "onnxruntime_api", "tools", "tools/io", "examples",
        "integrations", "integrations/collective", "tests",
    },
}
LAYERS_OF_PUBLIC_HEADERS = {"base", "executable_format", "vm", "vm/kernel"}
NOT_IN_PUBLIC_HEADERS = {"fmt", "CLI", "nlohmann", "xxhash.h", "zstd.h"}

MOST_FILES = 40
# The type of a DLDevice may be none of its enumeration's, so one header reads it (and says why). `api.device_type` is
# a number.
DEVICE_TYPE = re.compile(r"(?<!api)(?:\.|->)device_type\b")
READS_DEVICE_TYPES = "vm/kernel/device_type.h"
SUFFIXES = {".h", ".cc", ".c", ".cu", ".def", ".inc"}
# Programs that have headers of their own, some of them called as ours are.
OUTSIDE = "tests/embedded_sources/"
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
        if layer.split("/")[0] not in ("tests", "examples") and path != READS_DEVICE_TYPES and DEVICE_TYPE.search(line):
            yield f"{path}:{number}: {READS_DEVICE_TYPES} has functions for the type of a device; it may be out of range"
        match = INCLUDE.match(line)
        if not match:
            continue
        quote, target = match.groups()
        where = f"{path}:{number}"
        # Every header has one name, in the tree and where it is installed.
        is_ours = target.startswith("rewire/")
        target = target.removeprefix("rewire/")
        target_layer = layer_of(target)
        if not is_ours and str(path).startswith(OUTSIDE):
            continue
        if target_layer is not None:
            if not is_ours:
                yield f"{where}: {target} must be named rewire/{target}"
                continue
            if target_layer not in ALLOWED[layer]:
                allowed = ", ".join(sorted(ALLOWED[layer]))
                yield f"{where}: {layer} must not include {target} (it may include {allowed})"
            elif not (root / target).exists():
                yield f"{where}: {target} does not exist"
        elif quote == '"':
            yield f"{where}: {target} must be named by rewire/ and its path from the root of the tree"
        elif (path.endswith(".h") and layer in LAYERS_OF_PUBLIC_HEADERS
              and target.split("/")[0] in NOT_IN_PUBLIC_HEADERS):
            yield f"{where}: <{target}> belongs in a .cc file, not in a header that embedders may see"


def includes_of(root, path):
    """The files of the tree that a file includes, by their paths."""
    for line in (root / path).read_text(encoding="utf-8").splitlines():
        match = INCLUDE.match(line)
        if match and match.group(2).startswith("rewire/"):
            target = match.group(2).removeprefix("rewire/")
            # A file of vectors is compiled once for each kind of CPU by including itself (Highway).
            if target != path and (root / target).is_file():
                yield target


def check_circles(root):
    """Circles of includes, each once, as 'a -> b -> a'."""
    done, circles = set(), []

    def visit(path, way):
        if path in way:
            circles.append(" -> ".join(way[way.index(path):] + [path]))
        elif path not in done:
            for target in includes_of(root, path):
                visit(target, way + [path])
            done.add(path)

    for layer in sorted(name for name in ALLOWED if "/" not in name):
        for file in sorted((root / layer).rglob("*.h")):
            visit(file.relative_to(root).as_posix(), [])
    return [f"{circle}: headers include each other" for circle in circles]


def check_folders(root):
    """Folders that are too full, or that docs/architecture.md does not explain."""
    page = (root / "docs/architecture.md").read_text(encoding="utf-8")
    for layer in sorted(name for name in ALLOWED if "/" not in name and name != "examples" and (root / name).is_dir()):
        for folder in [root / layer, *sorted(path for path in (root / layer).rglob("*") if path.is_dir())]:
            name = folder.relative_to(root).as_posix()
            count = sum(file.suffix in SUFFIXES for file in folder.iterdir() if file.is_file())
            if count > MOST_FILES:
                yield f"{name}: {count} source files, at most {MOST_FILES}: make folders by what belongs together"
            if count and layer != "tests" and f"| `{name}` |" not in page:
                yield f"{name}: docs/architecture.md has no line that says what belongs there"


def check_tree(root):
    """All violations of includes below root, in path order."""
    violations = check_circles(root)
    for layer in sorted(name for name in ALLOWED if "/" not in name):
        for file in sorted((root / layer).rglob("*")):
            if file.is_file() and file.suffix in SUFFIXES:
                violations += check_file(root, file.relative_to(root).as_posix())
    return violations


def self_test():
    """Writes small trees with one violation each and compares the exact report."""
    cases = [
        ("base/a.h", '#include "rewire/base/b.h"', None),
        ("executable_format/a.cc", '#include "rewire/base/b.h"', None),
        ("vm/a.cc", '#include "rewire/executable_format/b.h"', None),
        ("vm/a.cc", "#include <fmt/format.h>", None),
        ("vm/a.cc", '#include "rewire/executable_format/tensor_files/b.h"', None),
        ("kernels/cpu/a.cc", '#include "rewire/vm/kernel/b.h"', None),
        ("tools/a.cc", '#include "rewire/executable_format/text/b.h"', None),
        ("examples/a.cc", "#include <rewire/vm/b.h>", None),
        ("python/bindings/a.cc", '#include "rewire/tools/io/b.h"', None),
        ("python/bindings/a.cc", '#include "rewire/tools/b.h"', None),
        ("python/bindings/a.cc", '#include "rewire/devices/b.h"',
         "python must not include devices/b.h (it may include base, compiler, executable_format, executable_format/text, "
         "python, tools, tools/io, vm, vm/kernel)"),
        ("base/a.h", "#include <vector>", None),
        ("vm/a.cc", "if (api.device_type == kDLCUDA) return;", None),
        ("vm/a.cc", "if (device.device_type == kDLCPU) return;",
         "vm/kernel/device_type.h has functions for the type of a device; it may be out of range"),
        ("base/a.h", '#include "rewire/vm/b.h"', "base must not include vm/b.h (it may include base, base/standalone)"),
        ("base/a.h", "#  include <rewire/vm/b.h>", "base must not include vm/b.h (it may include base, base/standalone)"),
        ("executable_format/a.cc", '#include "rewire/vm/b.h"',
         "executable_format must not include vm/b.h (it may include base, executable_format)"),
        ("executable_format/a.cc", '#include "rewire/executable_format/text/b.h"',
         "executable_format must not include executable_format/text/b.h (it may include base, executable_format)"),
        ("vm/a.cc", '#include "rewire/kernels/b.h"',
         "vm must not include kernels/b.h (it may include base, base/standalone, executable_format, executable_format/import, "
         "executable_format/tensor_files, kernels/contract, vm, vm/kernel)"),
        ("vm/kernel/a.h", '#include "rewire/base/b.h"', "vm/kernel must not include base/b.h (it may include vm/kernel)"),
        ("kernels/cpu/a.cc", '#include "rewire/base/b.h"',
         "kernels must not include base/b.h (it may include kernels, kernels/contract, vm/kernel)"),
        ("kernels/cpu/a.cc", '#include "rewire/vm/b.h"',
         "kernels must not include vm/b.h (it may include kernels, kernels/contract, vm/kernel)"),
        ("vm/a.h", "#include <fmt/format.h>",
         "<fmt/format.h> belongs in a .cc file, not in a header that embedders may see"),
        ("vm/a.cc", '#include "b.h"', "b.h must be named by rewire/ and its path from the root of the tree"),
        ("vm/a.h", '#include "rewire/vm/a.h"', None),
        ("vm/a.cc", '#include "rewire/vm/gone.h"', "vm/gone.h does not exist"),
        ("vm/a.cc", '#include "base/b.h"', "base/b.h must be named rewire/base/b.h"),
        (OUTSIDE + "a.cc", '#include "base/b.h"', None),
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
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / "base").mkdir()
        (root / "docs").mkdir()
        (root / "docs/architecture.md").write_text("| `tools` | x | y |\n", encoding="utf-8")
        for number in range(MOST_FILES + 1):
            (root / f"base/h{number}.h").write_text(f'#include "rewire/base/h{(number + 1) % 3}.h"\n', encoding="utf-8")
        given = [*check_circles(root), *check_folders(root)]
        expected = [
            "base/h0.h -> base/h1.h -> base/h2.h -> base/h0.h: headers include each other",
            f"base: {MOST_FILES + 1} source files, at most {MOST_FILES}: make folders by what belongs together",
            "base: docs/architecture.md has no line that says what belongs there",
        ]
        if given != expected:
            failures += 1
            print(f"self-test: circles and folders\n  expected {expected}\n  given    {given}", file=sys.stderr)
    print(f"check_layering self-test: {len(cases) + 1 - failures} of {len(cases) + 1} cases right")
    return failures == 0


def main():
    if sys.argv[1:] == ["--self-test"]:
        return 0 if self_test() else 1
    default = pathlib.Path(__file__).resolve().parents[2]
    root = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else default
    violations = [*check_tree(root), *check_folders(root)]
    for violation in violations:
        print(violation, file=sys.stderr)
    if not violations:
        print("check_layering: includes go one way, folders are small and explained")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
