#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that names and shapes of stock kernels are said once, in kernels/contract.

usage: check_kernel_names.py [ROOT]       check the tree (default: the one this script is in)
       check_kernel_names.py --self-test  prove that each rule is enforced

Four rules:
  literals   a string literal that is a stock kernel's name, or the beginning of one, or the file of a stock library, stands in
             kernels/contract alone. Elsewhere the constant is used, so that a wrong name does not compile. Raw strings, which
             hold texts, and comments are not looked at.
  kernels    each name there is that of a kernel: some kernel class's kName is it.
  tests      each name there, and each operator of docs/operators.md, stands in a test. Kernels that only operators' tests reach
             are counted; MOST_WITHOUT_TEST may only be lowered.
  shapes     each name there has a row in tests/ci/shape_rules.txt, with the template of kernels/contract that gives the shape of the
             kernel's result; kernels and compiler both call it. Names without one are counted; MOST_APART may only be lowered.
"""

import fnmatch
import pathlib
import re
import tempfile

import tree_check

TOPS = ["base", "executable_format", "vm", "kernels", "devices", "compiler", "python/bindings", "tools", "integrations/collective"]
TOPS_OF_KERNELS = {"kernels", "integrations/collective"}
SUFFIXES = {".h", ".cc", ".c", ".def", ".inc"}
CONTRACT = "kernels/contract"
NAME = re.compile(r'"(?:rewire\.[a-z0-9_.]*|librewire_(?:kernels|collective)_\w+\.so)"')
NOT_KERNELS = {'"rewire.host"'}  # a domain of ONNX nodes
SKIPPED = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"', re.S)
CONSTANT = re.compile(r'inline constexpr char (k\w+)\[\] =\s+"(rewire\.[^"]*)";')
KNAME = re.compile(r"\bkName =([^;]*);|REWIRE_\w+\(([^)]*)\)|\bMath<([^>]*)>|(?:Describe|Kernel|Row)\w*<([^>]*)>", re.S)
OPERATOR = re.compile(r"^\| (\w+) \| \d", re.M)
TEST_SUFFIXES = {".cc", ".h", ".c", ".asm", ".py", ".txt"}
NO_TESTS = {"ci", "faults", "bench"}
MOST_WITHOUT_TEST = 18
SHAPES = "tests/ci/shape_rules.txt"
NO_TEMPLATE = {"same", "elements", "placed", "apart"}
MOST_APART = 12


def code_of(text):
    """The text with comments and raw strings blank, so that lines keep their numbers."""
    return SKIPPED.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), text)


def check(root):
    faults, kernels, constants = [], "", {}
    for top in TOPS:
        for path in sorted((root / top).rglob("*")):
            if path.suffix not in SUFFIXES or not path.is_file():
                continue
            name = path.relative_to(root).as_posix()
            if name.startswith(CONTRACT):
                constants.update({constant: (kernel, name) for constant, kernel in CONSTANT.findall(path.read_text())})
                continue
            text = code_of(path.read_text())
            for match in NAME.finditer(text):
                if match.group() not in NOT_KERNELS:
                    line = text.count("\n", 0, match.start()) + 1
                    faults.append(f"{name}:{line}: {match.group()} is a literal; use the constant of {CONTRACT}")
            if top in TOPS_OF_KERNELS:
                kernels += "".join("".join(groups) + "\n" for groups in KNAME.findall(text))
    for constant, (kernel, name) in sorted(constants.items()):
        if not re.search(r"names::" + constant + r"\b", kernels):
            faults.append(f"{name}: no kernel is called {constant}, {kernel}")
    names = {kernel for kernel, _ in constants.values()}
    return faults + untested(root, names) + shapes(root, names)


def shapes(root, kernels):
    """Faults of the table of shape rules."""
    faults, rules, apart = [], {}, set()
    for number, line in enumerate((root / SHAPES).read_text().splitlines(), 1):
        if not line.startswith("#"):
            rule, _, patterns = line.partition(" | ")
            rules.update({pattern: (rule, number) for pattern in patterns.split()})
    texts = {CONTRACT: "", "kernels": "", "compiler": ""}
    for path in sorted([*(root / "kernels").rglob("*"), *(root / "compiler").rglob("*")]):
        if path.suffix in SUFFIXES:
            name = path.relative_to(root).as_posix()
            texts[CONTRACT if name.startswith(CONTRACT) else name.partition("/")[0]] += code_of(path.read_text())
    for pattern, (rule, number) in rules.items():
        if not fnmatch.filter(kernels, pattern):
            faults.append(f"{SHAPES}:{number}: no kernel is called {pattern}")
        for top in texts if rule not in NO_TEMPLATE else ():
            if not re.search(rf"\b{rule}\b", texts[top]):
                faults.append(f"{SHAPES}:{number}: {top} does not have {rule}, the shape rule of {pattern}")
    for kernel in sorted(kernel for kernel in kernels if not kernel.startswith("rewire.shape.")):
        # The name itself is nearer than the beginning of a name, and a long beginning than a short one.
        pattern = max((pattern for pattern in rules if fnmatch.fnmatch(kernel, pattern)), key=len, default=None)
        if pattern is None:
            faults.append(f"{SHAPES}: {kernel} has no row; name the template of {CONTRACT} that gives the shape of its result")
        elif rules[pattern][0] == "apart":
            apart.add(kernel)
    if len(apart) > MOST_APART:
        faults.append(f"{SHAPES}: {len(apart)} kernels are apart, at most {MOST_APART} may be: {', '.join(sorted(apart))}")
    return faults


def untested(root, kernels):
    words = set()
    for path in sorted((root / "tests").rglob("*")):
        if path.suffix in TEST_SUFFIXES and path.relative_to(root).parts[1] not in NO_TESTS and path.is_file():
            words.update(re.findall(r"rewire(?:\.[a-z0-9_]+)+|\w+", path.read_text(encoding="utf-8", errors="replace")))
    page = root / "docs/operators.md"
    operators = set(OPERATOR.findall(page.read_text())) if page.is_file() else set()
    faults = [f"docs/operators.md: no test names the operator {operator}" for operator in sorted(operators - words)]
    missing = sorted(kernels - words)
    if len(missing) > MOST_WITHOUT_TEST:
        faults.append(f"{CONTRACT}: {len(missing)} kernels are in no test, at most {MOST_WITHOUT_TEST} may be: {', '.join(missing)}")
    return faults


def self_test():
    contract = 'namespace rewire::names {\ninline constexpr char kAdd[] = "rewire.add";\n}\n'
    kernel = "struct Add {\n  static constexpr const char* kName = names::kAdd;\n};\n"
    cases = [
        ("", 0),
        ('node->kernel == "rewire.add"', 1),
        ('name.starts_with("rewire.device.")', 1),
        ('AddLibrary("librewire_kernels_cpu.so")', 1),
        ('// "rewire.add"', 0),
        ('"rewire.add of x and y"', 0),
        ('R"(.kernel add = "rewire.add")"', 0),
        ('kDomain = "rewire.host"', 0),
    ]
    failed = 0
    global MOST_WITHOUT_TEST, MOST_APART  # the real counts are those of the tree
    allowed, MOST_WITHOUT_TEST, MOST_APART = (MOST_WITHOUT_TEST, MOST_APART), 0, 0
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for directory in (CONTRACT, "kernels/cpu", "compiler", "docs", "tests/kernels", "tests/faults", "tests/ci"):
            (root / directory).mkdir(parents=True)
        (root / "docs/operators.md").write_text("| Add | 1+ |  |  |\n")
        test = root / "tests/kernels/add_test.cc"
        test.write_text('Run("rewire.add"); AddNode("Add");\n')
        (root / CONTRACT / "elementwise.h").write_text(contract)
        (root / "kernels/cpu/add.cc").write_text(kernel)
        (root / SHAPES).write_text("same | rewire.add\n")
        for code, expected in cases:
            (root / "compiler/code.cc").write_text(code + "\n")
            found = check(root)
            if len(found) != expected:
                print(f"self-test: expected {expected} faults in `{code}`, found {found}")
                failed += 1
        (root / "compiler/code.cc").write_text("")
        (root / "kernels/cpu/add.cc").write_text("")
        if len(check(root)) != 1:
            print("self-test: a name without a kernel was not found")
            failed += 1
        (root / "kernels/cpu/add.cc").write_text(kernel)
        for text, expected in (('Run("rewire.add.more"); AddNode("Add");', 1), ('Run("rewire.add"); AddNode("Adder");', 1), ("", 2)):
            test.write_text(text + "\n")
            (root / "tests/faults/add.py").write_text('"rewire.add" "Add"\n')
            found = check(root)
            if len(found) != expected:
                print(f"self-test: expected {expected} faults of tests with `{text}`, found {found}")
                failed += 1
        test.write_text('Run("rewire.add"); AddNode("Add");\n')
        (root / "compiler/code.cc").write_text("contract::SumSizes(a);\n")
        for table, rule, expected in (
            ("", "", 1),
            ("apart | rewire.add", "", 1),
            ("same | rewire.a*", "", 0),
            ("same | rewire.add rewire.sub", "", 1),
            ("SumSizes | rewire.add", "", 1),
            ("SumSizes | rewire.add", "contract::SumSizes(a);\n", 0),
            ("OtherSizes | rewire.add", "contract::OtherSizes(a);\n", 1),
        ):
            (root / SHAPES).write_text(table + "\n")
            (root / CONTRACT / "sizes.h").write_text("auto SumSizes();\nauto OtherSizes();\n")
            (root / "kernels/cpu/add.cc").write_text(kernel + rule)
            found = check(root)
            if len(found) != expected:
                print(f"self-test: expected {expected} faults of `{table}` with `{rule}`, found {found}")
                failed += 1
    MOST_WITHOUT_TEST, MOST_APART = allowed
    return failed


if __name__ == "__main__":
    tree_check.run(check, self_test)
