// SPDX-License-Identifier: Apache-2.0
//
// StaticProgram: one entry point, run over what is known of its values before it runs. Paths are joined where
// they meet, calls are expanded, and each instruction is judged: it works, it always fails, or it cannot be
// made static.
//
// The instructions are walked over in three passes. Analyze repeats the first until the states no longer
// change. It then finds which memory is in use at once, and Write makes the source.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "rewire/base/status.h"
#include "rewire/compiler/aot/emit_c.h"
#include "rewire/compiler/aot/frame.h"
#include "rewire/compiler/aot/kernel_calls.h"
#include "rewire/compiler/aot/known_calls.h"
#include "rewire/compiler/aot/literals.h"
#include "rewire/compiler/aot/sites.h"
#include "rewire/vm/plan/output_plan.h"

namespace rewire::aot {

// A leaf of the entry point's inputs or of its result.
struct Leaf {
  std::string name;
  bool is_tensor = true;  // else an integer
  DLDataType dtype = kUnknownDType;
  std::vector<std::int64_t> dims{};
  bool varies = false;  // dims differ between the versions of an entry point
};

// The programs of one source share these. The pointers are not owned.
struct SourceParts {
  const Module& module;
  const EmitCOptions& options;
  const Array<FunctionPlan>& plans;
  Literals* literals;
  KernelCalls* calls;
  KnownCalls* known_calls;  // null: every call is made when the program runs
};

// PlacesOf says what has a place of its own. Places of tensors make a smaller arena where the executable
// keeps room between them, but not every program has them: see AllocTensorApart.
enum class PlacesOf : std::uint8_t { kStorages, kTensors };

class StaticProgram {
 public:
  // `sizes` are those of the symbolic dimensions of the function's inputs, by the module's symbol.
  StaticProgram(const SourceParts& parts, std::uint32_t function, std::map<std::uint32_t, std::int64_t> sizes,
                PlacesOf places);

  // Finds the states, the types of the result, and the arena.
  Status Analyze();
  // The statements of the entry point.
  Result<std::string> Write();

  const std::vector<Leaf>& inputs() const { return inputs_; }
  const std::vector<Leaf>& outputs() const { return outputs_; }
  std::uint32_t most_arguments() const { return most_arguments_; }
  std::uint64_t arena_bytes() const { return arena_bytes_; }
  // Words of instructions, with all calls expanded.
  std::uint64_t code_words() const { return instructions_ + module_.functions[root_.function].code.size(); }

 private:
  enum class Pass : std::uint8_t { kStates, kMemory, kSource };
  enum class Next : std::uint8_t { kOn, kEnd };
  struct Line {
    std::string text;
    std::int64_t label = -1;  // a label stands here
    std::int64_t jump = -1;   // a jump to this label follows the text
    std::string indent{};
  };
  struct Copy {
    std::string to;
    std::string from;
    std::uint32_t variable = 0;  // the one that is set
  };

  // Frames, in frames.cc.
  Status BindInputs();
  Result<Value> InputOf(const NamedType& input, const std::string& name, std::uint32_t* node);
  Status FindOutputs();
  Frame* CalleeAt(Frame* frame, std::uint32_t pc, std::uint32_t function);
  const FunctionFacts& FactsOf(std::uint32_t function);
  Status RunFrame(Frame* frame);
  Status WalkFrame(Frame* frame);
  Status WalkBlock(Frame* frame, std::uint32_t block);
  Status Reach(Frame* frame, std::uint32_t pc, const State& state);
  Status Return(Frame* frame, const Value& value);
  Status Join(Frame* frame, std::uint32_t meeting, std::uint32_t reg, Value* known, const Value& given,
              bool* changed);
  Status JoinPart(Frame* frame, std::uint32_t meeting, std::uint32_t reg, std::uint32_t* part, Value* known,
                  const Value& given, bool* changed);
  std::uint32_t VariableAt(Frame* frame, std::uint32_t meeting, std::uint32_t reg, std::uint32_t part,
                           bool is_pointer);
  Status Refuse(const std::string& why) const;

