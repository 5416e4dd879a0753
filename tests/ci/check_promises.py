#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds docs/promises.md against the pages, the public headers and the tests.

usage: check_promises.py              fails when they disagree
       check_promises.py --list       prints the promises that have no row
       check_promises.py --self-test  proves that each rule is enforced

A row names a sentence as a whole, or by its beginning, which no other sentence of that file has, and the tests that hold it. A sentence
promises something if it has one of PROMISES. It does not if it demands something of the reader ("must"), only announces a
list (":"), or has two words. A promise without a row may be untrue without anybody's notice. A new one
comes with a row; MOST_OPEN only ever goes down.
"""

import collections
import pathlib
import re
import subprocess
import sys
import tempfile

import check_prose

ROOT = pathlib.Path(__file__).resolve().parents[2]
TABLE = "docs/promises.md"
PAGES = [f"docs/{name}.md" for name in (
    "embedding", "aot", "devices", "devices-inside", "python", "compiler", "compiler-inside", "passes",
    "kernels", "kernels-collective", "kernels-collective-device", "kernels-device", "kernels-image", "kernels-onednn", "kernels-re2", "serving", "state", "verification")]
FEWEST_ROWS = 200
MOST_OPEN = 0

PROMISES = re.compile(
    r"\b(always|never|at most|at least|at once|until|exactly|fails?|refuse[sd]?|raises?|is an error|are errors)\b", re.IGNORECASE)
DEMAND = re.compile(r"\bmust\b")
SECTION = re.compile(r"## `?([^`\n]+)`?")
SENTENCE_END = re.compile(r"(?<=[.?!])[\"')\]*]*\s+")


def promise_files():
    """The pages, and the public headers: each says so in its second line."""
    listed = subprocess.check_output(["git", "ls-files", "*.h"], cwd=ROOT, text=True).split()
    headers = [name for name in listed if "Public header: <" in (ROOT / name).read_text(encoding="utf-8")[:200]]
    return PAGES + sorted(headers)


def cells(text):
    """The cells of the tables of a page, but for a table's head and rule."""
    lines = text.split("\n")
    for line, following in zip(lines, lines[1:] + [""]):
        if line.startswith("|") and not re.match(r"\|[\s:|-]+\|$", line) and not re.match(r"\|[\s:|-]+\|$", following):
            yield from (cell.strip() for cell in line.strip("|").split(" | "))


def sentences_of(name, text):
    """All sentences of a page or of the comments of a header, as they are written."""
    paragraphs = list(check_prose.texts_of(name, text))
    if name in PAGES and not name.startswith(("docs/kernels", "docs/verification")):  # those tables are not prose
        paragraphs += cells(check_prose.FENCED.sub("", text))
    return [sentence.strip() for paragraph in paragraphs for sentence in SENTENCE_END.split(paragraph) if sentence.strip()]


def rows_of(text):
    """The rows of the table, as (file, beginning of the sentence, tests); tests are (file, case) with "" for a whole file."""
    section = None
    for line in text.split("\n"):
        if match := SECTION.fullmatch(line.strip()):
            section = match.group(1)
        elif line.startswith("| ") and section and not line.startswith("| promise |"):
            promise, _, tests = line.strip().strip("|").rpartition(" | ")
            found = [test.strip().partition(": ") for test in re.split(r"; (?=tests/)", tests)]
            yield section, promise.strip(), [(file, case) for file, _, case in found]


def has_case(text, name, case):
    """Whether a test file has a test or a part of one by that name."""
    if name.endswith(".py"):
        return re.search(rf"def {re.escape(case)}\(", text) is not None
    if name.endswith(".asm"):
        return re.search(rf"^\.func {re.escape(case)}\b", text, re.MULTILINE) is not None
    if name.endswith(".txt"):
        return re.search(rf"\badd_test\(NAME {re.escape(case)}\s", text) is not None
    quoted = '"' + case.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return re.search(r"\b((TEMPLATE_)?TEST_CASE|SECTION)\(\s*" + re.escape(quoted), text) is not None


def promises(sentence):
    return (PROMISES.search(sentence) and not DEMAND.search(sentence) and not sentence.endswith(":")
            and len(sentence.split()) > 2)


