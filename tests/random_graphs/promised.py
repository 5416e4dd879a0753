# SPDX-License-Identifier: Apache-2.0
"""What Rewire promises to compile, and to refuse: the table of docs/operators.md. So what is drawn and what may be refused follow
the page, and a refusal that it does not have is a failure."""

import functools
import pathlib
import re

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "operators.md"
_ROW = re.compile(r"\| (\w+) \| (\d+)(\+| to \d+|) \|([^|]*)\|(.*)\|$")
_NEWEST = 1 << 30
# What docs/compiler.md says of all operators.
GENERAL = (
    r"expected one of [ a-z0-9_]+",  # a kernel does not have the type, and no exact cast gives it one that it has
    r"input \d+, '.*', is strings$",
    r"sequences? of strings",
    r"stack.* strings",
    r"^the rank of input \d+, '.*', is not known",
)
_UNKNOWN = r"^(not known in this version of the operator set|the operator is not known; .*)$"


@functools.lru_cache(None)
def _rows():
    """{(domain, operator): [(first set, last set, patterns of what is refused)]}."""
    found, domain = {}, None
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            domain = line.removeprefix("## ").removesuffix("ai.onnx") if line.endswith(" ai.onnx") else line.removeprefix("## ")
        row = _ROW.match(line)
        if row:
            first = int(row[2])
            last = _NEWEST if row[3] == "+" else int(row[3].removeprefix(" to ") or first)
            found.setdefault((domain, row[1]), []).append((first, last, _patterns(row[5])))
    return found


def _patterns(told):
    """Patterns for the reasons of a row's last column."""
    texts = [re.escape(text).replace(re.escape("..."), ".*") for text in re.findall(r'"([^"]*)"', told)]
    return texts + [rf"attribute '{name}' is .*, only {only} is supported" for name, only in re.findall(r"attribute `(\w+)` other than (\S+?)(?:;|\s|$)", told)]


def has(domain, kind, opset):
    """Whether an operator of this set is compiled."""
    return any(first <= opset <= last for first, last, _ in _rows().get((domain, kind), ()))


def of_domain(domain):
    """The operators of a domain that are compiled in any set."""
    return tuple(kind for where, kind in _rows() if where == domain)


def may_refuse(domain, kind, opset, reason):
    """Whether the page has this reason for a node."""
    rows = [patterns for first, last, patterns in _rows().get((domain, kind), ()) if first <= opset <= last]
    if not rows:
        return bool(re.search(_UNKNOWN, reason))
    return any(re.search(pattern, reason) for patterns in (*rows, GENERAL) for pattern in patterns)
