# SPDX-License-Identifier: Apache-2.0
"""Where the time of a run went."""

import html
import json
from dataclasses import dataclass


@dataclass(frozen=True)
class KernelCall:
    """One call of a kernel. Times are nanoseconds; `start_ns` counts from the first run's start."""

    run: int
    name: str
    kernel: str
    node: str
    function: str
    pc: int
    start_ns: int
    duration_ns: int
    arguments: str


@dataclass(frozen=True)
class Row:
    """The calls of one node of the model, or of one kernel where the program has no notes. Times are of all runs."""

    name: str
    kernel: str
    calls: int
    total_ns: int
    share: float


def _duration(nanoseconds):
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if nanoseconds >= size:
            return f"{nanoseconds / size:.3g} {unit}"
    return f"{nanoseconds:.0f} ns"


class Profile:
    """The time of each kernel call of some runs. `str()` is a table, and notebooks show one.

    `calls` is the list of KernelCall, `runs` the duration of each run in nanoseconds.
    """

    def __init__(self, runs, calls):
        origin = runs[0][0]
        self._spans = [(start - origin, end - origin) for start, end in runs]
        self.runs = [end - start for start, end in runs]
        self.calls = [
            KernelCall(run, name, kernel, node, function, pc, start - origin, end - start, arguments)
            for run, name, kernel, node, function, pc, start, end, arguments in calls
        ]

    @property
    def total_ns(self):
        """The time of all runs."""
        return sum(self.runs)

    def rows(self):
        """One Row for each node and kernel, longest first; the last one is the time outside of kernels."""
        sums = {}
        for call in self.calls:
            entry = sums.setdefault((call.node or call.name, call.kernel), [0, 0])
            entry[0] += 1
            entry[1] += call.duration_ns
        total = max(1, self.total_ns)
        found = [Row(name, kernel, count, time, time / total) for (name, kernel), (count, time) in sums.items()]
        found.sort(key=lambda row: -row.total_ns)
        outside = max(0, self.total_ns - sum(row.total_ns for row in found))
        found.append(Row("(outside kernels)", "", len(self.runs), outside, outside / total))
        return found

    def to_pandas(self):
        """The calls as a pandas.DataFrame, one row each. Needs pandas."""
        import pandas

        return pandas.DataFrame([vars(call) for call in self.calls], columns=list(KernelCall.__dataclass_fields__))

    def to_perfetto(self, path=None):
        """The timeline in the Trace Event Format, which ui.perfetto.dev and chrome://tracing open.

        Returns the text, and writes it to `path` if that is given.
        """
        events = [{"name": "process_name", "ph": "M", "pid": 1, "tid": 1, "args": {"name": "rewire"}}]
        for index, (start, end) in enumerate(self._spans):
            events.append({"name": f"run {index}", "cat": "run", "ph": "X", "ts": start / 1e3, "dur": (end - start) / 1e3,
                           "pid": 1, "tid": 1, "args": {}})
        for call in self.calls:
            events.append({
                "name": call.name, "cat": "kernel", "ph": "X", "ts": call.start_ns / 1e3, "dur": call.duration_ns / 1e3,
                "pid": 1, "tid": 1,
                "args": {"kernel": call.kernel, "node": call.node, "function": call.function, "pc": call.pc,
                         "arguments": call.arguments}})
        text = json.dumps({"displayTimeUnit": "ns", "traceEvents": events})
        if path is not None:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        return text

    def __str__(self):
        table = [("name", "calls", "total", "share", "kernel")]
        table += [(row.name, str(row.calls), _duration(row.total_ns), f"{100 * row.share:.1f} %", row.kernel)
                  for row in self.rows()]
        widths = [max(len(line[i]) for line in table) for i in range(4)]
        return "\n".join(
            f"{line[0]:<{widths[0]}}  {line[1]:>{widths[1]}}  {line[2]:>{widths[2]}}  {line[3]:>{widths[3]}}  {line[4]}".rstrip()
            for line in table)

    def _repr_html_(self):
        cells = "".join(
            f"<tr><td>{html.escape(row.name)}</td><td>{row.calls}</td><td>{_duration(row.total_ns)}</td>"
            f"<td>{100 * row.share:.1f} %</td><td>{html.escape(row.kernel)}</td></tr>" for row in self.rows())
        return ("<table><thead><tr><th>name</th><th>calls</th><th>total</th><th>share</th><th>kernel</th></tr></thead>"
                f"<tbody>{cells}</tbody></table>")