def check(root, files, fewest=FEWEST_ROWS, most_open=MOST_OPEN):
    """What is wrong, and the promises without a row, each as a line."""
    wrong, read = [], {}

    def text_of(name):
        if name not in read:
            path = root / name
            read[name] = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else None
        return read[name]

    sentences = {name: sentences_of(name, text_of(name)) for name in files if text_of(name) is not None}
    rows = list(rows_of(text_of(TABLE) or ""))
    held = collections.defaultdict(set)
    for name, promise, tests in rows:
        where = f"{TABLE}: {name}: '{promise}'"
        meant = {sentence for sentence in sentences.get(name, ()) if sentence.startswith(promise)}
        meant = {promise} if promise in meant else meant
        if len(meant) != 1:
            wrong.append(f"{where}: {len(meant)} sentences of that file begin so, 1 expected")
        held[name] |= meant
        if not any(file for file, _ in tests):
            wrong.append(f"{where}: there is no test")
        for file, case in tests:
            if not file:
                continue
            if not file.startswith("tests/") or text_of(file) is None:
                wrong.append(f"{where}: there is no test file '{file}'")
            elif case and not has_case(text_of(file), file, case):
                wrong.append(f"{where}: {file} has no test '{case}'")
            elif not case and not file.endswith((".py", ".sh")):
                wrong.append(f"{where}: {file} has several tests; name one")
    if len(rows) < fewest:
        wrong.append(f"{TABLE}: {len(rows)} rows, at least {fewest} expected")
    unheld = [f"{name}: {sentence}" for name in files for sentence in dict.fromkeys(sentences.get(name, ()))
              if promises(sentence) and sentence not in held[name]]
    if len(unheld) > most_open:
        wrong.append(f"{len(unheld)} promises have no row in {TABLE}, at most {most_open} may have none "
                     "(check_promises.py --list prints them)")
    return wrong, unheld, len(rows)


SAMPLE = {
    "docs/embedding.md": "A run never fails twice. Never so. Runs are\nquick, and `kBusy` comes at most once.\n\n| what | safe |\n|---|---|\n"
                         "| a run | it always ends |\n\n    it never stands here\n",
    "vm/a.h": "// Public header: <a.h>.\n// It refuses nothing. It is small. It must never be large. It never is one of:\nint never;",
    "tests/a_test.cc": 'TEST_CASE("it ends: so; or so") { SECTION("twice") {} }',
    "tests/a.py": "def test_ends():\n    pass\n",
    "tests/a.asm": ".func fail_ends() -> i64\n",
    "tests/CMakeLists.txt": "add_test(NAME ends\n  COMMAND true)\n",
    TABLE: "## docs/embedding.md\n\n| promise | test |\n|---|---|\n| A run never | tests/a_test.cc: it ends: so; or so |\n"
           "| Runs are quick, and `kBusy` | tests/a_test.cc: twice; tests/a.asm: fail_ends |\n| it always | tests/a.py: test_ends |\n"
           "\n## vm/a.h\n\n| promise | test |\n|---|---|\n| It refuses | tests/a.py |\n",
}


def self_test():
    """The sample is right, and each change of it is found."""
    cases = [
        ({}, []),
        ({TABLE: ("| A run never", "| A run always")}, ["0 sentences", "promises have no row"]),
        ({TABLE: ("| It refuses", "| It ")}, ["4 sentences"]),
        ({TABLE: ("it ends: so;", "it begins: so;")}, ["has no test 'it begins: so; or so'"]),
        ({TABLE: ("tests/a.py: test_ends", "tests/b.py: test_ends")}, ["no test file 'tests/b.py'"]),
        ({TABLE: ("tests/a.py: test_ends", "vm/a.h: never")}, ["no test file 'vm/a.h'"]),
        ({TABLE: ("| it always | tests/a.py: test_ends |", "| it always |  |")}, ["there is no test"]),
        ({TABLE: ("tests/a_test.cc: it ends: so; or so", "tests/a_test.cc")}, ["has several tests"]),
        ({TABLE: ("fail_ends |", "fail_begins |")}, ["has no test 'fail_begins'"]),
        ({TABLE: ("| it always | tests/a.py: test_ends |", "| it always | tests/CMakeLists.txt: ends |")}, []),
        ({TABLE: ("tests/a.py: test_ends", "tests/CMakeLists.txt: begins")}, ["has no test 'begins'"]),
        ({"docs/embedding.md": ("| it always ends |", "| it always ends |\n| two | it always ends late |"),
          TABLE: ("| it always |", "| it always ends |")}, ["1 promises have no row"]),
        ({TABLE: ("| It refuses | tests/a.py |\n", "")}, ["3 rows", "1 promises have no row"]),
        ({"tests/a.py": ("test_ends", "test_begins")}, ["has no test 'test_ends'"]),
        ({"vm/a.h": ("It is small.", "It is never small.")}, ["1 promises have no row"]),
        ({"docs/embedding.md": ("always ends", "always ends. It raises none")}, ["1 promises have no row"]),
    ]
    wrong = 0
    for changes, expected in cases:
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name, text in SAMPLE.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text.replace(*changes.get(name, ("", ""))) if name in changes else text)
            found = check(root, ["docs/embedding.md", "vm/a.h"], fewest=4, most_open=0)[0]
        if len(found) != len(expected) or any(words not in line for words, line in zip(expected, found)):
            wrong += 1
            print(f"{changes}: expected {expected}, found {found}")
    print(f"check_promises self-test: {len(cases) - wrong} of {len(cases)} cases right")
    return 1 if wrong else 0


def main():
    if "--self-test" in sys.argv:
        return self_test()
    wrong, unheld, rows = check(ROOT, promise_files())
    print("\n".join(unheld if "--list" in sys.argv else wrong))
    print(f"check_promises: {rows} promises have a test, {len(unheld)} have none, at most {MOST_OPEN} may have none")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
