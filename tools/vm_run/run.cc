// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/vm_run/run.h"

#include <fmt/format.h>

#include <cstdio>
#include <limits>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "rewire/base/array.h"
#include "rewire/base/atomic_file.h"
#include "rewire/executable_format/instruction_text.h"
#include "rewire/tools/against/against.h"
#include "rewire/tools/inspect/listing.h"
#include "rewire/tools/io/cli.h"
#include "rewire/tools/io/interrupt.h"
#include "rewire/tools/io/log.h"
#include "rewire/tools/io/name_map.h"
#include "rewire/tools/io/progress.h"
#include "rewire/tools/io/style.h"
#include "rewire/tools/io/units.h"
#include "rewire/tools/measure/histogram.h"
#include "rewire/tools/measure/profile.h"
#include "rewire/tools/measure/resident.h"
#include "rewire/tools/measure/statistics.h"
#include "rewire/tools/record/call_record.h"
#include "rewire/tools/record/new_folder.h"
#include "rewire/tools/record/value_dump.h"
#include "rewire/tools/report/report.h"
#include "rewire/tools/run/expectations.h"
#include "rewire/tools/run/link_model.h"
#include "rewire/tools/run/observers.h"
#include "rewire/tools/run/open_remote.h"
#include "rewire/tools/run/output_plans.h"
#include "rewire/tools/run/outputs.h"
#include "rewire/tools/run/state_files.h"
#include "rewire/tools/run/trace.h"
#include "rewire/vm/vm.h"

