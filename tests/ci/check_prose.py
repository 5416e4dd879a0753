#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""No sentence has more than 30 words in headers, pages, README, CHANGELOG and help texts.

Long sentences are where prose becomes hard to follow. `--list` also prints the average of each file. Tables and code are
not counted.
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
MOST_WORDS = 30
PAGE = re.compile(r"(docs/)?[^/]+\.md")
TOOL = re.compile(r"tools/vm_\w+\.cc")
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
MARK = re.compile(r"^\s*([-*]|\d+\.) ")


def paragraphs(lines, is_verbatim):
    """Joins lines to paragraphs. Empty and verbatim lines end one, and so does the mark of a list item."""
    current = []
    for line in [*lines, ""]:
        if not line.strip() or is_verbatim(line) or MARK.match(line):
            if current:
                yield " ".join(current)
            current = []
        if line.strip() and not is_verbatim(line):
            current.append(MARK.sub("", line).strip())


def comments(text):
    """The lines of all comments, with an empty line behind each comment."""
    in_block = False
    for line in text.split("\n"):
        stripped = line.strip()
        if in_block or stripped.startswith(("//", "/*")):
            yield re.sub(r"^(//|/\*|\*/|\*)\s?", "", stripped).replace("*/", "")
            in_block = (in_block or stripped.startswith("/*")) and not stripped.endswith("*/")
            if not in_block and not stripped.startswith("//"):
                yield ""
        else:
            yield ""


def help_texts(text):
    for match in re.finditer(r'(?:"(?:[^"\\\n]|\\.)*"\s*)+', text):
        yield "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', match.group()))


def sentences(paragraph):
    plain = re.sub(r"\]\([^)]*\)", "]", re.sub(r"`[^`]*`", "code", paragraph))
    for sentence in re.split(r"(?<=[.?!])[\"')\]*]*\s+", plain):
        words = [word for word in sentence.split() if re.search(r"\w", word)]
        if words:
            yield len(words), sentence


def texts_of(name, text):
    if PAGE.fullmatch(name):
        text = FENCED.sub("", text)
        return paragraphs(text.split("\n"), lambda line: line.startswith(("|", "    ", "#", "<", "```")))
    if name.endswith(".h"):
        return paragraphs(comments(text), lambda line: line.startswith("  "))
    if TOOL.fullmatch(name):
        return help_texts(text)
    return ()


def self_test():
    """A long sentence is found in each kind of text, and in nothing else."""
    long = "word " * MOST_WORDS + "end."
    cases = [
        ("README.md", f"Short one. {long}", 1),
        ("README.md", f"| {long} |\n\n    {long}\n", 0),
        ("README.md", f"Short one.\n\n```sh\n{long}\n```\n\n{long}", 1),
        ("vm/a.h", f"// Public header: <a.h>.\n//\n// {long}\nint a;", 1),
        ("vm/a.h", f"/* Public header: <a.h>. */\n/* Short.\n * {long} */", 1),
        ("vm/a.h", f"// {long}", 1),
        ("vm/a.h", f"// Public header: <a.h>.\n//   {long}\nint {long};", 0),
        ("tools/vm_a.cc", f'Add("--x", "short", "{long[:40]}"\n    "{long[40:]}");', 1),
        ("tools/vm_a.cc", f"// {long}", 0),
    ]
    wrong = 0
    for name, text, expected in cases:
        given = sum(words > MOST_WORDS for p in texts_of(name, text) for words, _ in sentences(p))
        if given != expected:
            wrong += 1
            print(f"{name}: {given} long sentences found, {expected} expected, in: {text}")
    print(f"check_prose self-test: {len(cases) - wrong} of {len(cases)} cases right")
    return 1 if wrong else 0


def main():
    if "--self-test" in sys.argv:
        return self_test()
    names = subprocess.check_output(["git", "ls-files"], cwd=ROOT, text=True).split()
    found = total = 0
    for name in sorted(names):
        if not name.endswith((".md", ".h", ".cc")) or not (ROOT / name).is_file():
            continue
        lengths = []
        for paragraph in texts_of(name, (ROOT / name).read_text(encoding="utf-8")):
            for words, sentence in sentences(paragraph):
                lengths.append(words)
                if words > MOST_WORDS:
                    found += 1
                    print(f"{name}: {words} words, at most {MOST_WORDS} expected; make two sentences of: {sentence}")
        total += len(lengths)
        if lengths and "--list" in sys.argv:
            print(f"{name}: {len(lengths)} sentences of {sum(lengths) / len(lengths):.1f} words")
    if not found:
        print(f"check_prose: {total} sentences, none above {MOST_WORDS} words")
    # Too few: the texts are not written as this script reads them.
    return 1 if found or total < 1000 else 0


if __name__ == "__main__":
    sys.exit(main())
