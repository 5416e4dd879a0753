// SPDX-License-Identifier: Apache-2.0
// The type table: which type index belongs to which key, what inherits what, reflection.
#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "rewire/vm/loader/ffi_shim/runtime.h"
#include "rewire/vm/loader/ffi_shim/type_info.h"

namespace rewire::ffi_shim {
namespace {

constexpr std::int32_t kFirstDynamic = 128;
constexpr std::int32_t kNoParent = -1;
constexpr std::int32_t kQueryOnly = -2;  // as a parent: do not register; as a result: there is none

struct Builtin {
  std::int32_t index;
  const char* key;
};
// Objects other than ffi.Object inherit from it; the rest are values and inherit from nothing.
constexpr Builtin kBuiltins[] = {
    {kRewireFFINone, "None"},
    {kRewireFFIInt, "int"},
    {kRewireFFIBool, "bool"},
    {kRewireFFIFloat, "float"},
    {kRewireFFIOpaquePtr, "void*"},
    {kRewireFFIDataType, "DataType"},
    {kRewireFFIDevice, "Device"},
    {kRewireFFIDLTensorPtr, "DLTensor*"},
    {kRewireFFIRawStr, "const char*"},
    {kRewireFFIByteArrayPtr, "TVMFFIByteArray*"},
    {kRewireFFIRValueRef, "ObjectRValueRef"},
    {kRewireFFISmallStr, "ffi.SmallStr"},
    {kRewireFFISmallBytes, "ffi.SmallBytes"},
    {kRewireFFIObject, "ffi.Object"},
    {kRewireFFIStr, "ffi.String"},
    {kRewireFFIBytes, "ffi.Bytes"},
    {kRewireFFIError, "ffi.Error"},
    {kRewireFFIFunction, "ffi.Function"},
    {kRewireFFIShape, "ffi.Shape"},
    {kRewireFFITensor, "ffi.Tensor"},
    {kRewireFFIArray, "ffi.Array"},
    {kRewireFFIMap, "ffi.Map"},
    {kRewireFFIModule, "ffi.Module"},
    {74, "ffi.OpaquePyObject"},
    {75, "ffi.List"},
    {76, "ffi.Dict"},
};

// A type and what its TypeInfo points at.
struct Type {
  TypeInfo info{};
  std::string key;
  std::vector<const TypeInfo*> ancestors;
  std::vector<FieldInfo> fields;
  std::vector<MethodInfo> methods;
  std::unique_ptr<TypeMetadata> metadata;
  std::int32_t slots_end = 0;  // indices kept for its children: next_slot .. slots_end - 1
  std::int32_t next_slot = 0;
};

// Read without a lock, since kernels ask while they check arguments: entries appear and then stay.
class TypeTable {
 public:
  TypeTable() {
    for (const Builtin& builtin : kBuiltins) {
      const bool inherits = builtin.index > kRewireFFIObject;
      Add(builtin.key, builtin.index, inherits ? Find(kRewireFFIObject) : nullptr, 0);
    }
  }

  Type* Find(std::int32_t index) const {
    if (index < 0 || index >= kChunks * kChunkSize) return nullptr;
    const Chunk* chunk = chunks_[index / kChunkSize].load(std::memory_order_acquire);
    return chunk == nullptr ? nullptr : chunk->types[index % kChunkSize].load(std::memory_order_acquire);
  }

  // The rest under the mutex.
  std::mutex mutex;

  const std::int32_t* FindKey(std::string_view key) const {
    const auto found = by_key_.find(key);
    return found == by_key_.end() ? nullptr : &found->second;
  }

  // A free index for a type and `slots` children: out of its parent's slots while they last.
  std::int32_t Allocate(Type* parent, std::int32_t slots) {
    const std::int32_t wanted = slots + 1;
    std::int32_t* next = &next_dynamic_;
    if (parent != nullptr && parent->slots_end - parent->next_slot >= wanted) next = &parent->next_slot;
    const std::int32_t index = *next;
    *next += wanted;
    return index;
  }

  // Null when the table is full.
  Type* Add(std::string_view key, std::int32_t index, const Type* parent, std::int32_t slots) {
    if (index >= kChunks * kChunkSize) return nullptr;
    auto* type = new Type;  // types stay for ever, like the code that knows their index
    type->key = key;
    type->next_slot = index + 1;
    type->slots_end = index + 1 + slots;
    if (parent != nullptr) {
      type->ancestors = parent->ancestors;
      type->ancestors.push_back(&parent->info);
    }
    type->info.type_index = index;
    type->info.depth = static_cast<std::int32_t>(type->ancestors.size());
    type->info.key = {type->key.data(), type->key.size()};
    type->info.ancestors = type->ancestors.data();
    type->info.key_hash = std::hash<std::string>()(type->key);
    by_key_.emplace(type->key, index);
    std::atomic<Chunk*>& chunk = chunks_[index / kChunkSize];
    if (chunk.load(std::memory_order_relaxed) == nullptr) chunk.store(new Chunk, std::memory_order_release);
    chunk.load(std::memory_order_relaxed)->types[index % kChunkSize].store(type, std::memory_order_release);
    return type;
  }

  struct Column {
    TypeAttributeColumn column{};
    std::deque<std::vector<RewireFFIAny>> data;  // the last is current; readers may still hold a former one
  };
  std::map<std::string, Column, std::less<>> columns;
  std::deque<std::string> texts;

  RewireFFIByteArray Keep(const RewireFFIByteArray& text) {
    const std::string& kept = texts.emplace_back(View(text));
    return {kept.data(), kept.size()};
  }

