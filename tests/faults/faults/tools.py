# SPDX-License-Identifier: Apache-2.0
"""The faults of the tools."""

from .fault import Fault

TOOLS = ("tools_test",)

FUSED = ("fused_nodes_test",)

FAULTS = [
    Fault("tools", "the note of a fused chain has the nodes of all steps", "fuse_elementwise.cc",
          "«AddSteps(source, program.steps_of_nodes()[i], &note);»", "note = source;", FUSED),
    Fault("tools", "a kernel keeps the names of the nodes that it takes over", "edit.cc",
          "node->source = «JoinNotes(node->source, user->source)»;", "node->source", FUSED),
    Fault("tools", "a pattern that becomes one kernel keeps the names of its nodes", "sources.cc",
          "if (walk.complete()) node->source = «JoinNotes(walk.source(), node->source)»;", "node->source", FUSED),
    Fault("tools", "the node that makes NaN is the first whose steps leave NaN", "nan_maker.cc",
          "std::isnan(wrong[i]) && «std::isnan(elements[i])»", "true", FUSED),
    Fault("tools", "a kernel whose argument has NaN is not said to make it", "nan_maker.cc",
          "passes_nan_on_ || (is_read && «CountNan(**held) > 0»)", "false", FUSED),
    Fault("tools", "one call that is held up does not change what a place usually takes", "usual_times.cc",
          "return {«PercentilesOf(times).median», 0", "PercentilesOf(times).total / static_cast<double>(times.size())", TOOLS),
    Fault("tools", "no call is above the best that is known of the CPU", "run_facts.cc",
          "cpu.operations = «std::max(cpu.operations, 1e9 * site.work.operations / site.times.median)»;", "cpu.operations", TOOLS),
    Fault("tools", "one disturbed sample does not put all others into one row of a histogram", "histogram.cc",
          "«std::min(slow, 2 * samples[(samples.size() - 1) / 2])»", "slow", TOOLS),
    Fault("tools", "a request's latency counts from its arrival", "load.cc",
          "tally->Add(plan, called, «*intended», start, Clock::now());", "start", TOOLS),
    Fault("tools", "requests that no client was free for count with the time that they have waited", "load.cc",
          "++result.unserved;\n      «unserved.AddLatency(plan, waited);»", "", TOOLS),
    Fault("tools", "a percentile is never below the value of its rank", "latency_histogram.cc",
          "(count_ % kWhole * share + «kWhole - 1») / kWhole", "0", TOOLS),
    Fault("tools", "failed requests are in no latency", "load.cc",
          "++result.errors[message];\n      «return;»", "", TOOLS),
]
