#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""page.py ROOT ARCHIVE: the headers of kernels/embedded, docs/kernels-embedded.md and the archive have the same functions.

Rows of floats are named on the page by a pattern, as their header lists them.
"""
import pathlib
import re
import subprocess
import sys

root, archive = pathlib.Path(sys.argv[1]), sys.argv[2]
folder = root / "kernels/embedded"
texts = subprocess.run(["cc", "-E", "-P", f"-I{root}/include", folder / "rewire_embedded_rows.h"], capture_output=True, text=True,
                       check=True).stdout
declared = set(re.findall(r"^(?:void|int32_t) (rewire_embedded_\w+)\(", texts.replace(";", ";\n").replace("\n ", "\n"), re.M))
declared -= {name for path in [folder / "internal.h"] for name in re.findall(r"(rewire_embedded_\w+)\(", path.read_text())}
defined = set(re.findall(r" T (rewire_embedded_\w+)", subprocess.run(["nm", archive], capture_output=True, text=True,
                                                                      check=True).stdout))
page = (root / "docs/kernels-embedded.md").read_text()
named = set(re.findall(r"`(rewire_embedded_[a-z0-9_]+)`", page))
named -= {"rewire_embedded_row"}
rows = {f"rewire_embedded_{kernel}_f32" for kernel in
        re.findall(r"ROW\((\w+), ", (folder / "rewire_embedded_rows.h").read_text())}
faults = [f"{name} is declared, and the archive does not have it" for name in sorted(declared - defined)]
faults += [f"{name} is declared, and docs/kernels-embedded.md does not name it" for name in sorted(declared - named - rows)]
faults += [f"{name} is named by docs/kernels-embedded.md, and no header declares it" for name in sorted(named - declared)]
if len(declared) < 60:
    faults.append(f"only {len(declared)} functions are declared")
print("\n".join(faults) or f"{len(declared)} functions, all on the page and in the archive")
sys.exit(bool(faults))
