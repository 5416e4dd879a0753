#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints docs/headers.md: each public header with the first sentence of its comment.

    headers_doc.py > docs/headers.md
    headers_doc.py --check
"""
import pathlib
import re
import subprocess
import sys

import check_prose

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = pathlib.Path("docs/headers.md")
PARTS = [  # the heading, and which headers it has: the first that fits
    ("For hosts in C++", r"vm/[^/]+\.h|executable_format/.*|base/.*"),
    ("For hosts in C", r"vm/c_api(/.*|\.h)"),
    ("For kernels and devices", r"vm/kernel/.*"),
    ("The compiler", r"compiler/.*"),
    ("The rest", r".*"),
]
HEAD = """# Public headers

What is installed, and where one begins: [vm/vm.h](../vm/vm.h) in C++, [vm/c_api.h](../vm/c_api.h) in C,
[vm/kernel/kernel.h](../vm/kernel/kernel.h) for kernels. Each header includes what it needs, and its comments are its contract. The page is
made from their first sentences: `tests/ci/headers_doc.py > docs/headers.md`.
"""


def public_headers():
    listed = subprocess.check_output(["git", "ls-files", "*.h"], cwd=ROOT, text=True).split()
    return [name for name in sorted(listed) if "Public header: <" in (ROOT / name).read_text(encoding="utf-8")[:200]]


def said_of(name):
    """The first sentence of the comment at the head of a header."""
    comments = (text for _, text in check_prose.first_words((ROOT / name).read_text(encoding="utf-8")))
    return re.split(r"(?<=[.])\s", next(comments), maxsplit=1)[0].replace("|", "\\|")


def page():
    left, text = public_headers(), HEAD
    order = [PARTS[1], PARTS[0], *PARTS[2:]]
    rows = {title: [] for title, _ in PARTS}
    for name in left:
        title = next(title for title, pattern in order if re.fullmatch(pattern, name))
        rows[title].append(f"| [{name}](../{name}) | {said_of(name)} |\n")
    for title, found in rows.items():
        if found:
            text += f"\n## {title}\n\n| header | what it has |\n|---|---|\n" + "".join(found)
    return text


def main():
    if "--check" not in sys.argv:
        print(page(), end="")
        return 0
    if (ROOT / PAGE).read_text(encoding="utf-8") != page():
        print(f"{PAGE} is not current: tests/ci/headers_doc.py > {PAGE}")
        return 1
    print(f"headers_doc: {len(public_headers())} public headers have their row")
    return 0


if __name__ == "__main__":
    sys.exit(main())
