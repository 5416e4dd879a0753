// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/client/remote_module.h"

#include <string>
#include <utility>
#include <vector>

#include "rewire/executable_format/code_writer.h"
#include "rewire/serve/core/dim_names.h"

namespace rewire::serve {
namespace {

using Reg = CodeWriter::Reg;
constexpr std::uint32_t kAlignment = 64;

// The dimensions of a tensor. Those of inputs that have no name get one of their own.
Result<std::vector<Dim>> DimsOf(const RemoteTensor& tensor, bool is_input,
                                std::vector<std::string>* symbols) {
  std::vector<Dim> dims(tensor.shape.begin(), tensor.shape.end());
  if (!tensor.dims.empty()) {
    std::optional<std::vector<Dim>> named = ParseDimNames(tensor.dims, symbols);
    bool fits = named && named->size() == dims.size();
    for (std::size_t i = 0; fits && i < dims.size(); ++i)
      fits = ((*named)[i] < 0 ? -1 : (*named)[i]) == dims[i];
    if (!fits) {
      return Fail(StatusCode::kUnsupported, "tensor '{}' has the dimensions '{}', which do not fit its shape",
                  tensor.name, tensor.dims);
    }
    dims = *std::move(named);
  }
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] >= 0 || IsSymbol(dims[i])) continue;
    dims[i] = kUnknownDim;
    if (!is_input) continue;
    dims[i] = SymbolDim(static_cast<std::uint32_t>(symbols->size()));
    symbols->push_back(tensor.name + "_" + std::to_string(i));
  }
  return dims;
}

// Makes the memory of the outputs by what the kernel says of their shapes, and the tensors in it.
class Body {
 public:
  explicit Body(std::uint32_t inputs) : next_(inputs), args_(inputs) {
    for (std::uint32_t i = 0; i < inputs; ++i) args_[i] = i;
  }

  Result<Array<std::uint32_t>> Write(const std::vector<RemoteTensor>& outputs, std::uint32_t* registers) {
    std::vector<Reg> shapes, sizes, made;
    std::vector<Reg> ask = args_;
    for (const RemoteTensor& output : outputs) {
      shapes.push_back(Integers({static_cast<std::int64_t>(output.shape.size())}));
      sizes.push_back(Integers({}));
      ask.insert(ask.end(), {shapes.back(), sizes.back()});
    }
    if (!outputs.empty())
      code_.InvokePacked(0, static_cast<std::uint32_t>(2 * outputs.size()), kNone, {ask.data(), ask.size()});
    std::vector<Reg> call = args_;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const Reg storage = next_++;
      code_.AllocStorage(sizes[i], kAlignment, outputs[i].dtype, kHostDevice, storage, {});
      made.push_back(next_++);
      code_.AllocTensorReg(storage, kNone, shapes[i], outputs[i].dtype, made.back());
    }
    call.insert(call.end(), made.begin(), made.end());
    code_.InvokePacked(0, static_cast<std::uint32_t>(made.size()), kNone, {call.data(), call.size()});
    if (made.size() != 1) {
      const Reg all = next_++;
      code_.AllocADT(0, all, {made.data(), made.size()});
      made = {all};
    }
    code_.Ret(made[0]);
    *registers = next_;
    return code_.Finish();
  }

 private:
  // A tensor of int64 for the kernel to fill.
  Reg Integers(const std::vector<std::int64_t>& shape) {
    const Reg storage = next_++, tensor = next_++;
    const std::int64_t elements = shape.empty() || shape[0] == 0 ? 1 : shape[0];
    code_.AllocStorage(kNone, kAlignment, kInt64, kHostDevice, storage, {&elements, 1});
    code_.AllocTensor(storage, kNone, kInt64, tensor, {shape.data(), shape.size()});
    return tensor;
  }

  CodeWriter code_;
  Reg next_;
  std::vector<Reg> args_;
};

}  // namespace

Result<RemoteModule> MakeRemoteModule(const RemoteSignature& signature) {
  RemoteModule made;
  made.derived = true;
  Module& module = made.module;
  std::vector<std::string> symbols;
  Function function;
  function.name = "main";
  for (const RemoteTensor& input : signature.inputs) {
    const Result<std::vector<Dim>> dims = DimsOf(input, true, &symbols);
    if (!dims) return Forward(dims);
    function.inputs.push_back({input.name, TensorType(input.dtype, Array<Dim>(dims->begin(), dims->end()))});
  }
  const std::size_t known = symbols.size();
  Array<Type> types;
  for (const RemoteTensor& output : signature.outputs) {
    const Result<std::vector<Dim>> dims = DimsOf(output, false, &symbols);
    if (!dims) return Forward(dims);
    for (const Dim dim : *dims)
      made.derived = made.derived && (dim >= 0 || (IsSymbol(dim) && SymbolOf(dim) < known));
    types.push_back(TensorType(output.dtype, Array<Dim>(dims->begin(), dims->end())));
    function.output_names.push_back(output.name);
  }
  module.symbols.assign(symbols.begin(), symbols.end());
  function.result = types.size() == 1 ? types[0] : AdtType(0, types);
  KernelImport kernel;
  kernel.name = kRemoteKernel;
  module.kernels.push_back(std::move(kernel));
  Body body(static_cast<std::uint32_t>(signature.inputs.size()));
  Result<Array<std::uint32_t>> code = body.Write(signature.outputs, &function.register_count);
  if (!code) return Forward(code);
  function.code = *std::move(code);
  module.functions.push_back(std::move(function));
  return made;
}

}  // namespace rewire::serve
