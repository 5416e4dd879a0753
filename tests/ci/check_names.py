#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that what documents and comments refer to exists.

usage: check_names.py              check the tree that this script is in
       check_names.py --self-test  prove that each rule is enforced

Four rules:
  paths    a path that begins with a folder of the tree (`vm/run/machine.h`) names a file or folder, from the root or from
           where it is written. A path may leave out .h or .cc, or have a part in < > or a *; NAME stands for any.
  sources  a path to a source that begins further down (`run/machine.h`) is the end of a file's path.
  links    a relative link of a document leads to a file.
  options  every REWIRE_* option of CMake has a row in CONTRIBUTING.md.
"""
import pathlib
import re
import subprocess
import sys
import tempfile

FOLDERS = ("base", "cmake", "compiler", "docs", "examples", "executable_format", "integrations", "kernels", "onnxruntime_api", "python", "serve", "tests", "third_party", "tools", "vm")
PATH = re.compile(r"(?<![\w./<>$}*-])((?:" + "|".join(FOLDERS) + r")/[\w./*-]*\w)(?![\w<{(*$])")
SOURCE = re.compile(r"(?<![\w./<>$}\"*-])(?:rewire/)?((?:[\w-]+/)+[\w-]+\.(?:h|cc|c|py|sh|md|asm|def|cmake))\b(?!\.)")
OTHERS = {"dlpack/dlpack.h", "extra/c_env_api.h"}  # sources of other projects
LINK = re.compile(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)")
COMMENT = {".h": r"//[^\n]*|/\*.*?\*/", ".cc": r"//[^\n]*|/\*.*?\*/", ".c": r"//[^\n]*|/\*.*?\*/", ".def": r"//[^\n]*",
           ".py": r"#[^\n]*|\"\"\".*?\"\"\"", ".sh": r"#[^\n]*", ".cmake": r"#[^\n]*", ".txt": r"#[^\n]*"}
OPTION = re.compile(r"^(?:option\((?=REWIRE_)|set\((?=REWIRE_\w+ [^\n]*CACHE ))(\w+)", re.M)


def exists(root, here, name):
    name = name.replace("NAME", "*")
    for base in (root, here):
        if any(base.glob(name)) or any(base.glob(name + ".*")):
            return True
    return False


def blank(found):
    return re.sub(r"[^\n]", " ", found.group())


def comments_of(text, pattern):
    """The text with everything but its comments blank, so that lines keep their numbers."""
    said, at = "", 0
    for match in re.finditer(pattern, text, re.S):
        said += re.sub(r"[^\n]", " ", text[at : match.start()]) + match.group()
        at = match.end()
    return said


def faults_of(root, file, files):
    path = root / file
    if path.suffix != ".md" and path.suffix not in COMMENT:
        return
    text = path.read_text()
    if path.suffix == ".md":
        for match in LINK.finditer(text):
            if not (path.parent / match.group(1)).exists():
                yield text.count("\n", 0, match.start()) + 1, f"the link to '{match.group(1)}' leads nowhere"
        said = LINK.sub(blank, text)
    else:
        said = comments_of(text, COMMENT[path.suffix])
    for match in PATH.finditer(said):
        if not exists(root, path.parent, match.group(1)):
            yield said.count("\n", 0, match.start()) + 1, f"there is no '{match.group(1)}'"
    for match in SOURCE.finditer(said):
        name = match.group(1)
        if name.split("/")[0] not in FOLDERS and name not in OTHERS and not any(f"/{other}".endswith(f"/{name}") for other in files):
            yield said.count("\n", 0, match.start()) + 1, f"no source's path ends with '{name}'"


def check(root, files):
    faults = []
    for file in files:
        faults += [f"{file}:{line}: {what}" for line, what in faults_of(root, file, files)]
    rows = (root / "CONTRIBUTING.md").read_text()
    for file in files:
        if file.endswith("CMakeLists.txt"):
            for option in OPTION.findall((root / file).read_text()):
                if f"| `{option}` |" not in rows:
                    faults.append(f"{file}: {option} has no row in CONTRIBUTING.md")
    return faults


def self_test():
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / "vm").mkdir()
        (root / "vm/here.h").write_text("// See vm/here.h, vm/here, vm/h*.h and vm/gone.h.\nint x;  // docs/lost.md, run/far.h\n")
        (root / "CMakeLists.txt").write_text('option(REWIRE_ONE "One" ON)\nset(REWIRE_TWO "" CACHE STRING "Two")\n')
        (root / "CONTRIBUTING.md").write_text("[good](vm/here.h) [bad](vm/here.cc)\n| `REWIRE_ONE` |\n")
        found = check(root, ["vm/here.h", "CONTRIBUTING.md", "CMakeLists.txt"])
    expected = ["vm/here.h:1: there is no 'vm/gone.h'", "vm/here.h:2: there is no 'docs/lost.md'",
                "vm/here.h:2: no source's path ends with 'run/far.h'",
                "CONTRIBUTING.md:1: the link to 'vm/here.cc' leads nowhere", "CMakeLists.txt: REWIRE_TWO has no row in CONTRIBUTING.md"]
    print("\n".join(found))
    return 0 if found == expected else 1


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    root = pathlib.Path(__file__).resolve().parents[2]
    listed = subprocess.run(["git", "ls-files"], cwd=root, capture_output=True, text=True, check=True).stdout.split("\n")
    # The changelog names what was; the checks beside this one have examples of faults.
    files = [file for file in listed if (root / file).is_file() and file != "CHANGELOG.md" and not file.startswith("tests/ci/check_")]
    faults = check(root, files)
    print("\n".join(faults) or "check_names: every path, link and option that is written down exists")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
