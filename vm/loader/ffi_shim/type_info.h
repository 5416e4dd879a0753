// SPDX-License-Identifier: Apache-2.0
// The type table as tvm-ffi's C++ reads it: layouts of the C API.
#pragma once

#include <cstdint>

#include "rewire/vm/kernel/ffi_abi.h"

namespace rewire::ffi_shim {

struct FieldInfo {
  RewireFFIByteArray name, documentation, metadata;
  std::int64_t flags;
  std::int64_t size, alignment, offset;  // bytes within the object
  int (*getter)(void* field, RewireFFIAny* result);
  void* setter;  // a function pointer, or a function object with kSetterIsFunction
  RewireFFIAny default_value;
  std::int32_t static_type_index;
};
inline constexpr std::int64_t kHasDefault = 1 << 1;
inline constexpr std::int64_t kSetterIsFunction = 1 << 11;

struct MethodInfo {
  RewireFFIByteArray name, documentation, metadata;
  std::int64_t flags;
  RewireFFIAny method;  // a function object
};

struct TypeMetadata {
  RewireFFIByteArray documentation;
  int (*creator)(void** result);
  std::int32_t total_size;
  std::int32_t structural_equality;
};

struct TypeInfo {
  std::int32_t type_index;
  std::int32_t depth;  // types above it
  RewireFFIByteArray key;
  const TypeInfo** ancestors;  // ancestors[i] is the one of depth i
  std::uint64_t key_hash;
  std::int32_t field_count;
  std::int32_t method_count;
  const FieldInfo* fields;
  const MethodInfo* methods;
  const TypeMetadata* metadata;
};

// An attribute of types: data[type_index - begin_index], None where a type has none.
struct TypeAttributeColumn {
  const RewireFFIAny* data;
  std::int32_t size;
  std::int32_t begin_index;
};

static_assert(sizeof(FieldInfo) == 120 && sizeof(MethodInfo) == 72 && sizeof(TypeMetadata) == 32 &&
                  sizeof(TypeInfo) == 72 && sizeof(TypeAttributeColumn) == 16,
              "layouts of tvm-ffi's C API");

}  // namespace rewire::ffi_shim
