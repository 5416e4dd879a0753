# SPDX-License-Identifier: Apache-2.0
"""The faults of the tools."""

from .fault import Fault

TOOLS = ("tools_test",)

FAULTS = [
    Fault("tools", "a request's latency counts from its arrival", "load.cc",
          "tally->Add(plan, called, «*intended», start, Clock::now());", "start", TOOLS),
    Fault("tools", "requests that no client was free for count with the time that they have waited", "load.cc",
          "++result.unserved;\n      «unserved.AddLatency(plan, waited);»", "", TOOLS),
    Fault("tools", "a percentile is never below the value of its rank", "latency_histogram.cc",
          "(count_ % kWhole * share + «kWhole - 1») / kWhole", "0", TOOLS),
    Fault("tools", "failed requests are in no latency", "load.cc",
          "++result.errors[message];\n      «return;»", "", TOOLS),
]
