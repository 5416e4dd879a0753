// SPDX-License-Identifier: Apache-2.0
// Public header: <rewire/vm/parameter_set.h>.
//
// ParameterSet: named weights that are bound when Programs are linked.
//
// A set refers to its tensors and does not copy them. Files are mapped: what no Program reads stays on disk,
// and processes share what they read. Linking copies a tensor only if a kernel needs a stricter alignment.
//
// Copies of the handle share the set. The set lives as long as a handle or a Program that was linked with it.
// Several threads may read one set at once. Set is for one thread and never changes what other handles see.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "rewire/base/export.h"
#include "rewire/base/shared_bytes.h"
#include "rewire/base/span.h"
#include "rewire/base/status.h"
#include "rewire/executable_format/constant_data.h"
#include "rewire/executable_format/executable.h"
#include "rewire/vm/tensor.h"

namespace rewire {

class Program;

class REWIRE_API ParameterSet {
 public:
  ParameterSet() = default;

  // Opens the tensors of a file (in librewire_prepare). The content decides the kind: .safetensors, an
  // executable (.rwx, whose named data constants are taken), or a file of TVM's save_param_dict.
  //
  // `options` mean the same as for an executable. Checksums, limits and the host's `codecs` apply only to
  // .rwx files. Errors: kNotFound, kIo, kUnsupported; kInvalidFile, with the file's name, for a damaged file
  // or another kind.
  static Result<ParameterSet> Open(const std::string& path, const OpenOptions& options = {},
                                   const ConstantCodecs& codecs = {});
  // The same from memory, which the set shares.
  static Result<ParameterSet> FromBytes(const SharedBytes& bytes, const OpenOptions& options = {},
                                        const ConstantCodecs& codecs = {});
  // The named data constants of an executable.
  static Result<ParameterSet> Of(const Executable& executable, const ConstantCodecs& codecs = {});
  // The parameters that a Program was linked with and its named constants, computed ones included. They stay
  // alive when the Program is gone. A set made in this way is an offer: a Program takes what it needs, and
  // entries that it does not know are no error (LinkOptions::ignore_extra_parameters).
  static ParameterSet Of(const Program& program);

  // Adds a tensor, or replaces the tensor of that name. The set keeps a reference.
  void Set(std::string name, Tensor tensor);

  // Entries are ordered by name, compared byte by byte.
  std::size_t size() const;
  // `index` must be below size(). The returned name and shape live as long as the handle.
  std::string_view name(std::size_t index) const;
  DLDataType dtype(std::size_t index) const;
  Span<const std::int64_t> shape(std::size_t index) const;
  DLDevice device(std::size_t index) const;
  // Returns the index of a name, or size() if there is none.
  std::size_t Find(std::string_view name) const;

  // Returns the tensor. A compressed tensor is decompressed, unless somebody in the process already holds the
  // decompressed one. It is freed with its last user. Errors: kInvalidFile or kUnsupported if the bytes
  // cannot be decoded; kOutOfMemory.
  Result<Tensor> TryGet(std::size_t index) const;

  // Bytes that TryGet allocates to decompress the tensor. 0 if it needs no decompression.
  std::uint64_t decoded_bytes(std::size_t index) const;
  // Bytes of the whole set as stored, compressed or not.
  std::uint64_t stored_bytes() const;

  // True if a Program may ignore entries that it does not know, even without ignore_extra_parameters. See
  // Of(program).
  bool is_offer() const;

 private:
  struct Rep;
  std::shared_ptr<Rep> rep_;  // null: empty
};

}  // namespace rewire
