#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a page of the documentation: what a reader would type, in the order of the page.

    run_page.py PAGE FOLDER

Of the fenced blocks of PAGE, one whose first line is ``` and a language and a file's name is written to that file in FOLDER. A
block of `sh` is run there, and a block of `text` behind it is what it must print: each line must stand in its output. In it,
`...` stands for anything. A block of `python` without a name is run, too, with all that earlier ones have defined.
"""

import argparse
import pathlib
import re
import subprocess
import sys

BLOCK = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def expect(page, expected, output):
    for line in expected.splitlines():
        pattern = ".*".join(re.escape(part) for part in line.split("..."))
        if not re.search(f"^{pattern}$", output, re.MULTILINE):
            raise SystemExit(f"{page}: the page says '{line}'; printed was:\n{output}")


def run(page, folder):
    """Returns the number of blocks. The first that fails ends the program and is named."""
    blocks = BLOCK.findall(pathlib.Path(page).read_text(encoding="utf-8"))
    output = None
    python = ""
    for language, name, content in blocks:
        if name:
            (folder / name).write_text(content, encoding="utf-8")
        elif language == "text":
            expect(page, content, output)
        elif language in ("sh", "python"):
            if language == "sh":
                command = ["bash", "-euo", "pipefail", "-c", content]
            else:
                # What earlier blocks print is left out, so that `text` is about this one.
                earlier = f"import contextlib, io\nwith contextlib.redirect_stdout(io.StringIO()):\n    exec({python!r})\n"
                command = [sys.executable, "-c", f"{earlier}exec({content!r})"]
                python += content
            done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
            output = done.stdout
            if done.returncode != 0:
                raise SystemExit(f"{page}: this block failed:\n{content}\n{output}")
        else:
            raise SystemExit(f"{page}: a block of {language} without a file's name is neither written nor run")
    return len(blocks)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("page", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    options = parser.parse_args()
    count = run(options.page, options.folder)
    if count == 0:
        raise SystemExit(f"{options.page}: there is no block to run")
    print(f"{options.page.name}: {count} blocks written and run as they stand")


if __name__ == "__main__":
    main()
