// SPDX-License-Identifier: Apache-2.0
// Public header: <rewire/compiler/compiler.h>.
//
// Compile: compiles an ONNX model to an Executable, in librewire_compiler.
//
//   rewire::Result<rewire::Compilation> compiled = rewire::Compile("model.onnx");
//   rewire::Result<rewire::Program> program = rewire::Program::Link(compiled->executable);
//
// Threads: any number of models may be compiled at once, each call on one thread. The callbacks of a call run
// on its thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "rewire/base/export.h"
#include "rewire/base/shared_bytes.h"
#include "rewire/base/span.h"
#include "rewire/base/status.h"
#include "rewire/compiler/limits.h"
#include "rewire/compiler/operator_schema.h"
#include "rewire/executable_format/executable.h"
#include "rewire/vm/memory_bound.h"
#include "rewire/vm/parameter_set.h"
#include "rewire/vm/tensor.h"

namespace rewire {

using compiler::CompileLimits;

// The numbers that convolutions and products with constant weights compute with. kModel: those of the model.
// kInt8: 8-bit integers in place of f32, where there are such kernels: the compiler quantizes the model.
// kBf16: bf16 in place of f32, with sums in f32. Such weights take half of the memory.
enum class Precision : std::uint8_t { kModel, kInt8, kBf16 };

// How the range of an activation follows from what is seen. kMinMax: all of it. kEntropy: without rare large
// values, if the distribution is closer to the original then. kLeastSquares: the part of it that makes the
// mean square of the errors smallest.
enum class CalibrationMethod : std::uint8_t { kMinMax, kEntropy, kLeastSquares };

// An array for each input, by its name. In an array with one axis more than the input, the first axis counts
// samples. All such arrays must have the same number of them. Any other array is part of every sample.
using CalibrationData = std::map<std::string, Tensor>;

// Samples for kInt8, and what they are used for. kBf16 only measures on them how far outputs move; without
// samples, on random inputs.
struct Calibration {
  std::vector<CalibrationData> data;  // one after the other; sizes may differ between them
  CalibrationMethod method = CalibrationMethod::kLeastSquares;
  // The most that an output of f32 may move over all samples, as OutputMovement::relative. As many products
  // as needed stay float, first those that are least exact for the time they take. Infinity: no limit.
  double max_error = 0.05;
  std::set<std::string> keep_float;  // names of nodes of the model that stay float in any case
};

// Whether operators that are too small to be split by themselves run at once, on several threads, if they do
// not depend on each other. kAuto: where the compiler expects it to be faster. Results are the same.
enum class Parallel : std::uint8_t { kOff, kAuto };

// The CPU for which kBf16 chooses how convolutions are computed. Programs run on every CPU; on another one
// they may be slower. kVectors: one that multiplies pairs of bf16 as fast as floats (AVX512-BF16). kTiles:
// one with AMX. kNative: what this machine has.
enum class Cpu : std::uint8_t { kNative, kVectors, kTiles };

// The choice of what ranks split. kTime: what is then faster. kMemory: all that can be split, so that it
// needs least memory for weights.
enum class ShardGoal : std::uint8_t { kTime, kMemory };

struct CompileOptions {
  std::map<std::string, std::int64_t> dims;  // symbolic dimensions to fix: {"N", 4}
  // The largest sizes of dimensions that stay symbolic: {"N", 64}. The executable stores them and refuses
  // larger inputs. It has a memory bound if nothing else is open.
  std::map<std::string, std::int64_t> max_dims;
  std::set<std::string> disabled_passes;  // names of CompilerPasses()
  // Operators that kernels of the host or of libraries compute. They go before those that the compiler has. A
  // schema that no node can fit is kInvalidArgument.
  std::vector<OperatorSchema> operators;
  // Constants of the model that become parameters of the executable: tensors that a Program is linked with,
  // in place of constants of the file (LinkOptions::parameters). They are initializers and nodes Constant of
  // the model's graph itself. What passes make of weights, such as packed ones, `__init` makes of the
  // parameters when a Program is linked. Compiling does not see their elements. So one executable serves all
  // weights of these shapes, and models that differ only in them give the same one. Only for
  // Precision::kModel.
  //
  // `parameters` has their names. It is an error if the program depends on the elements of one, as on those
  // of a shape, an axis or a scale of quantization. With `all_parameters`, floats of 16 bits and more become
  // parameters if they have two elements or more, and if the program does not depend on them.
  std::set<std::string> parameters;
  bool all_parameters = false;
  // Elements of initializers of the model's graph, in place of the model's own, by name. Each tensor is
  // compact, in host memory, and of the initializer's dtype; the program is for the tensor's shape. Strings
  // cannot be given. External data that a given initializer refers to is not read. Where passes leave a
  // weight as it is, the executable uses the tensor's memory and keeps the tensor, so nobody may write it.
  //
  // One that `parameters` names, too, becomes a parameter if the program does not depend on its elements,
  // else a constant. Then Compilation::parameters has these elements.
  ParameterSet initializers;
  // Files of external data in memory, by the location that the model's tensors name. They go before files in
  // folders. Bytes with an owner are used in place, and the executable keeps the owner. Bytes without an
  // owner are copied as far as they are read.
  std::map<std::string, SharedBytes> external_files;
  // Initializers that the graph lists among its inputs, too, and that become inputs of `main`: each run gives
  // them. All others are constants. CompileReport::overridable has the names that may stand here. A host that
  // overrides some in few runs compiles the model twice, and the other runs keep what passes make of
  // constants.
  std::set<std::string> overridden;
  // Folders in which external data may lie, too, if a symbolic link in the model's folder leads there. The
  // folder in which the model itself lies, after links are followed, is always one: so are the caches of
  // model hubs.
  std::vector<std::string> external_folders;
  CompileLimits limits;
  // Leaves out each pass that may change more of a result than the order of its sums (docs/passes.md has
  // the list). Then NaN, infinities and overflows are those of the model's operators one by one. The program
  // is slower. Only for the CPU, and for Precision::kModel.
  bool strict = false;
  // The device that nodes run on where it has kernels for them: "opencl" or "cuda", with a number as in
  // "opencl:1". Empty or "cpu": all nodes run on the CPU.
  std::string device;
  // Nodes that hang together on the device must compute at least so many elements. A kernel's launch and a
  // copy take as long as the CPU needs for thousands of them.
  std::int64_t least_device_work = 100000;
  Precision precision = Precision::kModel;
  Calibration calibration;  // for kInt8; of kBf16 the data alone
  Parallel parallel = Parallel::kAuto;
  Cpu cpu = Cpu::kNative;
  // The program of one of several ranks, the processes that run a model together; each is compiled by a call
  // of its own. Their calls of collectives are kernels of a library (kernels/contract/collective.h).
  //
  // With `shards`, so many ranks compute each layer together. Products by constant weights are split by their
  // columns and rows, and attention by its heads. A rank's executable holds its part of these weights. With
  // `stages`, each rank computes one part of the layers, behind each other. One of both may be above 1. The
  // model must be the same for all ranks, and so must the options but for `rank`. Only for Precision::kModel,
  // and without parameters.
  std::int64_t shards = 1;
  std::int64_t stages = 1;
  std::int64_t rank = 0;  // below the number of ranks
  ShardGoal shard_goal = ShardGoal::kTime;
  // Whether the file's code and tables are compressed (Module::compressed), where that makes it at least 1/64
  // smaller. A library without zstd cannot open such a file.
  bool compress = true;
  // Whether to compute CompileReport::memory. It takes part of the time of compiling.
  bool bound_memory = true;
  // Whether to check the program after each pass, so that a fault of the compiler is an error that names the
  // pass (kInternal). It takes about as long as the passes. Not set: in builds with assertions alone.
  std::optional<bool> check_passes;
  // A folder in which executables are kept, so that a model is compiled once. It must be the user's alone,
  // and is made if its parent has none of that name. Empty: none. docs/compiler.md says what makes an entry.
  //
  // An executable with parameters, one for kInt8, or a call with calibration data, `initializers`,
  // `external_files` or `dump` is compiled in any case. Programs of one entry share its constants, also
  // between processes.
  std::string cache;
  // Called after each stage with its name and the program as text. Empty: not called.
  std::function<void(const std::string& stage, const std::string& text)> dump;
  // Called when work begins: "reading", the name of a pass, "checking after the pass 'dead-code'", "packing
  // weights 3 of 20", and so on. Empty: not called.
  std::function<void(const std::string& what)> progress;
};

// A node of a model that cannot be compiled.
struct UnsupportedNode {
  std::string node;  // its name, or its first output
  std::string op_type;
  std::string domain;      // "" for ONNX's own operators
  std::int64_t opset = 0;  // the version of the domain's operators that the model asks for
  std::string reason;
};

// How far an output of f32 moved from that of the float model, over all samples.
struct OutputMovement {
  std::string output;
  double max_abs = 0;   // the largest difference of an element; infinite if only one of the two is a number
  double relative = 0;  // the L2 norm of all differences by that of the float output
};

// A convolution, product or recurrent layer of the float model with constant weights.
struct ProductPrecision {
  std::string node;        // operator and name: "Conv 'conv1'"
  bool quantized = false;  // it computes with the precision that was asked for
  // How far its own output is from that of the float node for the same float input: the L2 norm of the
  // differences by that of the output. NaN if that was not measured.
  double noise = 0;
  std::string reason;  // why it is f32; empty if it is quantized
};

// Calls of a kernel that stay on the CPU in a model that was compiled for a device.
struct HostCalls {
  std::string kernel;
  std::string reason;
  std::size_t calls = 0;
};

// Weights that the pass tiny-weights has made 0, because they were subnormal.
struct ZeroedConstant {
  std::string constant;
  std::string node;  // the first one that multiplies by them: "Conv 'conv1'"
  std::size_t count = 0;
};

// A layer with constant weights of a model that is compiled for one of several ranks.
struct ShardedLayer {
  std::string node;                // operator and name: "MatMul 'up'"
  std::string split;               // "columns", "rows", "heads", "groups"; empty if each rank has all of it
  std::string reason;              // why it is not split; else empty
  std::uint64_t weight_bytes = 0;  // of the model
  std::uint64_t rank_bytes = 0;    // of a rank's part
};

// How a model is split over ranks. Bytes and operations of a run count open dimensions as their limits, or
// as 1.
struct ShardReport {
  std::vector<ShardedLayer> layers;  // for shards
  std::uint64_t split_bytes = 0;     // the weights of layers that are split, and a rank's part of them
  std::uint64_t rank_bytes = 0;
  double split_operations = 0;  // multiplications of these layers in all, and of a rank
  double rank_operations = 0;
  std::size_t all_reduces = 0, all_gathers = 0;
  std::uint64_t exchanged_bytes = 0;      // of the values that they give
  std::vector<std::string> split_inputs;  // caches: a rank has its heads of them
  // For stages: what the compiler estimates for this stage, and for all together.
  double stage_seconds = 0, pipeline_seconds = 0;
};

// The report of compiling a model.
struct CompileReport {
  std::size_t model_nodes = 0;
  std::size_t nodes = 0;  // of the program, after all passes
  std::size_t kernel_calls = 0;
  std::size_t kernels = 0;    // different kernels that the program imports
  std::size_t constants = 0;  // weights and other tensors that the file holds
  std::uint64_t constant_bytes = 0;
  std::size_t parameters = 0;  // tensors that Programs are linked with
  std::uint64_t parameter_bytes = 0;
  // Size of the arena, which holds tensors inside `main` of known or limited size. `separate_bytes` is what
  // they would take without it. 0 if each tensor is allocated by itself.
  std::uint64_t arena_bytes = 0;
  std::uint64_t separate_bytes = 0;
  // The same for tensors on the device that the model is compiled for.
  std::uint64_t device_arena_bytes = 0;
  std::uint64_t device_separate_bytes = 0;
  // The most that one run of `main` takes beside weights and outputs, or why there is no bound. Not computed
  // without `bound_memory`.
  MemoryBound memory;
  // For kInt8 and kBf16: how many of the products compute with these numbers, all products, and what that
  // did. `unmeasured` says why the movement is not known: with random inputs a model may not run.
  std::size_t quantized = 0;
  std::vector<ProductPrecision> products;
  std::vector<OutputMovement> movement;
  std::string unmeasured;
  // For a device: kernel calls that run there, and the others, most calls first.
  std::size_t device_calls = 0;
  std::vector<HostCalls> host_calls;
  std::vector<ZeroedConstant> zeroed_weights;
  ShardReport shards;  // for several ranks
  // The model's initializers that CompileOptions::overridden may name, in the order of the graph's inputs.
  std::vector<std::string> overridable;
  // The executable is from CompileOptions::cache. Then only the figures of the executable itself are here:
  // kernels, constants and memory.
  bool from_cache = false;
  std::string cache_problem;         // why the cache was not used, or the executable not kept; else empty
  std::chrono::nanoseconds time{0};  // of the whole call
};

struct Compilation {
  Executable executable;
  CompileReport report;
  ParameterSet parameters;  // the executable's, with the model's own elements
};

// Compiles the model of a file. External data is read only from inside the file's folder, and through links
// from CompileOptions::external_folders and the folder that the file itself lies in after links are followed.
//
// Errors: kNotFound and kIo from reading; kInvalidFile for a file that is no ONNX model; kInvalidArgument for
// a wrong dimension, pass, parameter, initializer or calibration. kStepLimit if `limits.work` is used up.
// kUnsupported if nodes cannot be compiled. `*unsupported`, which may be null, then lists every such node
// with the reason, and is empty otherwise. A message names the model and what to do.
REWIRE_API Result<Compilation> Compile(const std::string& path, const CompileOptions& options = {},
                                       std::vector<UnsupportedNode>* unsupported = nullptr);

// The same for a model in memory, which is not used after the return. `folder` may hold external data; an
// empty `folder` refuses external data. `name` names the model in messages and in the executable.
REWIRE_API Result<Compilation> CompileBytes(Span<const std::byte> model, const std::string& folder,
                                            const std::string& name, const CompileOptions& options = {},
                                            std::vector<UnsupportedNode>* unsupported = nullptr);

// The names that CompileOptions::disabled_passes may contain, in the order of the passes.
REWIRE_API std::vector<std::string> CompilerPasses();

// The passes that CompileOptions::strict leaves out, in their order.
REWIRE_API std::vector<std::string> StrictlySkippedPasses();

// Returns the bytes of an executable as a .rwx file; the same executable always gives the same bytes. Errors:
// kInvalidArgument if a count or size does not fit the format.
REWIRE_API Result<std::vector<std::byte>> SerializeExecutable(const Executable& executable);

// Writes an executable as a .rwx file: to a temporary name beside `path`, which then takes its place. So the
// file is complete or unchanged. Errors: kIo with path and reason.
REWIRE_API Status WriteExecutable(const Executable& executable, const std::string& path);

}  // namespace rewire
