#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the reference of Rewire's interfaces in C++, C and Python, by Doxygen. `make docs` runs it.

    build.py [FOLDER]    the pages are FOLDER/html/index.html; FOLDER is build/reference unless it is given

It fails if Doxygen warns. The public headers are those whose second line says so; a page lists them all.
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PUBLIC = re.compile(r"^(?://|/\*) Public header: <rewire/([^>]+)>", re.M)
# In the order of use; the rest of a folder's headers is under its longest name here.
FOLDERS = {
    "vm": "Running programs, in C++",
    "vm/c_api": "Running programs, in C",
    "vm/kernel": "Writing kernels and devices",
    "executable_format": "Reading and writing executables",
    "compiler": "Compiling models",
    "base": "What all of them share",
}


def public_headers():
    for top in sorted({name.split("/")[0] for name in FOLDERS}):
        for path in sorted((ROOT / top).rglob("*.h")):
            text = path.read_text(encoding="utf-8")
            named = PUBLIC.search(text[:300])
            if named:
                if named[1] != path.relative_to(ROOT).as_posix():
                    sys.exit(f"{path.relative_to(ROOT)}: says that it is <rewire/{named[1]}>")
                yield path, text


def summary_of(text):
    """The first sentence of the comment at the top."""
    lines = []
    for line in text.splitlines():
        if not re.match(r"//|/\*| \*", line):
            break
        if "SPDX-License" not in line and "Public header:" not in line:
            lines.append(re.sub(r"^(//|/\*| \*)\s?|\s*\*/$", "", line))
    paragraph = " ".join(lines).strip()
    sentence = re.match(r"(.*?\.)(\s|$)", paragraph)
    return (sentence[1] if sentence else paragraph).replace("|", "&#124;").replace("<", "&lt;").replace("@", "\\@")


def folder_of(name):
    return max((folder for folder in FOLDERS if name.startswith(folder + "/")), key=len)


def index_of(headers):
    parts = ["# Public headers {#headers}\n\nEach of them is included as `rewire/` and its path, from the source tree and where Rewire is installed. "
             "All others are Rewire's own, and change without notice.\n"]
    for folder, title in FOLDERS.items():
        rows = [(path, text) for path, text in headers if folder_of(path.relative_to(ROOT).as_posix()) == folder]
        parts.append(f"\n## {title}\n\n| header | what it has |\n|---|---|\n")
        for path, text in rows:
            name = path.relative_to(ROOT).as_posix()
            parts.append(f"| @ref rewire/{name} | {summary_of(text)} |\n")
    return "".join(parts)


def main():
    out = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build" / "reference").resolve()
    out.mkdir(parents=True, exist_ok=True)
    headers = list(public_headers())
    index = out / "headers.md"
    index.write_text(index_of(headers), encoding="utf-8")
    python = [path for pattern in ("*.py", "_native/*.pyi") for path in sorted((ROOT / "python/rewire").glob(pattern))]
    # By the names that programs include.
    includes = ROOT / "include"
    inputs = [ROOT / "README.md", index, *(includes / "rewire" / path.relative_to(ROOT) for path, _ in headers), *python]
    settings = (ROOT / "docs/reference/Doxyfile").read_text(encoding="utf-8")
    settings += "INPUT = " + " \\\n  ".join(f'"{path}"' for path in inputs) + "\n"
    settings += f'OUTPUT_DIRECTORY = "{out}"\nSTRIP_FROM_PATH = "{includes}" "{ROOT}" "{out}"\nSTRIP_FROM_INC_PATH = "{includes}"\n'
    made = subprocess.run(["doxygen", "-"], cwd=ROOT, input=settings, text=True, stderr=subprocess.PIPE)
    sys.stderr.write(made.stderr)
    if made.returncode or made.stderr:
        print("the reference has warnings, see above: mend the comment that each of them names", file=sys.stderr)
        return 1
    print(f"{len(headers)} public headers and {len(python)} files of Python: {out / 'html' / 'index.html'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
