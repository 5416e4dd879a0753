// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/run/metrics.h"

#include <cstdio>
#include <functional>
#include <string_view>

namespace rewire::serve {
namespace {

// A label's value: backslash, quote and line end are escaped.
std::string Escaped(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\n') {
      escaped += "\\n";
      continue;
    }
    if (c == '\\' || c == '"') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

struct Metric {
  const char* name;
  const char* type;
  const char* help;
  std::string (*value)(const ModelStatistics&);
};

std::string Seconds(std::uint64_t ns) { return std::to_string(static_cast<double>(ns) * 1e-9); }
// With digits for a few nanoseconds.
std::string Seconds(double ns) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", ns * 1e-9);
  return text;
}

constexpr Metric kMetrics[] = {
    {"rewire_requests_success_total", "counter", "Requests that were answered.",
     [](const ModelStatistics& s) { return std::to_string(s.success.count); }},
    {"rewire_requests_failed_total", "counter",
     "Requests that ended with an error, those of full queues included.",
     [](const ModelStatistics& s) { return std::to_string(s.fail.count); }},
    {"rewire_requests_cancelled_total", "counter", "Requests that clients cancelled.",
     [](const ModelStatistics& s) { return std::to_string(s.cancel.count); }},
    {"rewire_requests_rejected_total", "counter", "Requests that came when the queue was full.",
     [](const ModelStatistics& s) { return std::to_string(s.rejected); }},
    {"rewire_inferences_total", "counter", "Rows of batches that were computed.",
     [](const ModelStatistics& s) { return std::to_string(s.inference_count); }},
    {"rewire_runs_total", "counter", "Runs of the model, each of one batch.",
     [](const ModelStatistics& s) { return std::to_string(s.execution_count); }},
    {"rewire_request_seconds_total", "counter", "Time of answered requests, from their arrival.",
     [](const ModelStatistics& s) { return Seconds(s.success.ns); }},
    {"rewire_queue_seconds_total", "counter", "Time that requests have waited.",
     [](const ModelStatistics& s) { return Seconds(s.queue.ns); }},
    {"rewire_compute_seconds_total", "counter", "Time of runs, counted for each request of a batch.",
     [](const ModelStatistics& s) { return Seconds(s.compute_infer.ns); }},
    {"rewire_batches_declined_total", "counter",
     "Runs of one request while others waited, because a batch would take longer.",
     [](const ModelStatistics& s) { return std::to_string(s.batching.declined); }},
    {"rewire_row_alone_seconds", "gauge", "Time of a row that runs alone, as last compared; 0: not known.",
     [](const ModelStatistics& s) { return Seconds(s.batching.alone_row_ns); }},
    {"rewire_row_batched_seconds", "gauge", "Time of a row of a batch, as last compared; 0: not known.",
     [](const ModelStatistics& s) { return Seconds(s.batching.batch_row_ns); }},
    {"rewire_requests_waiting", "gauge", "Requests in the queue.",
     [](const ModelStatistics& s) { return std::to_string(s.waiting); }},
    {"rewire_sequences", "gauge", "Sequences whose state is kept.",
     [](const ModelStatistics& s) { return std::to_string(s.sequences.active); }},
    {"rewire_sequence_bytes", "gauge", "Bytes of the state of sequences.",
     [](const ModelStatistics& s) { return std::to_string(s.sequences.bytes); }},
    {"rewire_sequences_started_total", "counter", "Sequences that have begun.",
     [](const ModelStatistics& s) { return std::to_string(s.sequences.started); }},
    {"rewire_sequences_evicted_total", "counter", "Sequences that others have taken the place or memory of.",
     [](const ModelStatistics& s) { return std::to_string(s.sequences.evicted); }},
    {"rewire_sequences_timed_out_total", "counter", "Sequences that ended because no step came.",
     [](const ModelStatistics& s) { return std::to_string(s.sequences.timed_out); }},
    {"rewire_prefix_bytes", "gauge", "Bytes of state that is kept of prompts.",
     [](const ModelStatistics& s) { return std::to_string(s.prefixes.bytes); }},
    {"rewire_prefix_blocks_evicted_total", "counter",
     "Blocks of prompts that others have taken the memory of.",
     [](const ModelStatistics& s) { return std::to_string(s.prefixes.evicted); }},
    {"rewire_prompt_tokens_total", "counter", "Tokens of prompts that may begin with state that is kept.",
     [](const ModelStatistics& s) { return std::to_string(s.prefixes.prompt_tokens); }},
    {"rewire_prompt_tokens_reused_total", "counter", "Of these, tokens whose state was kept.",
     [](const ModelStatistics& s) { return std::to_string(s.prefixes.reused_tokens); }},
};

}  // namespace

void AppendMetrics(const std::vector<ModelStatistics>& statistics, std::string* text) {
  for (const Metric& metric : kMetrics) {
    const std::string name = metric.name;
    *text += "# HELP " + name + " " + metric.help + "\n# TYPE " + name + " " + metric.type + "\n";
    for (const ModelStatistics& one : statistics) {
      *text += name + "{model=\"" + Escaped(one.name) + "\",version=\"" + Escaped(one.version) + "\"} " +
               metric.value(one) + "\n";
    }
  }
}

}  // namespace rewire::serve