namespace rewire::tools {
namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

std::int64_t Nanoseconds(Clock::time_point time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

class Runner {
 public:
  explicit Runner(const RunOptions& options)
      : options_(options), profiler_(!options.timeline.empty() || !options.report.empty()) {}

  Result<int> Run();
  // After Run: what becomes of its result where it repeats a recorded call.
  Result<int> CompareWithRecord(const RecordedCall& call, Result<int> exit_code);
  const Json& json() const { return json_; }

 private:
  Status Execute(VirtualMachine* vm, std::uint32_t function);
  Status Invoke(VirtualMachine* vm, std::uint32_t function, std::int64_t* nanoseconds);
  Status Report(const VirtualMachine& vm, std::uint32_t function, const MappedOutputs& mapped, bool* equal);
  Result<int> RunAgainst(VirtualMachine* vm, std::uint32_t function, const std::vector<Value>& inputs);
  void ReportTimes(const VirtualMachine& vm);
  Status ReportProfile(const Module& module);
  // Writes the record, if one is kept.
  Status FinishRecord(const Status& outcome);
  Status FinishDump(ValueDump* dump, const std::string& function, const Status& invoked);
  // More than one if times are measured.
  std::uint32_t MostRuns() const {
    const bool endless = options_.duration && options_.repeat == 1;
    return endless ? std::numeric_limits<std::uint32_t>::max() : options_.repeat;
  }
  Tolerance TolerancesGiven() const {
    const Tolerance usual;
    const bool none = !options_.relative && !options_.absolute;
    return {options_.relative.value_or(usual.relative), options_.absolute.value_or(usual.absolute),
            none && !options_.replay.empty()};
  }
  void Say(const std::string& text) const {
    if (!options_.json) fmt::print("{}", text);
  }
  void Wrote(const std::string& path) {
    if (!options_.json) Tell(fmt::format("wrote {}\n", path));
    json_["written"].push_back(path);
  }
  void Trace(const TraceEntry& entry);

  const RunOptions& options_;
  Profiler profiler_;
  std::error_code cannot_print_;  // of the trace
  std::vector<std::int64_t> times_;
  std::int64_t load_time_ = 0;         // nanoseconds to open and link
  std::uint64_t resident_before_ = 0;  // bytes, before either
  std::uint64_t resident_peak_ = 0;    // bytes, by the end of the last run
  std::optional<CallRecord> record_;
  bool executed_ = false;  // the function was called
  Json json_ = Json::object();
};

void Runner::Trace(const TraceEntry& entry) {
  if (!options_.json) {
    try {
      fmt::print("{}\n", TraceText(entry));
    } catch (const std::system_error& error) {
      cannot_print_ = error.code();
      throw;  // ends the run
    }
    return;
  }
  Json operands = Json::object();
  for (const TraceEntry::Operand& operand : entry.operands) operands[operand.name] = operand.holds;
  json_["trace"].push_back({{"function", entry.function},
                            {"pc", entry.pc},
                            {"depth", entry.depth},
                            {"text", entry.text},
                            {"operands", std::move(operands)}});
}

Status Runner::Invoke(VirtualMachine* vm, std::uint32_t function, std::int64_t* nanoseconds) {
  const Clock::time_point start = Clock::now();
  if (options_.deadline) vm->SetDeadline(start + *options_.deadline);
  Status invoked = vm->TryInvoke(function);
  if (cannot_print_) return Fail(StatusCode::kIo, "cannot write standard output: " + cannot_print_.message());
  const Clock::time_point end = Clock::now();
  profiler_.AddRun(vm->program().executable().module().functions[function].name, Nanoseconds(start),
                   Nanoseconds(end));
  *nanoseconds = Nanoseconds(end) - Nanoseconds(start);
  return invoked;
}

Status Runner::Execute(VirtualMachine* vm, std::uint32_t function) {
  Tracer tracer([this](const TraceEntry& entry) { Trace(entry); });
  std::vector<Observer*> wanted;
  if (options_.trace) wanted.push_back(&tracer);
  if (options_.profile || !options_.timeline.empty() || !options_.report.empty())
    wanted.push_back(&profiler_);
  std::optional<ValueDump> dump;
  if (!options_.dump_values.empty()) wanted.push_back(dump.emplace(options_.dump_values, vm).observer());
  const bool observes = !wanted.empty();
  Observers observers(std::move(wanted));

  if (MostRuns() > 1) {
    for (std::uint32_t i = 0; i < options_.warmup; ++i) {
      if (options_.deadline) vm->SetDeadline(Clock::now() + *options_.deadline);
      if (Status invoked = vm->TryInvoke(function); !invoked) return invoked;
    }
  }
  // Every change of the VM ends a recording.
  if (observes) vm->SetObserver(&observers);
  const CatchInterrupts caught;
  const CancelOnInterrupt cancel(vm, 1);
  const std::uint32_t most = MostRuns();
  const Clock::time_point last =
      Clock::now() + options_.duration.value_or(std::chrono::nanoseconds::max() / 2);
  Progress progress("run", IsQuiet() || options_.duration ? 0 : most);
  Status invoked;
  for (std::uint32_t i = 0; i < most && invoked && (i == 0 || !options_.duration || Clock::now() < last);
       ++i) {
    progress.Show(i);
    // An interrupt between two runs cancels neither.
    if (InterruptCount() > 0) {
      invoked = Fail(StatusCode::kCancelled, fmt::format("interrupted after {} runs", i));
      break;
    }
    std::int64_t nanoseconds = 0;
    invoked = Invoke(vm, function, &nanoseconds);
    if (invoked) times_.push_back(nanoseconds);
  }
  if (options_.record_device) json_["recorded_device"] = vm->recorded();
  vm->SetObserver(nullptr);
  resident_peak_ = ResidentMemory().peak;
  return dump ? FinishDump(&*dump, vm->program().executable().module().functions[function].name, invoked)
              : invoked;
}

Status Runner::FinishDump(ValueDump* dump, const std::string& function, const Status& invoked) {
  if (!dump->status()) return dump->status();
  if (Status written = dump->WriteIndex(options_.file, function, static_cast<bool>(invoked)); !written)
    return written;
  json_["dumped"] = {{"folder", options_.dump_values}, {"files", dump->files()}};
  if (!options_.json) Tell(fmt::format("wrote {} values to {}\n", dump->files(), options_.dump_values));
  if (!dump->first_nan().empty()) {
    json_["first_nan"] = dump->first_nan();
    if (!options_.json) Tell(dump->first_nan() + "\n");
  }
  return invoked;
}

Status Runner::FinishRecord(const Status& outcome) {
  if (!record_) return {};
  if (Status written = record_->Finish(outcome); !written) return written;
  json_["recorded"] = options_.record;
  if (!options_.json) Tell(fmt::format("recorded the call in {}\n", options_.record));
  return {};
}

Result<int> Runner::CompareWithRecord(const RecordedCall& call, Result<int> exit_code) {
  json_["replay"] = {{"folder", options_.replay}};
  json_["replay"]["changed"] = ChangedFiles(call);
  for (const std::string& file : ChangedFiles(call))
    Say(fmt::format("{} has changed since the call was recorded\n", file));
  if (call.error.empty() || !executed_) return exit_code;
  const bool same = !exit_code && exit_code.error().message() == call.error;
  json_["replay"]["error"] = {{"recorded", call.error}, {"equal", same}};
  if (!exit_code) json_["replay"]["error"]["given"] = exit_code.error().message();
  Say(same        ? fmt::format("fails as the recorded call did: {}\n", call.error)
      : exit_code ? fmt::format("does not fail; the recorded call did: {}\n", call.error)
                  : fmt::format("fails in another way: {}\nthe recorded call: {}\n",
                                exit_code.error().message(), call.error));
  return same ? 0 : kExitNo;
}

Status Runner::ReportProfile(const Module& module) {
  if (options_.profile) {
    const std::vector<Profiler::Row> rows = profiler_.Rows();
    Say(fmt::format("profile: {}\n", RunsText(profiler_.run_times())) + ProfileText(rows));
    json_["profile"] = ProfileJson(rows);
    if (const std::vector<Profiler::Row> nodes = profiler_.NodeRows(); !nodes.empty()) {
      Say("by node of the model:\n" + ProfileText(nodes));
      json_["profile_nodes"] = ProfileJson(nodes);
    }
  }
  if (options_.timeline.empty()) return {};
  // Names come from files and may hold any bytes; JSON wants UTF-8.
  const std::string text = profiler_.Timeline(module, "vm-run " + options_.file)
                               .dump(-1, ' ', false, Json::error_handler_t::replace) +
                           "\n";
  const Span<const std::byte> bytes(reinterpret_cast<const std::byte*>(text.data()), text.size());
  if (Status written = WriteFileAtomically(options_.timeline, bytes); !written) return written;
  Wrote(options_.timeline);
  return {};
}

Status Runner::Report(const VirtualMachine& vm, std::uint32_t index, const MappedOutputs& mapped,
                      bool* equal) {
  const Function& function = vm.program().executable().module().functions[index];
  Result<std::vector<Output>> outputs = CollectOutputs(vm, function);
  if (!outputs) return Forward(outputs);
  if (record_) {
    if (Status kept = record_->AddOutputs(*outputs); !kept) return kept;
  }
  if (Status recorded = FinishRecord({}); !recorded) return recorded;
  const Result<std::vector<OutputComparison>> comparisons =
      CompareOutputs(function, options_.expects, TolerancesGiven(), &*outputs, options_.replay);
  if (!comparisons) return Forward(comparisons);
  const Result<std::vector<std::string>> written =
      WriteOutputs(function, options_.outputs, mapped, &*outputs);
  if (!written) return Forward(written);

  json_["function"] = function.name;
  json_["outputs"] = Json::array();
  for (const Output& output : *outputs) {
    json_["outputs"].push_back(OutputJson(output));
    // Who measures wants the times, and --quiet leaves out what is not asked for.
    if (!output.used && !output.is_list && !IsQuiet())
      Say(MostRuns() > 1 ? OutputHead(output) : OutputText(output));
    const std::uint64_t count = output.tensor ? CountNan(*output.tensor) : 0;
    if (count > 0) {
      json_["outputs"].back()["nan"] = count;
      Say(fmt::format("{}: {} NaN; `catch nan` of vm-debug stops where the first is made\n", output.name,
                      count));
    }
  }
  for (const auto& output : mapped) {
    const Result<OutputReport> report = vm.TryOutputReport(OutputHandle{index, output->leaf()});
    if (report) json_["outputs"][output->leaf()]["in_place"] = !report->copied;
  }
  for (const std::string& path : *written) Wrote(path);
  for (const OutputComparison& entry : *comparisons) {
    *equal = *equal && entry.comparison.equal();
    json_["comparisons"].push_back(ComparisonJson(entry));
    Say(fmt::format("{}: {}\n", entry.output, ComparisonText(entry.comparison, entry.expected)));
  }
  ReportTimes(vm);
  return ReportProfile(vm.program().executable().module());
}

void Runner::ReportTimes(const VirtualMachine& vm) {
  const Percentiles times = PercentilesOf(times_);
  json_["resident"] = {{"before_load_bytes", resident_before_}, {"peak_bytes", resident_peak_}};
  json_["timing"] = {{"load_ns", load_time_},         {"runs", times.count},
                     {"min_ns", times.minimum},       {"median_ns", times.median},
                     {"p90_ns", times.p90},           {"p99_ns", times.p99},
                     {"peak_bytes", vm.bytes_peak()}, {"disturbed", UsualTimesOf(times_, {}).disturbed}};
  if (MostRuns() > 1) {
    Say(fmt::format("loaded in {}\n", DurationText(static_cast<double>(load_time_))));
    Say(fmt::format("{} runs after {} to warm up: median {}, p90 {}, p99 {}, fastest {}; at most {} held\n",
                    times.count, options_.warmup, DurationText(times.median), DurationText(times.p90),
                    DurationText(times.p99), DurationText(times.minimum), BytesText(vm.bytes_peak())));
  }
  if (options_.histogram) {
    const std::vector<HistogramRow> rows = HistogramOf(times_);
    for (const HistogramRow& row : rows) {
      json_["histogram"].push_back({{"from_ns", row.from}, {"to_ns", row.to}, {"count", row.count}});
    }
    Say(HistogramText(rows, TakesUnicode()));
  }
}

Result<int> Runner::RunAgainst(VirtualMachine* vm, std::uint32_t function, const std::vector<Value>& inputs) {
  const Result<AgainstReport> report =
      CompareAgainst(vm, function, {inputs.data(), inputs.size()},
                     {options_.against, options_.python, options_.relative, options_.absolute});
  if (!report) return Forward(report);
  Say(report->text);
  json_["against"] = report->json;
  return report->equal ? 0 : kExitNo;
}

Result<int> Runner::Run() {
  json_["file"] = options_.file;
  resident_before_ = ResidentMemory().now;
  const Clock::time_point start = Clock::now();
  OpenOptions open;
  open.verify_data = options_.verify_data;
  Result<OpenedModel> model =
      OpenModelOrRemote(options_.file, options_.parameters, open, options_.model, options_.kernels);
  if (!model) return Forward(model);
  if (Status named = RestoreNames(options_.map, &*model); !named) return Forward(named);
  const Module& module = model->executable.module();
  if (options_.list) {
    Say(InterfaceText(module));
    json_.update(ListingJson(module));
    return 0;
  }
  const Result<Program> program =
      LinkModel(*model, options_.file,
                {options_.kernels, options_.parameters, options_.threads, options_.limits, options_.deadline,
                 StorageFill::kUndefined, options_.trust_device_code});
  if (!program) return Forward(program);
  load_time_ = Nanoseconds(Clock::now()) - Nanoseconds(start);
  const Result<std::uint32_t> index = program->FindFunction(options_.function);
  if (!index) return Forward(index, options_.file);
  const Function& function = module.functions[*index];
  if (options_.explain_outputs) {
    Say(OutputPlansText(*program, *index));
    if (options_.json) {
      json_["outputs"] = OutputPlansJson(*program, *index);
      json_["device_copies"] = DeviceCopiesJson(*program, *index);
    }
    return 0;
  }
  MappedOutputs mapped;  // outlives the VM, which writes there, as the inputs do
  Result<std::vector<Value>> inputs = std::vector<Value>();
  VirtualMachine vm(*program, options_.limits);
  if (!options_.load_state.empty()) {
    inputs = LoadInputs(&vm, *index, options_.load_state);
    if (!inputs) return Forward(inputs);
  }
  inputs = MakeInputs(module, function, options_.inputs, *inputs);
  if (!inputs) return Forward(inputs);
  if (!options_.dump_values.empty()) {
    if (Status made = MakeNewFolder(options_.dump_values, "--dump-values"); !made) return Forward(made);
  }
  for (std::uint32_t i = 0; i < inputs->size(); ++i) {
    const Value& input = (*inputs)[i];
    const InputHandle handle{*index, i};
    // Borrowed: then what a run takes is what a memory bound says.
    const Status set = input.kind() == ValueKind::kTensor ? vm.TrySetInput(handle, input.tensor().view())
                                                          : vm.TrySetInput(handle, input);
    if (!set) return Forward(set);
  }
  if (!options_.against.empty()) return RunAgainst(&vm, *index, *inputs);
  if (!options_.record.empty()) {
    Result<CallRecord> record = CallRecord::Make(options_);
    if (!record) return Forward(record);
    record_ = *std::move(record);
    if (Status kept = record_->AddInputs(function, {inputs->data(), inputs->size()}); !kept)
      return Forward(kept);
  }
  mapped = MapOutputs(&vm, *index, options_.outputs);
  if (options_.record_device) {
    const Status recorded = vm.TryRecord(function.name);
    if (!recorded && recorded.code() != StatusCode::kUnsupported) return Forward(recorded);
    if (!recorded) {
      json_["not_recorded"] = recorded.error().message();
      if (!options_.json) Tell(fmt::format("not recorded: {}\n", recorded.error().message()));
    }
  }
  executed_ = true;
  if (Status executed = Execute(&vm, *index); !executed) {
    if (Status recorded = FinishRecord(executed); !recorded) return Forward(recorded);
    for (const auto& output : mapped) {
      if (!output->status()) return Forward(output->status());
    }
    // Prints what was measured until somebody lost patience.
    if (executed.code() == StatusCode::kCancelled && !times_.empty()) {
      ReportTimes(vm);
      if (Status reported = ReportProfile(module); !reported) return Forward(reported);
    }
    return Forward(executed);
  }
  bool equal = true;
  if (Status reported = Report(vm, *index, mapped, &equal); !reported) return Forward(reported);
  if (!options_.save_state.empty()) {
    if (Status saved = SaveInputs(&vm, *index, options_.carries, options_.save_state); !saved)
      return Forward(saved);
    Wrote(options_.save_state);
  }
  if (!options_.report.empty()) {
    const ReportRequest request{
        options_.report, options_.file, *index, {inputs->data(), inputs->size()}, options_.threads};
    if (Status written = WriteReport(request, profiler_, *program); !written) return Forward(written);
    Wrote(options_.report);
  }
  return equal ? 0 : kExitNo;
}

}  // namespace

Result<int> Run(const RunOptions& given) {
  RunOptions options = given;
  RecordedCall call;
  if (!options.replay.empty()) {
    Result<RecordedCall> read = ReadCall(options.replay, &options);
    if (!read) return Forward(read);
    call = *std::move(read);
  }
  Runner runner(options);
  Result<int> exit_code = runner.Run();
  if (!options.replay.empty()) exit_code = runner.CompareWithRecord(call, std::move(exit_code));
  if (options.json) {
    Json json = runner.json();
    if (!exit_code) {
      json["error"] = ErrorJson(exit_code.error());
    }
    PrintJson(json);
  }
  return exit_code;
}

}  // namespace rewire::tools
