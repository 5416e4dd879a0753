// SPDX-License-Identifier: Apache-2.0
// The type table of the tvm-ffi runtime that Rewire brings.
#include "rewire/vm/loader/ffi_shim/type_info.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "rewire/tests/vm/loader/ffi_shim/shim_runtime.h"

namespace rewire::test {
namespace {

using ffi_shim::FieldInfo;
using ffi_shim::MethodInfo;
using ffi_shim::TypeAttributeColumn;
using ffi_shim::TypeInfo;
using ffi_shim::TypeMetadata;

constexpr std::int32_t kNoParent = -1, kQueryOnly = -2, kAnyFreeIndex = -1;

class Types {
 public:
  std::int32_t Register(const std::string& key, std::int32_t parent, std::int32_t slots = 0,
                        std::int32_t index = kAnyFreeIndex) const {
    const RewireFFIByteArray bytes = BytesOf(key);
    return register_(&bytes, index, 0, slots, 1, parent);
  }
  const TypeInfo& InfoOf(std::int32_t index) const { return *info_(index); }
  int Find(const std::string& key, std::int32_t* index) const {
    const RewireFFIByteArray bytes = BytesOf(key);
    return runtime_.Get<int(const RewireFFIByteArray*, std::int32_t*)>("TVMFFITypeKeyToIndex")(&bytes, index);
  }
  const ShimRuntime& runtime() const { return runtime_; }

