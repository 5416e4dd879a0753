#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts the error messages of the library that no test ever sees.

usage: untested_messages.py            fails when there are more than MOST
       untested_messages.py --list     print them

A message is a text that stands in a call of a function which makes errors (MAKERS). It counts as tested when the
longest piece of it between two places ("{}") stands in a file under tests/. An error that no test provokes may
name the wrong thing, or never be reported at all. A new message comes with a test; MOST only ever goes down.
"""

import argparse
import collections
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ["base", "executable_format", "vm"]
MAKERS = ["Fail", "Violation", "ViolationAt", "Damaged", "Reject", "Invalid", "Malformed", "Truncated",
          "SetKernelError", "NoMemory", "FailKind", "Busy"]
MOST = 24

CALL = re.compile(r"\b(?:" + "|".join(MAKERS) + r")\s*\(")
LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
COMMENT = re.compile(r"//[^\n]*")
# Two literals side by side are one text.
JOINT = re.compile(r'(?<!\\)"\s*\n\s*"')
SHORTEST = 10  # characters; less says nothing of its own


def pieces(text):
    """The parts of a message between its places, the longest first."""
    return sorted((part.strip() for part in re.split(r"\{[^}]*\}", text)), key=len, reverse=True)


def without_comments(source):
    """The source without its comments; a '//' inside a text is none."""
    keep = []
    for line in source.split("\n"):
        inside = False
        for i, char in enumerate(line):
            if char == '"' and (i == 0 or line[i - 1] not in "\\'"):
                inside = not inside
            elif not inside and line.startswith("//", i):
                line = line[:i]
                break
        keep.append(line)
    return "\n".join(keep)


def messages_of(source):
    """The messages in a source file."""
    source = JOINT.sub("", without_comments(source))
    for call in CALL.finditer(source):
        depth, at = 1, call.end()
        while depth and at < len(source):
            if literal := LITERAL.match(source, at):
                text = literal.group(1)
                if len(pieces(text)[0]) >= SHORTEST:
                    yield text
                at = literal.end()
                continue
            depth += {"(": 1, ")": -1}.get(source[at], 0)
            at += 1


def library_messages():
    """The messages of each file, in order and once."""
    found = collections.OrderedDict()
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix not in (".cc", ".h"):
                continue
            texts = list(dict.fromkeys(messages_of(path.read_text(encoding="utf-8"))))
            if texts:
                found[path.relative_to(ROOT).as_posix()] = texts
    return found


def test_text():
    """All that the tests say, with texts that go over several lines put together."""
    parts = []
    for path in sorted((ROOT / "tests").rglob("*")):
        if path.suffix in (".cc", ".h", ".c", ".asm", ".py", ".sh", ".txt"):
            parts.append(JOINT.sub("", path.read_text(encoding="utf-8", errors="replace")))
    return "\n".join(parts)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--list", action="store_true", help="print the messages that are in no test")
    options = parser.parse_args()
    seen = test_text()
    total, untested = 0, []
    for path, texts in library_messages().items():
        total += len(texts)
        untested += [(path, text) for text in texts if pieces(text)[0] not in seen]
    if options.list or len(untested) > MOST:
        for path, text in untested:
            print(f"{path}: {text}")
    print(f"{total} messages, {len(untested)} of them in no test, at most {MOST} may be")
    if len(untested) > MOST:
        sys.exit("there are more messages without a test than before: provoke the new ones in a test")


if __name__ == "__main__":
    main()
