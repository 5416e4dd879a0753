# SPDX-License-Identifier: Apache-2.0
"""Where the time of a run went."""

from __future__ import annotations

import json
import os
import statistics
from dataclasses import dataclass
from typing import Any, Sequence, Tuple

from rewire import page
from rewire._native import _rewire

Call = Tuple[int, str, str, str, str, int, int, int, str]
"""A call as the extension gives it: run, name, kernel, node, function, pc, start, end, arguments."""


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
    """The calls of one node of the model, or of one kernel where the program has no notes.

    `run_ns` is the median over the runs of what its calls take in a run, so that a run which something else disturbed
    does not count. `share` is the part of it in the sum of all rows. `fastest_ns` and `slowest_ns` are the extremes.
    `total_ns` is the time of all runs.
    """

    name: str
    kernel: str
    calls: int
    total_ns: int
    run_ns: int
    fastest_ns: int
    slowest_ns: int
    share: float


def _duration(nanoseconds: float) -> str:
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if nanoseconds >= size:
            return f"{nanoseconds / size:.3g} {unit}"
    return f"{nanoseconds:.0f} ns"


class Profile:
    """The time of each kernel call of some runs. `str()` is a table, and notebooks show one.

    `calls` is the list of KernelCall, `runs` the duration of each run in nanoseconds.
    """

    def __init__(self, runs: Sequence[tuple[int, int]], calls: Sequence[Call]) -> None:
        origin = runs[0][0]
        self._spans = [(start - origin, end - origin) for start, end in runs]
        self.runs = [end - start for start, end in runs]
        self.calls = [
            KernelCall(run, name, kernel, node, function, pc, start - origin, end - start, arguments)
            for run, name, kernel, node, function, pc, start, end, arguments in calls
        ]

    @property
    def total_ns(self) -> int:
        """The time of all runs."""
        return sum(self.runs)

    @property
    def disturbed(self) -> list[int]:
        """The runs that took more than 1.5 times the median: something else had the processor, or memory was new."""
        return _rewire._usual_times(self.runs, [])[2]

    def rows(self) -> list[Row]:
        """One Row for each node and kernel, the longest `run_ns` first; the last one is the time outside of kernels."""
        times: dict[tuple[str, str], list[int]] = {}
        counts: dict[tuple[str, str], int] = {}
        for call in self.calls:
            key = (call.node or call.name, call.kernel)
            counts[key] = counts.get(key, 0) + 1
            times.setdefault(key, [0] * len(self.runs))[call.run] += call.duration_ns
        usual, ranked, _ = _rewire._usual_times(self.runs, list(times.values()))
        rows = []
        for (key, each), (run_ns, share, fastest, slowest) in zip(times.items(), usual):
            rows.append(Row(*key, counts[key], sum(each), int(run_ns), fastest, slowest, share))
        run_ns, share, fastest, slowest = usual[-1]
        outside = max(0, self.total_ns - sum(row.total_ns for row in rows))
        last = Row("(outside kernels)", "", len(self.runs), outside, int(run_ns), fastest, slowest, share)
        return [rows[place] for place in ranked] + [last]

    def to_pandas(self) -> Any:
        """The calls as a pandas.DataFrame, one row each. Needs pandas."""
        import pandas  # type: ignore[import-untyped, unused-ignore]

        return pandas.DataFrame([vars(call) for call in self.calls], columns=list(KernelCall.__dataclass_fields__))

    def to_perfetto(self, path: str | os.PathLike[str] | None = None) -> str:
        """The timeline in the Trace Event Format, which ui.perfetto.dev and chrome://tracing open.

        Returns the text, and writes it to `path` if that is given.
        """
        events: list[dict[str, Any]] = [{"name": "process_name", "ph": "M", "pid": 1, "tid": 1, "args": {"name": "rewire"}}]
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

    def _summary(self) -> str:
        """One line: how many runs, how long, and which were disturbed."""
        text = f"{len(self.runs)} runs, median {_duration(statistics.median(self.runs))}" if len(self.runs) > 1 else (
            f"1 run of {_duration(self.runs[0])}")
        found = self.disturbed
        return f"{text}, {len(found)} disturbed (up to {_duration(max(self.runs))})" if found else text

    def _table(self) -> list[tuple[str, ...]]:
        head: tuple[str, ...] = ("name", "calls", "a run", "fastest", "slowest", "share", "kernel")
        return [head, *(
            (row.name, str(row.calls), _duration(row.run_ns), _duration(row.fastest_ns), _duration(row.slowest_ns),
             f"{100 * row.share:.1f} %", row.kernel) for row in self.rows())]

    def __str__(self) -> str:
        table = self._table()
        widths = [max(len(line[i]) for line in table) for i in range(len(table[0]))]
        lines = ["  ".join([line[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(line[1:-1], widths[1:])),
                            line[-1]]).rstrip() for line in table]
        return "\n".join([self._summary(), *lines])

    def __repr__(self) -> str:
        return f"<rewire.Profile of {self._summary()}, {len(self.calls)} kernel calls>"

    def _repr_html_(self) -> str:
        return page.table(self._summary(), self._table(), [row.share for row in self.rows()])