  // Instructions, in instructions.cc, calls.cc and compute_now.cc. `*next` is kEnd when the block ends there.
  Status Step(State* state, Next* next);
  Status AllocStorage(State* state, Next* next);
  Status AllocTensor(State* state, Next* next, const std::vector<std::int64_t>& dims);
  Status AllocTensorApart(const State& state, const Place& origin, Value* tensor);
  void NoteInPlace(const State& state, const KernelCall& call);
  Status CheckOverlaps();
  Status Invoke(State* state, Next* next, std::uint32_t function, std::vector<Value> arguments,
                bool carries_outputs);
  Status AllocTuple(State* state, Value::Kind kind, std::uint32_t number, const std::uint32_t* fields,
                    std::uint32_t dst);
  Status InvokeClosure(State* state, Next* next);
  Status InvokePacked(State* state, Next* next);
  std::optional<KnownTensor> KnownOf(const Value& tensor);
  bool IsShared(const State& state, const Value& tensor, const std::set<std::uint32_t>& registers);
  bool ComputeNow(State* state, const KernelImport& import);
  Status PlaceWorkspace(const State& state, KernelCall* call);
  Status Branch(State* state, Next* next);
  Status Reshape(State* state, Next* next);
  Status DeviceCopy(State* state, Next* next);
  // The instruction always fails.
  Status Fails(StatusCode code, const std::string& text, Next* next);
  Status NeedKind(const State& state, std::uint32_t reg, Value::Kind kind, Next* next);
  // An integer, or the one element of a tensor of integers. A tensor whose element is not known gives a
  // number with `variable` = kLoaded and the expression in `text`.
  Status ReadInteger(const Value& value, const char* what, Number* number, std::string* text, Next* next);
  Status ReadShape(const Value& value, bool allow_scalar, std::vector<std::int64_t>* dims, Next* next);
  std::optional<std::vector<std::int64_t>> ElementsOf(const Value& tensor);
  std::optional<std::vector<double>> FloatsOf(const Value& tensor);
  Value BoxInteger(const Value& integer);
  std::int32_t OutputHere() const;
  bool TakesOutput(std::int32_t leaf, const Value& tensor) const;
  std::uint32_t SiteHere(std::uint64_t bytes);
  Status NoteLive(std::uint32_t site, const State& state);
  void NoteBeside(std::uint32_t site, const Place& place);
  template <typename Visit>
  void ForEachLive(const State& state, Visit visit) const;

  // Source, in write.cc.
  void Emit(const std::string& text);
  void EmitLabel(std::int64_t label);
  void EmitJump(std::int64_t label, const std::string& indent);
  void EmitCopies(Frame* frame, std::uint32_t meeting, std::uint32_t reg, const Value& known,
                  const Value& given, std::vector<Copy>* copies);
  void EmitCopies(std::vector<Copy> copies, const std::string& indent);
  void EmitFailure(StatusCode code, const std::string& text, const std::string& indent);
  void EmitSite(std::uint32_t site, const State& state);
  Status EmitResult(const Value& value);
  std::string Address(const Place& place);
  std::string NumberText(const Number& number);
  std::string Where() const;
  std::int64_t LabelOf(const Frame* frame, std::uint32_t meeting);
  std::string JoinedLines() const;

  static constexpr std::uint32_t kReturn = 0xFFFFFFFFu;  // the place where a frame's results meet
  static constexpr std::uint32_t kLoaded = 0xFFFFFFFEu;

  const Module& module_;
  const EmitCOptions& options_;
  Literals* literals_;
  KernelCalls* calls_;
  KnownCalls* known_calls_;
  const Array<FunctionPlan>& plans_;
  const std::map<std::uint32_t, std::int64_t> sizes_;
  const PlacesOf places_;
  WorkMeter meter_;
  std::map<std::uint32_t, std::unique_ptr<FunctionFacts>> facts_{};
  Frame root_{};
  std::uint32_t frame_count_ = 1;
  std::uint64_t instructions_ = 0;
  std::vector<Leaf> inputs_{};
  std::vector<Leaf> outputs_{};
  bool outputs_known_ = false;
  std::vector<Site> sites_{};
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> site_numbers_{};  // frame, pc
  std::vector<Variable> variables_{};
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t>, std::uint32_t>
      variable_numbers_{};
  std::uint64_t arena_bytes_ = 0;
  // Pairs of sites that overlap in the executable while both are in use: the second one is reserved then.
  std::set<std::pair<std::uint32_t, std::uint32_t>> overlaps_{};
  // Sites that the current block has reserved and that nothing has written or read yet.
  std::set<std::uint32_t> fresh_{};

  // The instruction that is looked at.
  Pass pass_ = Pass::kStates;
  Frame* frame_ = nullptr;
  std::uint32_t pc_ = 0;
  const std::uint32_t* code_ = nullptr;  // at pc_

  std::vector<Line> lines_{};
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::int64_t> labels_{};
  std::set<std::uint32_t> used_variables_{};
  std::set<std::uint32_t> used_sites_{};  // of several instances
  std::uint32_t most_arguments_ = 0;
};

}  // namespace rewire::aot
