#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints a public header, or a page in Markdown, as Doxygen reads it: its INPUT_FILTER (docs/reference/Doxyfile).

    comments.py FILE
    comments.py --self-test

Headers have plain comments, so that they are read as they stand. The comment above a declaration becomes Doxygen's `///`, one
behind a member `///<`, and the one at the top of the file its `@file`. Comments that stand alone, between empty lines, stay
plain. Links of a page to files become links from the pages in build/reference/html.
"""
import pathlib
import re
import sys

FORWARD = re.compile(r"\s*(struct|class)\s+\w+;")
TRAILING = re.compile(r"^(?P<code>\s*[^\s/#}].*?)(?P<gap>\s+)//\s?(?P<text>.*)$")
C_COMMENT = re.compile(r"^(?P<code>.*?)/\*(?P<text>.*)$")
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")


def escaped(text):
    """Text outside of `code` without what Doxygen or HTML would take for a command."""
    parts = text.split("`")
    if len(parts) % 2 == 0:  # an odd number of marks: none of them begins code
        return re.sub(r"([\\@<>&#%])", r"\\\1", text.replace("`", "'"))
    parts[::2] = [re.sub(r"([\\@<>&#%])", r"\\\1", part) for part in parts[::2]]
    return "`".join(parts)


def with_line_comments(lines):
    """The header with // in place of /* */, one for each of its lines."""
    inside = False
    for line in lines:
        if not inside:
            match = C_COMMENT.match(line)
            if not match or "//" in match["code"] or match["code"].lstrip().startswith("#define"):
                yield line
                continue
            code, text = match["code"], match["text"]
            inside = "*/" not in text
            yield f"{code}//{text.split('*/')[0].rstrip()}"
        else:
            inside = "*/" not in line
            indent = line[:len(line) - len(line.lstrip())]
            text = line.lstrip().split("*/")[0].rstrip()
            # The star stands one column to the right of the slash.
            yield f"{indent[:-1]}//{text[1:] if text.startswith('*') else ' ' + text}"


def blocks(lines):
    """(comment lines, None) for comments that stand on lines of their own, and (None, line) for all others."""
    comment = []
    for line in lines:
        if line.lstrip().startswith("//"):
            comment.append(line)
            continue
        if comment:
            yield comment, line
            comment = []
        yield None, line
    if comment:
        yield comment, ""


def body_of(line):
    return re.sub(r"^\s*//", "", line)


def header(lines):
    lines = list(with_line_comments(lines))
    # The top of the file: its license, its name, and what it is.
    top = []
    while lines and lines[0].startswith("//"):
        top.append(lines.pop(0))
    text = [body_of(line) for line in top if "SPDX-License" not in line and "Public header:" not in line]
    out = ["/// @file"] + ["///" + escaped(line) for line in text]
    column = None  # of the comment behind the member above
    for comment, line in blocks(lines):
        if comment:
            # The next lines of a comment behind a member.
            while comment and column is not None and comment[0].index("//") == column:
                out.append(" " * column + "///<" + escaped(body_of(comment.pop(0))))
            attached = bool(line.strip()) and not line.lstrip().startswith(("}", "#"))
            for each in comment:
                marks = "///" if attached and "NOLINT" not in each and "clang-format" not in each else "//"
                at = len(each) - len(each.lstrip())
                out.append(" " * at + marks + (escaped(body_of(each)) if marks == "///" else body_of(each)))
            column = None
            continue
        trailing = TRAILING.match(line)
        column = None
        if FORWARD.match(line):
            out.append(line.split("//")[0].rstrip())
        elif re.match(r"namespace \w*(internal|detail)\b.*{$", line):
            out += ["/// @cond", line]
        elif re.match(r"}\s+// namespace \w*(internal|detail)$", line):
            out += [line, "/// @endcond"]
        elif trailing and "NOLINT" not in trailing["text"] and '"' not in trailing["code"]:
            column = len(trailing["code"]) + len(trailing["gap"])
            out.append(f"{trailing['code']}{trailing['gap']}///< {escaped(trailing['text'])}")
        else:
            out.append(line)
    return out


def page(lines):
    """The page without pictures, and with links from where Doxygen writes its own."""
    inside = False  # a picture
    for line in lines:
        inside = inside or line == "<picture>"
        if inside:
            inside = line != "</picture>"
            continue

        def link(match):
            picture, text, target = match.groups()
            if picture:
                return ""
            if target.startswith("#"):
                return text
            return match[0] if "://" in target else f'<a href="../../../{target}">{text}</a>'

        yield line if line.startswith("    ") else LINK.sub(link, line)


HEADER = """\
// SPDX-License-Identifier: Apache-2.0
// Public header: <rewire/a.h>.
//
// Sizes: of what a < b.
#pragma once

struct Other;  // other.h

// Stands alone.

// Of a file. `x<y>` is code.
struct Sizes {
  int first = 1;  // in bytes
                  // of the file
  int second = 2;
};

namespace internal {
int hidden;
}  // namespace internal
/* In C,
 * two lines. */
int c; /* a value */
"""
AS_DOXYGEN_READS_IT = """\
/// @file
///
/// Sizes: of what a \\< b.
#pragma once

struct Other;

// Stands alone.

/// Of a file. `x<y>` is code.
struct Sizes {
  int first = 1;  ///< in bytes
                  ///< of the file
  int second = 2;
};

/// @cond
namespace internal {
int hidden;
}  // namespace internal
/// @endcond
/// In C,
/// two lines.
int c; ///< a value
"""


def self_test():
    made = "\n".join(header(HEADER.splitlines())) + "\n"
    assert made == AS_DOXYGEN_READS_IT, made
    made = list(page(["![picture](a.svg)[guide](docs/a.md#b), [site](https://a.b), [above](#c)", "<picture>", "  <img src=\"a.svg\">",
                      "</picture>", "    [code](d)"]))
    assert made == ['<a href="../../../docs/a.md#b">guide</a>, [site](https://a.b), above', "    [code](d)"], made
    print("comments: self-test passed")


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    path = pathlib.Path(sys.argv[1])
    lines = path.read_text(encoding="utf-8").splitlines()
    print("\n".join(page(lines) if path.suffix == ".md" else header(lines)))
    return None


if __name__ == "__main__":
    main()
