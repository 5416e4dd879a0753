#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks how the stock kernels compute with numbers that a file or a tensor chooses.

usage: check_kernels.py [ROOT]       check kernels/ (default: of the tree that this script is in)
       check_kernels.py --self-test  prove that each rule is enforced

Three rules, each with the helper that is used in place of what it refuses:
  float to integer   a conversion of a floating expression by static_cast, lround and the like is undefined for what the
                     integer does not hold; ToType (kernels/cpu/support/convert.h) is defined for every float, and ToTypeInRange
                     beside it is for those that the caller knows to fit.
  product of sizes   a product of dimensions may overflow; Times and Product (kernels/cpu/support/checked.h) do not. A small
                     literal times a size is allowed, and so is the arithmetic of an index, which is added to an offset
                     or divides: what it names lies in memory.
  unasked loops      ParallelFor's grain by GrainOf (kernels/cpu/support/parallel.h), which never divides by 0.
"""

import pathlib
import re
import tempfile

import tree_check

# Where the helpers are, and vector code, which names its conversions itself.
HELPERS = {
    "kernels/contract/position.h",
    "kernels/cpu/support/checked.h", "kernels/cpu/support/convert.h", "kernels/cpu/support/half.h", "kernels/cpu/support/pace.h", "kernels/cpu/support/parallel.h",
}

INTEGER = r"(?:std::)?(?:u?int(?:8|16|32|64|ptr)?(?:_t)?|size_t|ptrdiff_t|long|unsigned|I)"
CAST = re.compile(r"static_cast<\s*" + INTEGER + r"\s*>\(")
FLOATING_CALL = re.compile(
    r"\b(?:std::)?(?:floor|ceil|round|nearbyint|rint|trunc|pow|exp|log\d*|sqrt|fabs|fmod|sin|cos)\(|static_cast<(?:double|float)>"
)
FLOAT_LITERAL = re.compile(r"(?<![\w.])(?:\d+\.\d*|\.\d+|\d+e[+-]?\d+|0x[0-9a-fA-F.]+p[+-]?\d+)f?\b")
FLOAT_DECLARATION = re.compile(r"\b(?:double|float)\s+(?:[*&]\s*)?(?:const\s+)?(\w+)")
AUTO_FLOAT = re.compile(
    r"\bauto\s+(\w+)\s*=\s*(?:static_cast<(?:double|float)>|std::(?:floor|ceil|round|nearbyint|trunc|pow|exp|log|sqrt|fabs|fmod)\()"
)
ROUNDING = re.compile(r"\b(?:std::)?(?:ll?round|ll?rint)f?\(")

# Something whose value is a size.
SIZE = (
    r"(?:[\w.>-]*(?:dim\([^()]*\)|dims\(\)\[[^\]]*\]|dims\[[^\]]*\]|shape\[[^\]]*\]|sizes\[[^\]]*\])"
    r"|[\w.>-]*\.(?:inputs|outputs|taps|size|rows|width|hidden|batch|steps|lines)\(\)|Product\([^;]*?\))"
)
FACTOR = r"(?:static_cast<[^>]*>\([^()]*\)|[\w.>:-]+(?:\([^()]*\)|\[[^\]]*\])?)"
CHAIN = re.compile(r"(?P<before>\S+\s)?(?P<chain>" + FACTOR + r"(?:\s[*/%]\s" + FACTOR + r")+)")
GRAIN = re.compile(r"k(?:Grain|TaskWork)\s*/\s*(?=[^\s\d])")


def without_comments_and_strings(text):
    """The same number of lines, so that positions stay."""
    pattern = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.S)
    return pattern.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), text)


def argument_at(text, begin):
    """What stands in the parentheses that open just before `begin`."""
    depth, at = 1, begin
    while at < len(text) and depth > 0:
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        at += 1
    return text[begin : at - 1]


def is_floating(expression, names):
    while "ToType<" in expression:  # what it gives is an integer
        begin = expression.index("ToType<")
        opened = expression.index("(", begin) + 1
        expression = expression[:begin] + expression[opened + len(argument_at(expression, opened)) + 1 :]
    if FLOATING_CALL.search(expression) or FLOAT_LITERAL.search(expression):
        return True
    # Arguments of calls and indices have types of their own.
    bare = re.sub(r"(?:\w+\([^()]*\)|\[[^\]]*\])", " ", expression)
    return any(re.search(r"(?<![\w.>])" + name + r"\b(?!\s*[\[(.]|->)", bare) for name in names)


def sizes_multiplied(chain):
    """Whether a size meets another factor that is no small literal."""
    parts = re.split(r"\s([*/%])\s", chain)
    factors = [parts[0]] + [parts[i + 1] for i in range(1, len(parts) - 1, 2) if parts[i] == "*"]
    if len(factors) < 2 or any(parts[i] in "/%" for i in range(1, len(parts) - 1, 2)) and parts[1] in "/%":
        return False
    if any(re.fullmatch(r"\d{1,3}", factor) for factor in factors) and len(factors) == 2:
        return False
    return any(re.fullmatch(SIZE, factor) for factor in factors)


def faults_of(name, text):
    text = without_comments_and_strings(text)
    declared = [(match.start(), match.group(1)) for pattern in (FLOAT_DECLARATION, AUTO_FLOAT) for match in pattern.finditer(text)]
    line_of = lambda at: text.count("\n", 0, at) + 1
    for match in CAST.finditer(text):
        # A name means what was declared not far above.
        floats = {name for at, name in declared if match.start() - 3000 < at < match.start()}
        if is_floating(argument_at(text, match.end()), floats):
            yield line_of(match.start()), "a float is converted by static_cast; use ToType (kernels/cpu/support/convert.h)"
    for match in ROUNDING.finditer(text):
        yield line_of(match.start()), "lround is undefined for large floats; use ToType (kernels/cpu/support/convert.h)"
    for match in GRAIN.finditer(text):
        yield line_of(match.start()), "a grain by division; use GrainOf (kernels/cpu/support/parallel.h)"
    for match in CHAIN.finditer(text):
        before = (match.group("before") or "").strip()
        chain = match.group("chain")
        offset = before[-1:] in "+-" and before != "" or before in ("+=", "-=") or re.match(r"\w*(?:offset|index)\w*\s", chain)
        indexed = re.match(r"\s\+\s(?!k[A-Z]|\d)", text[match.end() :])
        if not offset and not indexed and sizes_multiplied(chain):
            yield line_of(match.start("chain")), f"`{chain}` may overflow; use Times (kernels/cpu/support/checked.h)"


def check(root):
    faults = []
    for path in sorted([*root.glob("kernels/**/*.cc"), *root.glob("kernels/**/*.h")]):
        name = path.relative_to(root).as_posix()
        if name not in HELPERS:
            faults += [f"{name}:{line}: {what}" for line, what in faults_of(name, path.read_text())]
    return faults


SELF_TEST = [
    ("auto i = static_cast<std::int64_t>(std::floor(x));", 1),
    ("double x = 1; int i = static_cast<int>(x);", 1),
    ("float y; f(static_cast<std::size_t>(y * 2));", 1),
    ("auto i = static_cast<std::int64_t>(2.5 * n);", 1),
    ("auto i = static_cast<I>(std::min(position, 0x1p40));", 1),
    ("auto i = std::lround(x);", 1),
    ("double x; auto i = ToType<std::int64_t>(x);", 0),
    ("double x; auto i = static_cast<std::int64_t>(data[n]);", 0),
    ("double x; auto i = static_cast<double>(n);", 0),
    ("// static_cast<int>(std::floor(x))", 0),
    ("const std::int64_t size = x.dim(0) * x.dim(1);", 1),
    ("const std::int64_t size = window.taps() * channels;", 1),
    ("const std::int64_t size = n * Product(dims, 0, 2);", 1),
    ("for (i = 0; i < x.dim(0) * groups; ++i)", 1),
    ("const std::int64_t size = 2 * x.dim(0);", 0),
    ("const T* row = data + i * x.dim(1);", 0),
    ("const T* row = data + i / x.dim(1) * 5;", 0),
    ("const T* row = data + (n * x.dim(1) + c) * plane;", 0),
    ("const std::int64_t size = n * x.dim(1) + kQuad;", 1),
    ("auto i = static_cast<std::uint64_t>(ToType<std::int64_t>(std::floor(x)));", 0),
    ("const std::int64_t size = Times(x.dim(0), x.dim(1));", 0),
    ("ParallelFor(n, kGrain / work, body);", 1),
    ("ParallelFor(n, kGrain / 8, body);", 0),
]


def self_test():
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / "kernels/cpu/support").mkdir(parents=True)
        for code, expected in SELF_TEST:
            (root / "kernels/cpu/code.cc").write_text(code + "\n")
            found = check(root)
            if len(found) != expected:
                print(f"self-test: expected {expected} faults in `{code}`, found {found}")
                failed += 1
        (root / "kernels/cpu/code.cc").write_text("")
        (root / "kernels/cpu/support/convert.h").write_text("double x; int i = static_cast<int>(x);\n")
        if check(root):
            print("self-test: a helper file was checked")
            failed += 1
    return failed


if __name__ == "__main__":
    tree_check.run(check, self_test)
