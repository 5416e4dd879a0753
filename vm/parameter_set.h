// SPDX-License-Identifier: Apache-2.0
// ParameterSet: named weights, to be bound when Programs are linked.
//
// A set refers to its tensors and copies none: files are mapped, so that what no Program reads stays on disk
// and processes share what they read. Linking copies what a kernel needs aligned more than it is. Copies of
// the handle share the set; it lives as long as a handle or a Program that was linked with it. Any number of
// threads may read one set; Set is for one thread, and never changes what other handles see.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/export.h"
#include "base/shared_bytes.h"
#include "base/span.h"
#include "base/status.h"
#include "executable_format/constant_data.h"
#include "executable_format/executable.h"
#include "vm/tensor.h"

namespace rewire {

class Program;

class REWIRE_API ParameterSet {
 public:
  ParameterSet() = default;

  // The tensors of a file (librewire_prepare), which its content tells the kind of: .safetensors, an
  // executable (.rwx; its data constants that have names), or what TVM's save_param_dict wrote. kNotFound,
  // kIo; kInvalidFile, with the file's name: none of these, or damaged; kUnsupported. `options` mean what
  // they do for an executable; checksums and limits exist in .rwx files alone, and so do the host's `codecs`.
  static Result<ParameterSet> Open(const std::string& path, const OpenOptions& options = {},
                                   const ConstantCodecs& codecs = {});
  // The same from memory, which the set shares.
  static Result<ParameterSet> FromBytes(const SharedBytes& bytes, const OpenOptions& options = {},
                                        const ConstantCodecs& codecs = {});
  // An executable's data constants that have names.
  static Result<ParameterSet> Of(const Executable& executable, const ConstantCodecs& codecs = {});
  // What a Program was linked with, and its named constants, computed ones included: they stay when the
  // Program goes. Offered to Programs that want them: none is one too many
  // (LinkOptions::ignore_extra_parameters).
  static ParameterSet Of(const Program& program);

  // Adds a tensor, or puts it in the place of one of that name. The set keeps a reference.
  void Set(std::string name, Tensor tensor);

  // In the order of their names, byte by byte.
  std::size_t size() const;
  // `index` < size(); what they refer to lives as long as the handle.
  std::string_view name(std::size_t index) const;
  DLDataType dtype(std::size_t index) const;
  Span<const std::int64_t> shape(std::size_t index) const;
  DLDevice device(std::size_t index) const;
  // The index of a name, or size().
  std::size_t Find(std::string_view name) const;

  // The tensor; a compressed one is decompressed if no one in the process holds it, and let go with its last
  // user. kInvalidFile, kUnsupported: its bytes cannot be decoded; kOutOfMemory.
  Result<Tensor> TryGet(std::size_t index) const;

  // Whether Programs may leave some of it alone without being asked: see Of.
  bool is_offer() const;

 private:
  struct Rep;
  std::shared_ptr<Rep> rep_;  // null: empty
};

}  // namespace rewire
