// SPDX-License-Identifier: Apache-2.0
#include "rewire/onnxruntime_api/sessions/profile.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>

#include "rewire/onnxruntime_api/status.h"
#include "rewire/onnxruntime_api/values/tensor_types.h"
#include "rewire/vm/kernel/kernel.h"

namespace rewire::onnxruntime_api {
namespace {

// As many as ONNX Runtime keeps. Later ones are counted.
constexpr std::size_t kMostEvents = 1'000'000;

std::uint64_t SystemNow() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

std::string FileFor(const std::string& prefix) {
  const std::uint64_t milliseconds = SystemNow() / 1'000'000;
  const auto seconds = static_cast<std::time_t>(milliseconds / 1000);
  std::tm local{};
  localtime_r(&seconds, &local);
  char text[48];
  const std::size_t size = std::strftime(text, sizeof text, "_%Y-%m-%d_%H-%M-%S_", &local);
  std::snprintf(text + size, sizeof text - size, "%03d.json", static_cast<int>(milliseconds % 1000));
  return prefix + text;
}

// The nodes of the model that an instruction does the work of; empty if the executable does not say so.
std::string NoteAt(const Function& function, std::uint32_t pc) {
  const auto found = std::lower_bound(function.notes.begin(), function.notes.end(), pc,
                                      [](const SourceNote& note, std::uint32_t at) { return note.pc < at; });
  return found == function.notes.end() || found->pc != pc ? std::string() : std::string(found->text);
}

std::string ShapesOf(Span<const RewireFFIAny> args) {
  nlohmann::json shapes = nlohmann::json::array();
  for (const RewireFFIAny& arg : args) {
    const DLTensor* const tensor = RewireTensorOf(&arg);
    if (tensor == nullptr) continue;
    nlohmann::json shape = nlohmann::json::array();
    for (int i = 0; i < tensor->ndim; ++i) shape.push_back(tensor->shape[i]);
    shapes.push_back({{ElementTypeName(ElementTypeOf(tensor->dtype)), std::move(shape)}});
  }
  return shapes.dump();
}

}  // namespace

std::int64_t Profile::Now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

Profile::Profile(const std::string& prefix)
    : file_(FileFor(prefix)), start_ns_(SystemNow()), origin_ns_(Now()) {}

void Profile::Add(Event event) {
  event.thread = gettid();
  const std::lock_guard lock(mutex_);
  if (finished_) return;
  if (events_.size() < kMostEvents) {
    events_.push_back(std::move(event));
  } else {
    ++dropped_;
  }
}

void Profile::AddSession(const char* name, std::int64_t begin_ns, std::int64_t end_ns) {
  Add({"Session", name, begin_ns, end_ns, 0, {}, {}});
}

void Profile::AddKernel(const Observer::KernelCall& call) {
  const KernelImport& import = call.module.kernels[call.kernel];
  std::string name = NoteAt(call.module.functions[call.function], call.pc);
  if (name.empty()) name = import.debug_name.empty() ? import.name : import.debug_name;
  Add({"Node", name + "_kernel_time", call.start_ns, call.end_ns, 0, std::string(import.name),
       ShapesOf(call.args)});
}

OrtStatus* Profile::Finish(std::string* file) {
  file->clear();
  const std::lock_guard lock(mutex_);
  if (finished_) return nullptr;
  finished_ = true;
  std::ofstream out(file_, std::ios::binary);
  const char* before = "[\n";
  for (const Event& event : events_) {
    nlohmann::ordered_json line = {{"cat", event.category},
                                   {"pid", getpid()},
                                   {"tid", event.thread},
                                   {"dur", (event.end_ns - event.begin_ns) / 1000},
                                   {"ts", (event.begin_ns - origin_ns_) / 1000},
                                   {"ph", "X"},
                                   {"name", event.name},
                                   {"args", nlohmann::ordered_json::object()}};
    if (!event.kernel.empty()) {
      line["args"] = {{"op_name", event.kernel},
                      {"provider", "CPUExecutionProvider"},
                      {"argument_type_shape", nlohmann::ordered_json::parse(event.arguments)}};
    }
    out << before << line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
    before = ",\n";
  }
  if (events_.empty()) out << "[";
  out << "\n]\n";
  out.close();
  events_.clear();
  if (!out) return MakeStatus(ORT_FAIL, "the profile " + file_ + " cannot be written");
  *file = file_;
  return nullptr;
}

}  // namespace rewire::onnxruntime_api