 private:
  static constexpr std::int32_t kChunkSize = 256;
  static constexpr std::int32_t kChunks = 256;
  struct Chunk {
    std::atomic<Type*> types[kChunkSize] = {};
  };
  std::atomic<Chunk*> chunks_[kChunks] = {};
  std::map<std::string, std::int32_t, std::less<>> by_key_;
  std::int32_t next_dynamic_ = kFirstDynamic;
};

TypeTable& Types() {
  static auto* types = new TypeTable;
  return *types;
}

int RaiseUnknownType(std::int32_t index) {
  return Raise("TypeError", "type index " + std::to_string(index) + " is not registered");
}

}  // namespace

REWIRE_FFI_API int TVMFFITypeKeyToIndex(const RewireFFIByteArray* key, std::int32_t* index) {
  TypeTable& types = Types();
  const std::lock_guard<std::mutex> lock(types.mutex);
  const std::int32_t* found = types.FindKey(View(*key));
  if (found == nullptr) return Raise("KeyError", "no type has the key '" + std::string(View(*key)) + "'");
  *index = *found;
  return 0;
}

REWIRE_FFI_API std::int32_t TVMFFITypeGetOrAllocIndex(const RewireFFIByteArray* key,
                                                      std::int32_t static_index, std::int32_t /*depth*/,
                                                      std::int32_t child_slots,
                                                      std::int32_t /*slots_can_overflow*/,
                                                      std::int32_t parent_index) {
  TypeTable& types = Types();
  const std::lock_guard<std::mutex> lock(types.mutex);
  if (const std::int32_t* known = types.FindKey(View(*key)); known != nullptr) return *known;
  if (parent_index == kQueryOnly) return kQueryOnly;
  Type* parent = parent_index == kNoParent ? nullptr : types.Find(parent_index);
  const std::int32_t index = static_index >= 0 ? static_index : types.Allocate(parent, child_slots);
  return types.Add(View(*key), index, parent, child_slots) != nullptr ? index : kRewireFFIObject;
}

REWIRE_FFI_API const TypeInfo* TVMFFIGetTypeInfo(std::int32_t index) {
  const Type* type = Types().Find(index);
  // C++ kernels do not check: what nobody has registered is an object of no known kind.
  return type != nullptr ? &type->info : &Types().Find(kRewireFFIObject)->info;
}

REWIRE_FFI_API int TVMFFITypeRegisterField(std::int32_t index, const FieldInfo* given) {
  TypeTable& types = Types();
  const std::lock_guard<std::mutex> lock(types.mutex);
  Type* type = types.Find(index);
  if (type == nullptr) return RaiseUnknownType(index);
  FieldInfo& field = type->fields.emplace_back(*given);
  field.name = types.Keep(given->name);
  field.documentation = types.Keep(given->documentation);
  field.metadata = types.Keep(given->metadata);
  if ((field.flags & kHasDefault) != 0) field.default_value = ToOwned(given->default_value);
  if ((field.flags & kSetterIsFunction) != 0) RetainObject(static_cast<RewireFFIObject*>(field.setter));
  type->info.fields = type->fields.data();
  type->info.field_count = static_cast<std::int32_t>(type->fields.size());
  return 0;
}

REWIRE_FFI_API int TVMFFITypeRegisterMethod(std::int32_t index, const MethodInfo* given) {
  TypeTable& types = Types();
  const std::lock_guard<std::mutex> lock(types.mutex);
  Type* type = types.Find(index);
  if (type == nullptr) return RaiseUnknownType(index);
  MethodInfo& method = type->methods.emplace_back(*given);
  method.name = types.Keep(given->name);
  method.documentation = types.Keep(given->documentation);
  method.metadata = types.Keep(given->metadata);
  method.method = ToOwned(given->method);
  type->info.methods = type->methods.data();
  type->info.method_count = static_cast<std::int32_t>(type->methods.size());
  return 0;
}

REWIRE_FFI_API int TVMFFITypeRegisterMetadata(std::int32_t index, const TypeMetadata* given) {
  TypeTable& types = Types();
  const std::lock_guard<std::mutex> lock(types.mutex);
  Type* type = types.Find(index);
  if (type == nullptr) return RaiseUnknownType(index);
  type->metadata = std::make_unique<TypeMetadata>(*given);
  type->metadata->documentation = types.Keep(given->documentation);
  type->info.metadata = type->metadata.get();
  return 0;
}

REWIRE_FFI_API int TVMFFITypeRegisterAttr(std::int32_t index, const RewireFFIByteArray* name,
                                          const RewireFFIAny* value) {
  TypeTable& types = Types();
  const std::lock_guard<std::mutex> lock(types.mutex);
  // kTVMFFIAny, -1, stands for all types: the column's entry in front of type 0 is not part of this table.
  if (types.Find(index) == nullptr) return RaiseUnknownType(index);
  TypeTable::Column& column = types.columns[std::string(View(*name))];
  if (column.data.empty() || column.data.back().size() <= static_cast<std::size_t>(index)) {
    std::vector<RewireFFIAny> grown(2 * static_cast<std::size_t>(index) + 1);
    if (!column.data.empty()) std::copy(column.data.back().begin(), column.data.back().end(), grown.begin());
    column.data.push_back(std::move(grown));
    column.column.data = column.data.back().data();
    column.column.size = static_cast<std::int32_t>(column.data.back().size());
  }
  column.data.back()[static_cast<std::size_t>(index)] = ToOwned(*value);
  return 0;
}

REWIRE_FFI_API const TypeAttributeColumn* TVMFFIGetTypeAttrColumn(const RewireFFIByteArray* name) {
  TypeTable& types = Types();
  const std::lock_guard<std::mutex> lock(types.mutex);
  const auto found = types.columns.find(View(*name));
  return found == types.columns.end() ? nullptr : &found->second.column;
}

}  // namespace rewire::ffi_shim
