// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/debug/debugger.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "rewire/executable_format/instruction.h"
#include "rewire/tools/debug/tensor_summary.h"
#include "rewire/tools/io/cli.h"
#include "rewire/tools/io/interrupt.h"
#include "rewire/tools/io/name_map.h"
#include "rewire/tools/io/register_text.h"
#include "rewire/tools/io/style.h"
#include "rewire/tools/run/link_model.h"
#include "rewire/tools/run/open_remote.h"
#include "rewire/vm/kernel/kernel.h"

namespace rewire::tools {
namespace {

constexpr const char kPrompt[] = "(vm-debug) ";

std::string Trimmed(const std::string& text) {
  const std::size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

// Whether an empty line repeats the command.
bool IsRepeated(CommandId id) {
  return id == CommandId::kStep || id == CommandId::kNext || id == CommandId::kContinue ||
         id == CommandId::kUp || id == CommandId::kDown;
}

}  // namespace

Debugger::Debugger(const Program& program, std::uint32_t function, const InputOptions& inputs, bool json)
    : program_(program),
      module_(program_.executable().module()),
      function_(function),
      inputs_(module_, inputs),
      json_(json),
      unicode_(json || TakesUnicode()),
      colored_(!json && WantsColor(stdout)),
      printer_(module_),
      vm_(program_),
      stops_(module_, unicode_) {}

void Debugger::Print(const std::string& text) const {
  if (json_) {
    answer_ += text;
  } else if (cannot_print_ == 0 && std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) {
    cannot_print_ = errno;
  }
}

void Debugger::Flush() const {
  if (cannot_print_ == 0 && std::fflush(stdout) != 0) cannot_print_ = errno;
}

void Debugger::Answer(const Status& done) {
  if (!json_ || command_.empty()) return;
  nlohmann::ordered_json json = {{"command", std::exchange(command_, "")},
                                 {"text", std::exchange(answer_, "")}};
  if (!done) json["error"] = ErrorJson(done.error());
  PrintJson(json);
}

Status Debugger::Session(std::vector<std::unique_ptr<LineSource>> sources) {
  sources_ = std::move(sources);
  if (Status started = inputs_.Start(function_, true); !started) return started;
  if (Status observed = vm_.TrySetObserver(this); !observed) return observed;
  const CatchInterrupts caught;
  while (!quit_) {
    ReadCommand();
    while (begin_ && !quit_) RunOnce();
  }
  Answer({});
  return failed_;
}

// Reads the next line of the first source that has one, and executes it.
void Debugger::ReadCommand() {
  std::optional<std::string> read;
  Answer({});
  ClearInterrupts();  // one that comes from here on stops the run that the line begins
  while (!sources_.empty() && !(read = sources_.back()->Next(kPrompt))) sources_.pop_back();
  if (cannot_print_ != 0) {
    failed_ =
        Fail(StatusCode::kIo, fmt::format("cannot write standard output: {}", std::strerror(cannot_print_)));
  }
  if (!read || cannot_print_ != 0) {
    quit_ = true;
    return;
  }
  if (read->empty() && InterruptCount() > 0) return;  // a line that was given up
  const LineSource& source = *sources_.back();
  std::string line = Trimmed(*read);
  if (!source.interactive() && !json_ && !line.empty()) Print(kPrompt + line + "\n");
  if (line.empty() && source.interactive()) line = repeated_;
  if (line.empty() || line.front() == '#') return;
  command_ = line;
  const Status done = Execute(line);
  Flush();
  if (done) return;
  if (source.interactive()) {
    Answer(done);
    if (!json_) Print(Inked("error: ", Ink::kRed, colored_) + done.error().message() + "\n");
    return;
  }
  failed_ = Forward(done, source.place());
  Answer(failed_);
  quit_ = true;
}

Status Debugger::Execute(const std::string& line) {
  const std::size_t space = line.find_first_of(" \t");
  const Result<const Command*> command = FindCommand(line.substr(0, space));
  if (!command) return Forward(command);
  const std::string argument = space == std::string::npos ? "" : Trimmed(line.substr(space));
  if (!argument.empty() && *(*command)->arguments == '\0') {
    return Fail(StatusCode::kInvalidArgument, fmt::format("`{}` takes no argument", (*command)->name));
  }
  const char* wanted = (*command)->arguments;
  if (argument.empty() && *wanted != '\0' && *wanted != '[') {
    return Fail(StatusCode::kInvalidArgument, fmt::format("write `{} {}`; `help {}` explains it",
                                                          (*command)->name, wanted, (*command)->name));
  }
  repeated_ = IsRepeated((*command)->id) ? line : "";
  return ExecuteCommand((*command)->id, argument);
}

void Debugger::RunOnce() {
  begin_ = false;
  const Result<std::vector<Value>> inputs = inputs_.Make();
  Status ready = inputs ? Status() : Status(Forward(inputs));
  for (std::uint32_t i = 0; ready && i < inputs->size(); ++i) {
    ready = vm_.TrySetInput(InputHandle{function_, i}, (*inputs)[i]);
  }
  if (!ready) {
    ReportEnd(ready);
    return;
  }
  stops_.BeginRun();
  executed_ = 0;
  pending_.clear();
  running_ = true;
  // The first Ctrl-C stops at the next instruction. A second one ends a kernel that takes long.
  const CancelOnInterrupt cancel(&vm_, 2);
  const Status invoked = vm_.TryInvoke(function_);
  running_ = false;
  stack_.Clear();
  selected_ = 0;
  if (!begin_ && !quit_) ReportEnd(invoked);
}

void Debugger::ReportEnd(const Status& invoked) {
  if (!invoked) {
    Print(Inked("the run failed: ", Ink::kRed, colored_) + invoked.error().message() + "\n");
  } else {
    Print(fmt::format("{} has returned after {} instructions; `outputs` prints its results\n",
                      module_.functions[function_].name, executed_));
  }
  Flush();
}

void Debugger::OnInstruction(const Instruction& instruction) {
  if (quit_ || begin_) return;
  stack_.Arrive(instruction);
  std::optional<std::string> reason = stops_.Arrive(stack_);
  if (InterruptCount() > 0) reason = "interrupted\n";
  if (!pending_.empty()) reason = std::exchange(pending_, "") + reason.value_or("");
  if (reason) StopHere(*reason);
  if (catches_nan_) nan_maker_.BeforeInstruction(instruction);
  ++executed_;
}

void Debugger::OnKernel(const KernelCall& call) {
  if (quit_ || begin_) return;
  if (!call.ok) {
    StopHere(fmt::format("kernel {} has failed here; `continue` tells its error\n",
                         printer_.KernelText(call.kernel)));
    return;
  }
  if (!catches_nan_ && !catches_infinity_) return;
  const std::uint32_t* instruction = module_.functions[call.function].code.data() + call.pc;
  const std::uint32_t written =
      instruction[std::integral_constant<std::uint32_t, WordOf(Opcode::kInvokePacked, "outputs")>::value];
  for (std::size_t i = call.args.size() - std::min<std::size_t>(written, call.args.size());
       i < call.args.size(); ++i) {
    const Result<HostTensor> elements = ElementsOf(ShareRegister(call.args[i]));
    if (!elements || !HasNumbers(elements->dtype)) continue;
    const TensorSummary summary = Summarize(*elements, 1);
    if (summary.nans == 0 && (summary.infinities == 0 || !catches_infinity_)) continue;
    pending_ += fmt::format("{} at {} has written {} NaN and {} infinite of {} elements to argument {}\n",
                            printer_.KernelText(call.kernel), SiteText(module_, {call.function, call.pc}),
                            summary.nans, summary.infinities, summary.count, i);
    if (summary.nans == 0) continue;
    const std::string maker = nan_maker_.Of(module_, call.function, call.pc);
    if (!maker.empty()) pending_ += fmt::format("  made by {}\n", maker);
  }
}

// Shows where the run is, and reads commands until one lets it go on.
void Debugger::StopHere(const std::string& reason) {
  stops_.LookAtWatches(stack_);
  selected_ = 0;
  Print(Inked(reason, Ink::kYellow, colored_ && !reason.empty()));
  ShowNextInstruction();
  Flush();
  resume_ = false;
  while (!resume_ && !quit_) ReadCommand();
  if (quit_ || begin_) vm_.Cancel();
}

Result<int> Debug(const DebugOptions& options) {
  Result<OpenedModel> model =
      OpenModelOrRemote(options.file, options.parameters, {}, options.model, options.kernels);
  if (!model) return Forward(model);
  if (Status named = RestoreNames(options.map, &*model); !named) return Forward(named);
  LinkChoices choices;
  choices.kernels = options.kernels;
  choices.parameters = options.parameters;
  choices.threads = options.threads;
  choices.trust_device_code = options.trust_device_code;
  // So that memory that nothing has written yet can be told.
  choices.storage_fill = StorageFill::kPoison;
  const Result<Program> program = LinkModel(*model, options.file, choices);
  if (!program) return Forward(program);
  const Result<std::uint32_t> function = program->FindFunction(options.function);
  if (!function) return Forward(function, options.file);

  Debugger debugger(*program, *function, options.inputs, options.json);
  std::vector<std::unique_ptr<LineSource>> sources;
  sources.push_back(InputLines([&debugger](const std::string& line) { return debugger.Completions(line); },
                               StateFile("vm-debug-history")));
  for (auto path = options.scripts.rbegin(); path != options.scripts.rend(); ++path) {
    Result<std::unique_ptr<LineSource>> script = ScriptLines(*path);
    if (!script) return Forward(script);
    sources.push_back(*std::move(script));
  }
  if (!options.json && sources.size() == 1 && sources.front()->interactive()) {
    fmt::print("{}: {} of {} instructions. `help` lists the commands.\n", options.file,
               program->executable().module().functions[*function].name,
               InstructionStarts(program->executable().module().functions[*function]).size());
  }
  if (Status ended = debugger.Session(std::move(sources)); !ended) return Forward(ended);
  return 0;
}

}  // namespace rewire::tools
