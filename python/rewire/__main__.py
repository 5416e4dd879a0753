# SPDX-License-Identifier: Apache-2.0
"""python -m rewire COMMAND: the command line tools, with their options."""

from __future__ import annotations

import pathlib
import sys
from typing import Sequence

from rewire._native import _rewire

_COMMANDS = {
    "compile": ("vm-compile", "compile an ONNX model to an executable (.rwx)"),
    "run": ("vm-run", "run a model, compare and measure"),
    "inspect": ("vm-inspect", "show what an executable or a kernel library has"),
    "report": ("vm-run", "run a model and write a page about it, MODEL.html or the file of --report"),
    "debug": ("vm-debug", "step through a run"),
}


def _usage() -> str:
    lines = [f"  {command:<8}  {text} ({tool})" for command, (tool, text) in _COMMANDS.items()]
    return "\n".join(["usage: python -m rewire COMMAND ...", "", *lines, "",
                      "python -m rewire COMMAND --help lists the options of a command."])


def _refuse(why: str) -> int:
    print(f"rewire: error: {why}", file=sys.stderr)
    return 11  # as the tools have it for a wrong command line


def _report_arguments(arguments: Sequence[str]) -> list[str]:
    """The arguments of vm-run, with --report where it is not given."""
    if not arguments or arguments[0].startswith("-") or any(each.split("=")[0] == "--report" for each in arguments):
        return list(arguments)
    return [*arguments, "--report", pathlib.Path(arguments[0]).stem + ".html"]


def main(words: Sequence[str] | None = None) -> int:
    """Runs a command of the command line and returns its exit code."""
    given = list(sys.argv[1:] if words is None else words)
    if not given or given[0] in ("-h", "--help"):
        print(_usage())
        return 0
    if given[0] == "--version":
        print(f"rewire {vars(_rewire)['__version__']}")
        return 0
    if given[0] not in _COMMANDS:
        return _refuse(f"there is no command {given[0]!r}{_rewire._known_names('commands', given[0], _COMMANDS)}")
    tool, _ = _COMMANDS[given[0]]
    return _rewire._run_tool(tool, _report_arguments(given[1:]) if given[0] == "report" else given[1:])


if __name__ == "__main__":
    sys.exit(main())
