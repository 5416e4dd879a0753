#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each source of the product and each public header has a test that holds it: by its own name, or in tests/ci/tests_map.txt.

    check_tests_map.py              compare the map with the tree
    check_tests_map.py --list       print the files that no test is known to hold
    check_tests_map.py --of FILE    print the tests of one file
    check_tests_map.py --linked BUILD   also see that the program of each row's test is built from the source, or starts or
                                    loads what is, by what Ninja knows in that build tree
    check_tests_map.py --self-test

A file a/b.cc is mirrored by tests/a/b_test.cc; kernels/cpu/a/b.cc by tests/kernels/a/b_test.cc, because most kernels are the
CPU's. All other files have a row "file | test file | case" in the map: the case that fails first when the file is wrong.
A public header is also held by its source of the same name, and by its rows in docs/promises.md. Files without any of these
are counted. MOST_OPEN only ever goes down. A test file that no list of CMake names would never run, so it is an error, too.
"""

import argparse
import pathlib
import posixpath
import re
import subprocess
import sys
import tempfile

import check_promises

ROOT = pathlib.Path(__file__).resolve().parents[2]
MAP = "tests/ci/tests_map.txt"
TOPS = ("base", "executable_format", "vm", "kernels", "devices", "compiler", "serve", "onnxruntime_api", "tools", "python")
MOST_OPEN = 0
FEWEST_ROWS = 400
ENTRY = re.compile(r"add_test\(NAME (\w+)")


def tracked(root):
    listed = subprocess.check_output(["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=root, text=True)
    return sorted(name for name in listed.split("\n") if name and (root / name).is_file())


def is_public_header(root, name):
    return name.endswith(".h") and "Public header: <" in (root / name).read_text(encoding="utf-8")[:200]


def mirror_of(name):
    """The test that a source has by its own name."""
    return "tests/" + re.sub(r"^kernels/cpu/", "kernels/", name).rsplit(".", 1)[0] + "_test.cc"


def has_case(text, name, case):
    """Whether a test file has that case. A list of CMake has the tests that are commands."""
    if name.endswith("CMakeLists.txt"):
        return case in ENTRY.findall(text)
    return check_promises.has_case(text, name, case)


def rows_of(text):
    """The rows of the map: (number of the line, file, test file, case)."""
    for number, line in enumerate(text.split("\n"), start=1):
        if line and not line.startswith("#"):
            yield number, *([cell.strip() for cell in line.split(" | ", 2)] + ["", ""])[:3]


def listed_tests(root, names):
    """The sources that the lists of CMake name, by their paths."""
    listed = set()
    for name in names:
        if name.startswith("tests/") and name.endswith("CMakeLists.txt"):
            text = re.sub(r"#.*", "", (root / name).read_text(encoding="utf-8"))
            listed |= {posixpath.normpath(posixpath.join(posixpath.dirname(name), word))
                       for word in re.findall(r"[\w./-]+\.cc\b", text)}
    return listed


def check(root, names, most_open=MOST_OPEN, fewest_rows=FEWEST_ROWS):
    """What is wrong, each as a line; the tests of each file; and the files that no test is known to hold."""
    wrong = []
    known = set(names)
    sources = [name for name in names if name.split("/")[0] in TOPS and name.endswith(".cc")]
    headers = [name for name in names if name.split("/")[0] in TOPS and is_public_header(root, name)]
    held = {name: [mirror_of(name)] for name in sources + headers if mirror_of(name) in known}
    mirrored = set(held)

    rows = list(rows_of((root / MAP).read_text(encoding="utf-8")))
    if len(rows) < fewest_rows:
        wrong.append(f"{MAP}: {len(rows)} rows, at least {fewest_rows} expected")
    if [row[1:] for row in rows] != sorted(row[1:] for row in rows):
        wrong.append(f"{MAP}: the rows are not sorted")
    for number, name, test, case in rows:
        where = f"{MAP}:{number}: {name}"
        if name not in sources + headers:
            wrong.append(f"{where}: there is no such source or public header; take the row out or follow the file")
        elif name in mirrored:
            wrong.append(f"{where}: {mirror_of(name)} holds it by its name; take the row out")
        elif not test.startswith("tests/") or test not in known:
            wrong.append(f"{where}: there is no test file '{test}'")
        elif not case or not has_case((root / test).read_text(encoding="utf-8"), test, case):
            wrong.append(f"{where}: {test} has no test '{case}'")
        else:
            held.setdefault(name, []).append(f"{test}: {case}")

    promised = {section for section, _, _ in check_promises.rows_of((root / check_promises.TABLE).read_text(encoding="utf-8"))}
    for header in headers:
        source = header[:-2] + ".cc"
        if header not in held and source in held:
            held[header] = held[source]
        elif header not in held and header in promised:
            held[header] = [f"{check_promises.TABLE}, section {header}"]

    listed = listed_tests(root, names)
    wrong += [f"{name}: no CMakeLists.txt of tests/ lists it, so it never runs" for name in names
              if name.startswith("tests/") and name.endswith("_test.cc") and name not in listed]
    unheld = [name for name in sources + headers if name not in held]
    if len(unheld) > most_open:
        wrong.append(f"{len(unheld)} files have no test in {MAP}, at most {most_open} may have none "
                     "(check_tests_map.py --list prints them): name the test that fails if the file is wrong")
    return wrong, held, unheld, len(mirrored)


def programs_of(root, names):
    """The test programs of each source that a list of CMake names."""
    programs = {}
    for name in names:
        if name.startswith("tests/") and name.endswith("CMakeLists.txt"):
            text = re.sub(r"#.*", "", (root / name).read_text(encoding="utf-8"))
            for program, sources in re.findall(r"(?:rewire_test|add_executable)\((\w+)([^)]*)\)", text):
                for source in re.findall(r"[\w./-]+\.cc\b", sources):
                    programs.setdefault(posixpath.normpath(posixpath.join(posixpath.dirname(name), source)), set()).add(program)
    return programs


def sources_in(build, program):
    """What Ninja builds a test program and its dependencies of; None if it does not build that program."""
    asked = subprocess.run(["ninja", "-t", "inputs", f"tests/bin/{program}"], cwd=build, capture_output=True, text=True)
    if asked.returncode:
        return None
    found = set()
    for line in asked.stdout.split("\n"):
        path = build / line.strip()
        if path.suffix == ".cxx" and path.is_file():  # several sources as one
            found |= {pathlib.Path(each) for each in re.findall(r'#include "([^"]+)"', path.read_text(encoding="utf-8"))}
        elif path.suffix == ".cc":
            found.add(path)
    return {path.relative_to(ROOT).as_posix() for path in found if path.is_relative_to(ROOT)}


def check_linked(root, names, build):
    wrong, programs, built = [], programs_of(root, names), {}
    for number, name, test, _ in rows_of((root / MAP).read_text(encoding="utf-8")):
        if not name.endswith(".cc") or not test.endswith(".cc"):
            continue
        for program in programs.get(test, ()):
            built.setdefault(program, sources_in(build, program))
        known = [built[program] for program in programs.get(test, ()) if built[program] is not None]
        if known and not any(name in sources for sources in known):
            wrong.append(f"{MAP}:{number}: {name}: no program with {test} is built from it; name a test that runs it")
    return wrong


SAMPLE = {
    "vm/run.cc": "", "vm/stop.cc": "", "vm/go.cc": "", "kernels/cpu/sum/add.cc": "",
    "vm/stop.h": "// Public header: <vm/stop.h>\n", "vm/say.h": "// Public header: <vm/say.h>\n", "vm/own.h": "// Inside.\n",
    "tests/vm/run_test.cc": 'TEST_CASE("it runs") {}', "tests/vm/all_test.cc": 'TEST_CASE("it stops") {}',
    "tests/kernels/sum/add_test.cc": 'TEST_CASE("it adds") {}',
    "tests/CMakeLists.txt": "add(vm/run_test.cc vm/all_test.cc kernels/sum/add_test.cc)\nadd_test(NAME page COMMAND page)\n",
    check_promises.TABLE: "## vm/say.h\n\n| promise | test |\n|---|---|\n| It says | tests/vm/all_test.cc: it stops |\n",
    MAP: "# head\nvm/go.cc | tests/CMakeLists.txt | page\nvm/stop.cc | tests/vm/all_test.cc | it stops\n",
}


def self_test():
    """The sample is right, and each change of it is found."""
    cases = [
        ({}, []),
        ({MAP: ("it stops", "it goes")}, ["has no test 'it goes'", "2 files have no test"]),
        ({MAP: ("| page", "| sheet")}, ["has no test 'sheet'", "1 files have no test"]),
        ({MAP: ("all_test.cc", "none_test.cc")}, ["no test file", "2 files have no test"]),
        ({MAP: ("vm/go.cc", "vm/gone.cc")}, ["no such source", "1 files have no test"]),
        ({MAP: ("vm/go.cc", "vm/own.h")}, ["no such source", "1 files have no test"]),
        ({MAP: ("vm/go.cc", "vm/run.cc")}, ["holds it by its name", "1 files have no test"]),
        ({MAP: ("vm/go.cc", "vm/z.cc")}, ["not sorted", "no such source", "1 files have no test"]),
        ({MAP: ("# head\nvm/go.cc | tests/CMakeLists.txt | page\n", "")}, ["1 rows", "1 files have no test"]),
        ({check_promises.TABLE: ("vm/say.h", "vm/tell.h")}, ["1 files have no test"]),
        ({"tests/CMakeLists.txt": ("vm/all_test.cc", "# vm/all_test.cc")}, ["no CMakeLists.txt", "no CMakeLists.txt"]),
        ({"tests/CMakeLists.txt": ("(vm/run_test.cc", "(")}, ["tests/vm/run_test.cc: no CMakeLists.txt"]),
    ]
    bad = 0
    for changes, expected in cases:
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name, text in SAMPLE.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text.replace(*changes[name]) if name in changes else text)
            found = check(root, sorted(SAMPLE), most_open=0, fewest_rows=2)[0]
        if len(found) != len(expected) or any(words not in line for words, line in zip(expected, found)):
            bad += 1
            print(f"{changes}: expected {expected}, found {found}")
    print(f"check_tests_map self-test: {len(cases) - bad} of {len(cases)} cases right")
    return 1 if bad else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--self-test", action="store_true")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--of", metavar="FILE")
    parser.add_argument("--linked", metavar="BUILD", type=pathlib.Path)
    arguments = parser.parse_args()
    if arguments.self_test:
        return self_test()
    wrong, held, unheld, mirrored = check(ROOT, tracked(ROOT))
    if arguments.linked:
        wrong += check_linked(ROOT, tracked(ROOT), arguments.linked.resolve())
    if arguments.of:
        print("\n".join(held.get(arguments.of, [f"{arguments.of}: no test is known to hold it"])))
        return 0
    for line in unheld if arguments.list else wrong:
        print(line)
    print(f"check_tests_map: {mirrored} files have a test by their own name, {len(held) - mirrored} by the map, "
          f"{len(unheld)} have none, at most {MOST_OPEN} may have none")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
