#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws the chart of README.md from the figures of docs/results: docs/images/speed-light.svg and speed-dark.svg.

    speed_chart.py            writes both
    speed_chart.py --check    fails if one of them is not what the figures give

A bar is the geometric mean over the rows of one file, one thread: Rewire's time by ONNX Runtime's. A pale bar is the figure that was
measured before anybody had looked at these models.
"""

import json
import pathlib
import statistics
import sys

import results

ROOT = pathlib.Path(__file__).resolve().parents[2]
RESULTS = ROOT / "docs" / "results"
IMAGES = ROOT / "docs" / "images"

# The file, the field that has its ratios, and what the bar is called.
BARS = [
    ("models", "ratio", "58 models of the catalogue"),
    ("models-int8", "ratio", "the same, quantized to int8"),
    ("unseen-1", "first_ratio", "34 architectures, at first sight"),
    ("unseen-1", "ratio", "after mending what they showed"),
    ("unseen-2", "first_ratio", "26 more, at first sight"),
    ("unseen-2", "ratio", "after mending what they showed"),
]
COLORS = {
    "light": {"text": "#1f2328", "quiet": "#59636e", "bar": "#0969da", "track": "#d1d9e0", "on bar": "#ffffff"},
    "dark": {"text": "#f0f6fc", "quiet": "#9198a1", "bar": "#4493f8", "track": "#3d444d", "on bar": "#0d1117"},
}
WIDTH, LEFT, RIGHT, ROW, TOP = 760, 250, 60, 30, 54


def mean(name, field):
    """The geometric mean over the rows of one thread."""
    rows = json.loads((RESULTS / f"{name}.json").read_text())["rows"]
    values = [results.at(row, f"{field}.latency.median") for row in rows if row.get("threads", 1) == 1]
    return statistics.geometric_mean(value for value in values if value is not None)


def chart(colors):
    height = TOP + ROW * len(BARS) + 34
    scale = WIDTH - LEFT - RIGHT
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        'font-family="-apple-system, Segoe UI, Helvetica, Arial, sans-serif" font-size="14">',
        "<title>Time of Rewire relative to ONNX Runtime, one thread: less is better</title>",
        f'<text x="0" y="18" font-size="16" font-weight="600" fill="{colors["text"]}">Time relative to ONNX Runtime, one thread</text>',
        f'<text x="0" y="38" fill="{colors["quiet"]}">Less is better. Geometric means of runs on an Intel Xeon.</text>',
    ]
    for index, (name, field, title) in enumerate(BARS):
        value = mean(name, field)
        strength = 1 if field == "ratio" else 0.7
        y = TOP + ROW * index
        length = value * scale
        parts += [
            f'<text x="0" y="{y + 16}" fill="{colors["text"]}">{title}</text>',
            f'<rect x="{LEFT}" y="{y + 2}" width="{scale}" height="20" rx="3" fill="{colors["track"]}" opacity="0.45"/>',
            f'<rect x="{LEFT}" y="{y + 2}" width="{length:.1f}" height="20" rx="3" fill="{colors["bar"]}" opacity="{strength}"/>',
            f'<text x="{LEFT + length - 8:.1f}" y="{y + 17}" text-anchor="end" font-weight="600" fill="{colors["on bar"]}">{value:.2f}</text>',
        ]
    end, bottom = LEFT + scale, TOP + ROW * len(BARS) + 4
    parts += [
        f'<line x1="{end}" y1="{TOP - 4}" x2="{end}" y2="{bottom}" stroke="{colors["quiet"]}" stroke-dasharray="3 3"/>',
        f'<text x="{WIDTH}" y="{bottom + 18}" text-anchor="end" fill="{colors["quiet"]}">1: ONNX Runtime</text>',
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def main(arguments):
    if arguments not in ([], ["--check"]):
        print(__doc__)
        return 2
    stale = 0
    for theme, colors in COLORS.items():
        path = IMAGES / f"speed-{theme}.svg"
        text = chart(colors)
        if arguments and (not path.exists() or path.read_text() != text):
            print(f"{path.relative_to(ROOT)}: is not what docs/results gives; run tests/bench/speed_chart.py")
            stale += 1
        elif not arguments:
            path.write_text(text)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
