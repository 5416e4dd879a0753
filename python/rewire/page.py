# SPDX-License-Identifier: Apache-2.0
"""Tables as HTML, for notebooks in light and dark."""

from __future__ import annotations

import html
from typing import Sequence

_TABLE = "border-collapse:collapse;font:13px/1.5 ui-monospace,monospace"
_CELL = "padding:2px 12px 2px 0;text-align:{};white-space:nowrap;border:0;background:none"


def table(caption: str, lines: Sequence[Sequence[str]], shares: Sequence[float] = ()) -> str:
    """A table of texts: the first line has the names of the columns. With `shares`, each row has a bar as long as its share."""
    rows = []
    for number, line in enumerate(lines):
        tag = "td" if number else "th"
        cells = []
        for column, text in enumerate(line):
            side = "left" if column in (0, len(line) - 1) else "right"
            style = _CELL.format(side)
            if number and shares and column == 0:
                end = f"{100 * shares[number - 1]:.1f}%"
                style += f";background:linear-gradient(to right,rgba(64,128,255,.25) {end},transparent {end})"
            cells.append(f"<{tag} style=\"{style}\">{html.escape(text)}</{tag}>")
        rows.append(f"<tr style=\"background:none\">{''.join(cells)}</tr>")
    return (f"<table style=\"{_TABLE}\"><caption style=\"text-align:left\">{html.escape(caption)}</caption>"
            f"<thead>{rows[0]}</thead><tbody>{''.join(rows[1:])}</tbody></table>")
