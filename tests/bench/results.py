#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the pages of docs/results from the figures that the benchmarks wrote.

    results.py                          write each docs/results/NAME.md, and the summary in docs/performance.md
    results.py --check                  fail if a page or the summary is not what the figures give
    results.py --take BENCH.json NAME   put the rows that a benchmark wrote (--json) into docs/results/NAME.json

A file NAME.json has "title", "machine", "command" (what to run to measure again), "about" (paragraphs), "columns" (title,
path into a row, format) and "rows" as the benchmark wrote them. Files with a "population" give a row of the summary:
geometric means over their rows, for each value of the field that "group" names. "first" names the ratios that were
measured before anybody had looked at these models.
"""

import argparse
import json
import pathlib
import statistics
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
RESULTS = ROOT / "docs" / "results"
SUMMARY = ROOT / "docs" / "performance.md"
BEGIN, END = "<!-- made by tests/bench/results.py -->", "<!-- end -->"
SUMMARY_COLUMNS = ["models", "threads", "runs", "ONNX Runtime", "OpenVINO", "the faster", "slowest"]


def at(row, path):
    """The value in nested dictionaries at a path such as ratio.latency.median; None where a part is missing."""
    for name in path.split("."):
        row = row.get(name) if isinstance(row, dict) else None
    return row


def text_of(value, form):
    if value is None:
        return "-"
    if form == "us":
        return f"{value / 1e3:,.1f}"
    if form == "yes":
        return "yes" if value else "no"
    if form == "range":
        return f"{min(value):.2f} .. {max(value):.2f}"
    return format(value, form)


def table(titles, rows):
    lines = [f"| {' | '.join(titles)} |", "|---" * len(titles) + "|"]
    return lines + [f"| {' | '.join(cells)} |" for cells in rows]


def page_of(result):
    lines = [f"# {result['title']}", ""]
    lines += ["This page is made from the figures in the JSON file beside it by `tests/bench/results.py`.", ""]
    lines += [f"    {result['command']}", "", f"Machine: {result['machine']}.", ""]
    for paragraph in result["about"]:
        lines += [paragraph, ""]
    titles = [title for title, _, _ in result["columns"]]
    lines += table(titles, [[text_of(at(row, path), form) for _, path, form in result["columns"]] for row in result["rows"]])
    return "\n".join(lines) + "\n"


def mean_text(rows, ratios, peer):
    values = [value for row in rows if (value := at(row, f"{ratios}.{peer}.median")) is not None]
    return f"{statistics.geometric_mean(values):.2f}" if values else "-"


def slowest_text(rows, ratios):
    """The largest of our times by the faster peer's; by the only peer where there is one."""
    for peer in ("faster", "openvino", "latency"):
        values = [value for row in rows if (value := at(row, f"{ratios}.{peer}.median")) is not None]
        if values:
            return f"{max(values):.2f}"
    return "-"


def summary_rows(result):
    groups = {}
    for row in result["rows"]:
        groups.setdefault(row.get("threads", 1), []).append(row)
    rounds = [("", "ratio")]
    if "first" in result:
        rounds = [(", at first sight", result["first"]), (", after mending what they showed", "ratio")]
    for suffix, ratios in rounds:
        for threads, rows in sorted(groups.items()):
            means = [mean_text(rows, ratios, peer) for peer in ("latency", "openvino", "faster")]
            yield [result["population"] + suffix, str(threads), str(len(rows)), *means, slowest_text(rows, ratios)]


def summary_of(results):
    rows = [row for result in results if "population" in result for row in summary_rows(result)]
    return "\n".join([BEGIN, *table(SUMMARY_COLUMNS, rows), END])


def with_summary(page, summary):
    begin, end = page.find(BEGIN), page.find(END)
    if begin < 0 or end < begin:
        raise SystemExit(f"{SUMMARY.relative_to(ROOT)}: the lines {BEGIN} and {END} are missing")
    return page[:begin] + summary + page[end + len(END):]


def take(path, name):
    """Rows that are not finite numbers would make a page that says nan; they are refused."""
    place = RESULTS / f"{name}.json"
    result = json.loads(place.read_text())
    taken = json.loads(path.read_text())
    result["rows"] = taken if isinstance(taken, list) else taken["cases"]
    place.write_text(written(result))


def written(result):
    """One column and one row on each line, so that a change of figures is read as such."""
    head = {key: value for key, value in result.items() if key not in ("columns", "rows")}
    text = json.dumps(head, indent=1, allow_nan=False)[:-2]
    for key in ("columns", "rows"):
        lines = ",\n".join(f"  {json.dumps(each, allow_nan=False)}" for each in result[key])
        text += f',\n "{key}": [\n{lines}\n ]'
    return text + "\n}\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; fail if something is not current")
    parser.add_argument("--take", nargs=2, metavar=("BENCH.json", "NAME"), help="put a benchmark's rows into a result")
    options = parser.parse_args()
    if options.take:
        take(pathlib.Path(options.take[0]), options.take[1])
    results = {path: json.loads(path.read_text()) for path in sorted(RESULTS.glob("*.json"), key=lambda path: path.stem)}
    pages = {path.with_suffix(".md"): page_of(result) for path, result in results.items()}
    pages[SUMMARY] = with_summary(SUMMARY.read_text(), summary_of(results.values()))
    stale = [path for path, text in pages.items() if not path.exists() or path.read_text() != text]
    stale += [path for path in RESULTS.glob("*.md") if path not in pages]
    for path in stale:
        if options.check:
            print(f"{path.relative_to(ROOT)} is not what the figures give; run tests/bench/results.py")
        elif path in pages:
            path.write_text(pages[path])
    return 1 if stale and options.check else 0


if __name__ == "__main__":
    sys.exit(main())