 private:
  ShimRuntime runtime_;
  std::int32_t (*register_)(const RewireFFIByteArray*, std::int32_t, std::int32_t, std::int32_t, std::int32_t,
                            std::int32_t) =
      runtime_.Get<std::remove_pointer_t<decltype(register_)>>("TVMFFITypeGetOrAllocIndex");
  const TypeInfo* (*info_)(std::int32_t) =
      runtime_.Get<std::remove_pointer_t<decltype(info_)>>("TVMFFIGetTypeInfo");
};

std::string TextOf(const RewireFFIByteArray& bytes) { return {bytes.data, bytes.size}; }

TEST_CASE("types of tvm-ffi have their index, their key and their ancestors") {
  const Types types;
  std::int32_t index = 0;
  REQUIRE(types.Find("ffi.Tensor", &index) == 0);
  CHECK(index == kRewireFFITensor);
  CHECK(TextOf(types.InfoOf(index).key) == "ffi.Tensor");
  REQUIRE(types.InfoOf(index).depth == 1);
  CHECK(types.InfoOf(index).ancestors[0]->type_index == kRewireFFIObject);
  CHECK(types.InfoOf(kRewireFFIInt).depth == 0);
  CHECK(types.Find("test.Nobody", &index) == -1);
  CHECK(types.runtime().TakeError() == "KeyError: no type has the key 'test.Nobody'");
  CHECK(types.Register("test.Nobody", kQueryOnly) == kQueryOnly);
  // C++ kernels do not check what they get.
  CHECK(types.InfoOf(60000).type_index == kRewireFFIObject);
  CHECK(types.InfoOf(-7).type_index == kRewireFFIObject);
}

TEST_CASE("children take the indices that their parent keeps for them, and others behind all") {
  const Types types;
  const std::int32_t parent = types.Register("test.Parent", kRewireFFIObject, 2);
  CHECK(types.Register("test.Parent", kRewireFFIObject, 2) == parent);  // registered once
  const std::int32_t first = types.Register("test.First", parent),
                     second = types.Register("test.Second", parent);
  const std::int32_t third = types.Register("test.Third", parent);
  CHECK(first == parent + 1);
  CHECK(second == parent + 2);
  CHECK(third > parent + 2);
  const TypeInfo& info = types.InfoOf(third);
  REQUIRE(info.depth == 2);
  CHECK(info.ancestors[0]->type_index == kRewireFFIObject);
  CHECK(info.ancestors[1]->type_index == parent);
  CHECK(info.key_hash != types.InfoOf(second).key_hash);
  const std::int32_t alone = types.Register("test.Alone", kNoParent);
  CHECK(types.InfoOf(alone).depth == 0);
  // The table has an end.
  CHECK(types.Register("test.Beyond", kRewireFFIObject, 0, 65536) == kRewireFFIObject);
}

TEST_CASE("fields, methods, metadata and attributes of a type are kept as copies") {
  const Types types;
  const std::int32_t type = types.Register("test.Reflected", kRewireFFIObject);
  const auto field_of = types.runtime().Get<int(std::int32_t, const FieldInfo*)>("TVMFFITypeRegisterField");
  const auto method_of =
      types.runtime().Get<int(std::int32_t, const MethodInfo*)>("TVMFFITypeRegisterMethod");
  const auto metadata_of =
      types.runtime().Get<int(std::int32_t, const TypeMetadata*)>("TVMFFITypeRegisterMetadata");
  const auto attribute_of =
      types.runtime().Get<int(std::int32_t, const RewireFFIByteArray*, const RewireFFIAny*)>(
          "TVMFFITypeRegisterAttr");
  const auto column_of =
      types.runtime().Get<const TypeAttributeColumn*(const RewireFFIByteArray*)>("TVMFFIGetTypeAttrColumn");
  for (const char* name : {"one", "two"}) {
    std::string text = name;  // gone when the type is looked at
    FieldInfo field{};
    field.name = field.documentation = field.metadata = BytesOf(text);
    field.offset = 24;
    REQUIRE(field_of(type, &field) == 0);
    MethodInfo method{};
    method.name = method.documentation = method.metadata = BytesOf(text);
    REQUIRE(method_of(type, &method) == 0);
    TypeMetadata metadata{};
    metadata.documentation = BytesOf(text);
    metadata.total_size = 48;
    REQUIRE(metadata_of(type, &metadata) == 0);
    text = "???";
  }
  const TypeInfo& info = types.InfoOf(type);
  REQUIRE(info.field_count == 2);
  REQUIRE(info.method_count == 2);
  CHECK(TextOf(info.fields[0].name) == "one");
  CHECK(TextOf(info.fields[1].documentation) == "two");
  CHECK(info.fields[1].offset == 24);
  CHECK(TextOf(info.methods[1].metadata) == "two");
  CHECK(info.metadata->total_size == 48);
  CHECK(TextOf(info.metadata->documentation) == "two");
  const RewireFFIByteArray name = BytesOf("test.attribute");
  CHECK(column_of(&name) == nullptr);
  for (const std::int32_t of : {std::int32_t{kRewireFFIInt}, type}) {
    RewireFFIAny value{};
    value.type_index = kRewireFFIInt;
    value.v_int64 = 7 + of;
    REQUIRE(attribute_of(of, &name, &value) == 0);
  }
  const TypeAttributeColumn* column = column_of(&name);
  REQUIRE(column != nullptr);
  REQUIRE(column->begin_index <= kRewireFFIInt);
  REQUIRE(column->size > type);
  CHECK(column->data[kRewireFFIInt - column->begin_index].v_int64 == 7 + kRewireFFIInt);
  CHECK(column->data[type - column->begin_index].v_int64 == 7 + type);
  CHECK(column->data[type - 1 - column->begin_index].type_index == kRewireFFINone);
  const FieldInfo field{};
  CHECK(field_of(60001, &field) == -1);
  CHECK(types.runtime().TakeError() == "TypeError: type index 60001 is not registered");
}

TEST_CASE("threads that register the same types get one index for each key") {
  const Types types;
  constexpr int kThreads = 4, kKeys = 40;
  std::vector<std::vector<std::int32_t>> given(kThreads, std::vector<std::int32_t>(kKeys));
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      for (int i = 0; i < kKeys; ++i) {
        const int key = (i * 7 + thread * 11) % kKeys;
        const std::string text = "test.Shared" + std::to_string(key);
        const std::int32_t index = types.Register(text, kRewireFFIObject);
        given[static_cast<std::size_t>(thread)][static_cast<std::size_t>(key)] = index;
        if (TextOf(types.InfoOf(index).key) != text) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  for (const auto& of_thread : given) CHECK(of_thread == given[0]);
  CHECK(std::set<std::int32_t>(given[0].begin(), given[0].end()).size() == kKeys);
}

}  // namespace
}  // namespace rewire::test
