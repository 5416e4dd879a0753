#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every throwing function of the C++ interface has a counterpart that returns a Status or a Result.

Throwing functions stand between "#if defined(__cpp_exceptions)" and "#endif" in the public headers. For each name X there,
the same class must declare TryX outside of such blocks: data and TryData, Open and TryOpen.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"#if defined\(__cpp_exceptions\)\n(.*?)#endif", re.S)
# A member function that is defined in place: "name(...) ... {" at two spaces.
FUNCTION = re.compile(r"^  (?:static )?[\w:<>,&* ]+?[&* ](\w+)\(", re.M)
# How the throwing forms are made, and Result's own value().
HELPERS = {"ThrowIf", "Take", "value"}


def main():
    missing, found = [], 0
    for header in sorted((ROOT / "vm").glob("**/*.h")) + sorted((ROOT / "base").glob("*.h")):
        text = header.read_text()
        plain = BLOCK.sub("", text)
        for block in BLOCK.findall(text):
            if "catch (" in block:  # the library's own: it takes exceptions, and throws none
                continue
            for name in FUNCTION.findall(block):
                if name in HELPERS or name in ("return", "if", "throw"):
                    continue
                found += 1
                twin = "Try" + name[0].upper() + name[1:]
                if not re.search(rf"\b{twin}\(", plain):
                    missing.append(f"{header.relative_to(ROOT)}: {name} throws, and there is no {twin}")
    print("\n".join(missing) or f"check_twins: {found} throwing functions, each with a Try form")
    # Too few: the headers are not written as this script reads them.
    return 1 if missing or found < 20 else 0


if __name__ == "__main__":
    sys.exit(main())
