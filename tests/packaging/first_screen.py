#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Takes the commands and programs of README.md's first screen, as they are printed, so that tests run them.

    first_screen.py FOLDER

Writes into FOLDER: main.cc and main.py, the programs; export.py, the line for PyTorch; and commands.sh, whose functions are called by what
they are for: install_python, install_debian, install_sources, compile_model, build and report. Fails if the screen lacks one of these.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
BEGIN, END = "<!-- first screen", "<!-- end of the first screen -->"
# What a command begins with, and what its function is called.
COMMANDS = {
    "pip install ": "install_python",
    "sudo apt install ": "install_debian",
    "cmake --install ": "install_sources",
    "vm-compile ": "compile_model",
    "g++ ": "build",
    "vm-run ": "report",
}


def screen():
    text = (ROOT / "README.md").read_text()
    return text[text.index(BEGIN):text.index(END)]


def blocks(text, language):
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def commands(text):
    """The function of each command, and its line without the comment."""
    lines = [line.split("#")[0].strip() for block in blocks(text, "sh") for line in block.splitlines()]
    lines += re.findall(r"(?:`|<code>)([^`<]+)(?:`|</code>)", re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL))
    found = {}
    for line in lines:
        for begin, name in COMMANDS.items():
            if line.startswith(begin):
                found[name] = line.replace("\n", " ")
    return found


def main(folder):
    text = screen()
    (program,) = blocks(text, "cpp")
    export, python = blocks(text, "python")
    found = commands(text)
    missing = set(COMMANDS.values()) - set(found)
    if missing:
        raise SystemExit(f"first_screen.py: README.md's first screen has no command for: {', '.join(sorted(missing))}")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "main.cc").write_text(program)
    (folder / "main.py").write_text(python)
    (folder / "export.py").write_text(export)
    (folder / "commands.sh").write_text("".join(f"{name}() {{ {line}; }}\n" for name, line in sorted(found.items())))
    print(f"first screen: {len(found)} commands, {len(program.splitlines())} lines of C++, {len(python.splitlines())} of Python")


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        print(__doc__)
        sys.exit(2)
    main(pathlib.Path(sys.argv[1]))
