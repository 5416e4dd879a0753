#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prose is easy to follow: short sentences, comments that begin with whole ones, lines that fit a screen, one spelling.

    check_prose.py             check the tree
    check_prose.py --list      also print the average length of the sentences of each file
    check_prose.py --fragments print the comments that begin with a fragment
    check_prose.py --self-test

- No sentence has more than 30 words in headers, pages, README, CHANGELOG and help texts. Tables and code are not counted.
- No line of a page has more than 170 characters, but for tables, code, and pages that a tool makes.
- A comment begins with a sentence that names its subject. Those that begin with one of FRAGMENT_WORDS mostly are a clause
  without what it belongs to. They are counted, and the count only goes down.
- Words are spelled as in American English, with -ize.
- A command-line tool that a page names exists.
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
MOST_WORDS = 30
MOST_COLUMNS = 170
MOST_FRAGMENTS = 0
FRAGMENT_WORDS = {"What", "Those", "Of", "Which", "Whose", "Whom", "Where", "Whatever", "Whichever", "Whoever", "That"}
MADE_PAGES = re.compile(r"docs/(results/.*|isa|kernels.*|operators|onnx-values|passes)\.md|CHANGELOG\.md")
# Stems of words that British English spells otherwise. Words that only look so, such as "parallelism", do not match.
BRITISH = re.compile(
    r"(?:quantis|optimis|normalis|initialis|recognis|synchronis|organis|serialis|summaris|vectoris|parallelis|minimis|maximis|"
    r"itemis|randomis|realis|utilis|specialis|generalis|categoris|tokenis|customis|memoris|sanitis|visualis|standardis|localis|"
    r"equalis|linearis|stabilis|finalis|emphasis|materialis)(?:e(?!s\s*=)|ing|ation|able|er)|"
    r"colour|neighbour|behaviour|favour|honour|flavour|artefact|licence|centred|\bcentre|analys(?:e[^s]|ing)", re.IGNORECASE)
SPELLED = (".md", ".h", ".cc", ".c", ".py", ".sh", ".txt", ".cmake", ".js", ".def", ".asm", ".html", ".css")
NOT_SPELLED = ("third_party/licenses/", "CHANGELOG.md", "tests/ci/check_prose.py", "tests/fuzz/corpus/", "tests/hostile/corpus/")
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


def first_words(text):
    """For each comment of a source on lines of its own: the number of its first line, and its text."""
    collected, begin = [], 0
    for number, line in enumerate([*text.split("\n"), ""], start=1):
        match = re.match(r"\s*(?://|/\*|\*(?!/))\s?(.*)", line)
        said = match.group(1).replace("*/", "").strip() if match else ""
        if said.startswith(("SPDX-License-Identifier", "Public header: <")):
            said = ""
        if said:
            begin = begin or number
            collected.append(said)
        elif collected:
            yield begin, " ".join(collected)
            collected, begin = [], 0


def fragments(name, text):
    """The comments of a source that begin with a fragment, as lines."""
    if name.endswith((".h", ".cc", ".c", ".cu", ".def")):
        for number, comment in first_words(text):
            if re.match(r"\w*", comment).group() in FRAGMENT_WORDS:
                yield f"{name}:{number}: {comment[:100]}"


def long_lines(name, text):
    if name.endswith(".md") and not MADE_PAGES.fullmatch(name):
        for number, line in enumerate(FENCED.sub(lambda match: "\n" * match.group().count("\n"), text).split("\n"), start=1):
            if len(line) > MOST_COLUMNS and not line.startswith(("|", "    ")):
                yield f"{name}:{number}: {len(line)} characters, at most {MOST_COLUMNS} expected; break the line"


def misspelled(name, text):
    if name.endswith(SPELLED) and not name.startswith(NOT_SPELLED):
        for number, line in enumerate(text.split("\n"), start=1):
            if match := BRITISH.search(line):
                yield f"{name}:{number}: '{match.group()}' is British; spell it as in American English"


def unknown_tools(name, text):
    """Command-line tools that a page names and that do not exist."""
    if not name.endswith(".md"):
        return
    for tool in sorted(set(re.findall(r"`(vm-[a-z]+)", text))):
        if not (ROOT / "tools" / (tool.replace("-", "_") + ".cc")).is_file():
            yield f"{name}: there is no tool {tool}; the tools are tools/vm_*.cc"


def self_test():
    """A long sentence is found in each kind of text, and in nothing else; so are the other faults."""
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
    others = [
        (fragments, "vm/a.cc", "// What it is.\nint a;\n\n  // It is.\n  // What\n", 1),
        (fragments, "vm/a.h", "/* Public header: <a.h>. */\n/* Of all. */\n// The one.\nint b;  // What is behind code\n", 1),
        (fragments, "docs/a.md", "// What it is.", 0),
        (long_lines, "docs/a.md", "x" * 171 + "\n| " + "x" * 200 + "\n    " + "x" * 200, 1),
        (long_lines, "docs/isa.md", "x" * 171, 0),
        (misspelled, "vm/a.cc", "// It is quantis" "ed.\n// Parallelism, precise, analyses.\nint colo" "ur;", 2),
        (unknown_tools, "CHANGELOG.md", "`vm-run`, `vm-asm` and `vm-as --help`", 1),
        (unknown_tools, "vm/a.cc", "// `vm-asm`", 0),
        (misspelled, "CHANGELOG.md", "optimis" "ed", 0),
    ]
    for found, name, text, expected in others:
        if len(list(found(name, text))) != expected:
            wrong += 1
            print(f"{found.__name__}: {list(found(name, text))}, {expected} expected, in: {text}")
    print(f"check_prose self-test: {len(cases) + len(others) - wrong} of {len(cases) + len(others)} cases right")
    return 1 if wrong else 0


def main():
    if "--self-test" in sys.argv:
        return self_test()
    names = subprocess.check_output(["git", "ls-files"], cwd=ROOT, text=True).split()
    found = total = 0
    beginnings = []
    for name in sorted(names):
        if not name.endswith(SPELLED + (".cu",)) or not (ROOT / name).is_file():
            continue
        text = (ROOT / name).read_text(encoding="utf-8", errors="replace")
        faults = [*long_lines(name, text), *misspelled(name, text), *unknown_tools(name, text)]
        beginnings += fragments(name, text)
        lengths = []
        for paragraph in texts_of(name, text):
            for words, sentence in sentences(paragraph):
                lengths.append(words)
                if words > MOST_WORDS:
                    faults.append(f"{name}: {words} words, at most {MOST_WORDS} expected; make two sentences of: {sentence}")
        for fault in faults:
            print(fault)
        found += len(faults)
        total += len(lengths)
        if lengths and "--list" in sys.argv:
            print(f"{name}: {len(lengths)} sentences of {sum(lengths) / len(lengths):.1f} words")
    if "--fragments" in sys.argv:
        print("\n".join(beginnings))
    if len(beginnings) > MOST_FRAGMENTS:
        found += 1
        print(f"{len(beginnings)} comments begin with a fragment, at most {MOST_FRAGMENTS} may (check_prose.py --fragments prints "
              "them): begin with the subject")
    if not found:
        print(f"check_prose: {total} sentences, none above {MOST_WORDS} words; {len(beginnings)} comments begin with a fragment, "
              f"at most {MOST_FRAGMENTS} may")
    # Too few: the texts are not written as this script reads them.
    return 1 if found or total < 1000 else 0


if __name__ == "__main__":
    sys.exit(main())
