#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints docs/passes.md from the compiler's list of passes, so that the two cannot disagree.

    passes_doc.py > docs/passes.md
    passes_doc.py --check

Reads the rows of compiler/driver/passes.cc and the comments of compiler/passes/passes.h. A pass has one name: its function is
called after it, perhaps with a verb in front, and so is its file, but for two that share one with a pass that does nearly the
same. passes.h declares the passes in the order in which they run. `--check` fails if any of this or the page is not so.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROWS = pathlib.Path("compiler/driver/passes.cc")
LIBRARIES = pathlib.Path("kernels/contract/libraries.h")
COMMENTS = pathlib.Path("compiler/passes/passes.h")
PAGE = pathlib.Path("docs/passes.md")
SHARED = {"transpose-late": "drop-transposes", "share-constants": "common-subexpressions"}
STRICT = ("kNothing", "kSumOrder")
EFFECTS = {"kNothing": "nothing", "kSumOrder": "order of sums", "kRounding": "rounding", "kSpecialValues": "special values"}

HEAD = """# Passes

The passes of the [compiler](compiler.md), in the order in which they run. `--disable-pass NAME` leaves one out. The page is made from
`compiler/driver/passes.cc` and the comments of `compiler/passes/passes.h`: `tests/ci/passes_doc.py > docs/passes.md`.

*May change* and *`--strict`* say how results may differ from those of the model's operators one by one
([strict results](compiler.md#strict-results)): without `--strict`, and with it. *For* says where a pass runs: passes for the CPU are
skipped with `--device`.

| pass | may change | `--strict` | for | what it does | file |
|---|---|---|---|---|---|
| `fold-constants` | nothing | runs | all | Runs nodes whose inputs are constants on the VM. It is no pass of the list: it works while the model is lowered, \
because operators ask for constants. | [fold_constants.cc](../compiler/passes/simplify/fold_constants.cc) |
"""


def camel(name):
    return "".join(word.capitalize() for word in name.split("-"))


def passes(root):
    """The rows: name, function, effect, effect under --strict, library, whether it is for the CPU alone."""
    text = re.sub(r"\s+", " ", (root / ROWS).read_text(encoding="utf-8"))
    files = dict(re.findall(r'(names::\w+)\[\] = "([^"]*)"', (root / LIBRARIES).read_text(encoding="utf-8").replace("char k", "names::k")))
    for row in re.findall(r"\{(\.name = [^}]*)\}", text):
        value = dict(re.findall(r"\.(\w+) = ([^,]+)", row))
        effect = value["effect"].strip()
        yield (value["name"].strip('" '), value["run"].strip(), effect, value.get("strict_effect", effect).strip(),
               files.get(value.get("library", "").strip(), ""), value.get("for_host", "").strip() == "true")


def comments(root):
    """What the comments say of each function, in the order in which they are declared."""
    text = (root / COMMENTS).read_text(encoding="utf-8")
    found = re.findall(r"((?:^//[^\n]*\n)+)void (\w+)\(Graph\* graph\);", text, re.MULTILINE)
    return {function: " ".join(line[2:].strip() for line in comment.strip().split("\n")) for comment, function in found}


def file_of(root, name, function):
    """The file that defines a pass, or None."""
    for path in sorted((root / "compiler" / "passes").glob("*/*.cc")):
        if re.search(rf"^void {function}\(Graph\* graph\)", path.read_text(encoding="utf-8"), re.MULTILINE):
            return path
    return None


def page_and_faults(root):
    said, wrong, rows, order = comments(root), [], [], []
    for name, function, effect, strict, library, for_host in passes(root):
        order.append(function)
        if not re.fullmatch(rf"([A-Z][a-z]+)?{camel(name)}", function, re.IGNORECASE):
            wrong.append(f"{ROWS}: '{name}' runs {function}; call it {camel(name)}, or put a verb in front of that")
        path = file_of(root, name, function)
        expected = SHARED.get(name, name).replace("-", "_") + ".cc"
        if path is None or path.name != expected:
            wrong.append(f"compiler/passes: '{name}' is in {path and path.name}, expected {expected}")
        if function not in said:
            wrong.append(f"{COMMENTS}: {function} has no comment")
        kept = "runs" if strict == effect else EFFECTS[strict]
        where = "CPU" if for_host else "all"
        if library:
            where += f", with {library}"
        at = path.relative_to(root) if path else ""
        rows.append(f"| `{name}` | {EFFECTS[effect]} | {kept if strict in STRICT else 'left out'} | {where} | "
                    f"{said.get(function, '')} | [{path and path.name}](../{at}) |\n")
    if [function for function in said if function in order] != order:
        wrong.append(f"{COMMENTS}: the passes are not declared in the order in which {ROWS} runs them")
    return HEAD + "".join(rows), wrong


def main():
    page, wrong = page_and_faults(ROOT)
    if "--check" in sys.argv:
        if (ROOT / PAGE).read_text(encoding="utf-8") != page:
            wrong.append(f"{PAGE} is not current: tests/ci/passes_doc.py > {PAGE}")
        print("\n".join(wrong) if wrong else f"passes_doc: {page.count(chr(10) + '| `') - 1} passes, each with one name and a row")
    else:
        print(page, end="")
        print("\n".join(wrong), end="", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
