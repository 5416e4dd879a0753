#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""vm-bench's percentiles are those that HdrHistogram finds in the same latencies.

    hdr_histogram.py BIN      the folder of the tools; hdrhistogram must be installed (tests/tools/requirements)
"""
import json
import math
import pathlib
import subprocess
import sys
import tempfile

from hdrh.histogram import HdrHistogram

PROGRAM = """.kernel relu = "rewire.relu"
.func main(x: f32[2]) -> y: f32[2]
  %s = alloc_storage _, alignment=64, f32[2], cpu
  %y = alloc_tensor %s, _, f32[2]
  invoke_packed relu(%x, %y), outputs=1
  ret %y
.end
"""
SHARES = {"p50": 50_000, "p90": 90_000, "p99": 99_000, "p99_9": 99_900, "p99_99": 99_990}  # thousandths of a percent
HIGHEST = 2**42 - 1


def expected(samples):
    """What the same latencies give there. A percentile is asked for by its rank, as libraries round ranks differently."""
    histogram = HdrHistogram(1, HIGHEST, 3)
    for sample in samples:
        assert histogram.record_value(sample)
    found = {"count": len(samples), "min": min(samples), "max": max(samples)}
    for name, share in SHARES.items():
        rank = max(1, math.ceil(len(samples) * share / 100_000))
        found[name] = min(histogram.get_value_at_percentile(100 * rank / len(samples)), max(samples))
    return found


def main():
    bench = pathlib.Path(sys.argv[1]) / "vm-bench"
    loads = (["--rate", "20000"], ["--clients", "2"], ["--rate", "1e7"])  # in time, without pause, and too many
    with tempfile.TemporaryDirectory() as folder:
        model, samples = pathlib.Path(folder) / "model.asm", pathlib.Path(folder) / "samples.txt"
        model.write_text(PROGRAM, encoding="utf-8")
        for load in loads:
            command = [bench, model, "--duration", "50ms", "--json", "--samples", samples, *load]
            printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            latency = json.loads(printed)["loads"][0]["latency_ns"]
            values = [int(line) for line in samples.read_text(encoding="utf-8").split()]
            wanted = expected(values)
            given = {name: latency[name] for name in wanted}
            assert given == wanted, f"{' '.join(load)}: {given} given, {wanted} expected"
            assert math.isclose(latency["mean"], sum(values) / len(values), rel_tol=1e-9)
            print(f"hdr_histogram: {' '.join(load)}: {len(values)} latencies, equal percentiles")
    return 0


if __name__ == "__main__":
    sys.exit(main())
