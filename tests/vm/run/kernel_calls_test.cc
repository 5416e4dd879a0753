// SPDX-License-Identifier: Apache-2.0
// Kernels get and give returned values, slots, workspace, whole trees, alignment.
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "rewire/tests/vm/test_program.h"
#include "rewire/vm/host_function.h"
#include "rewire/vm/loader/kernel_api.h"
#include "rewire/vm/value/objects.h"

namespace rewire::test {
namespace {

int NewArray(void*, const RewireFFIAny* args, std::int32_t, RewireFFIAny* result) {
  // An array that tvm-ffi code would have made: two items, the second an integer.
  struct Array {
    RewireFFIObject header;
    RewireFFISeqCell cell;
    RewireFFIAny items[2];
  };
  auto* array = new Array{};
  array->header.combined_ref_count = kNewObjectCount;
  array->header.type_index = kRewireFFIArray;
  array->header.deleter = [](void* self, int flags) {
    auto* dead = static_cast<Array*>(self);
    if ((flags & kRewireFFIStrongGone) != 0) DropStrong(ObjectOf(dead->items[0]));
    if ((flags & kRewireFFIWeakGone) != 0) delete dead;
  };
  array->items[0] = args[0];
  ObjectOf(args[0])->AddStrong();
  array->items[1] = MakeInteger(kRewireFFIInt, 42);
  array->cell = {array->items, 2, 2, nullptr};
  *result = MakeAny(kRewireFFIArray, array);
  return 0;
}

TEST_CASE("a float that a kernel returns is a scalar of f64, which can be used and returned") {
  LinkOptions options;
  options.kernels.AddFunction("host.half",
                              Packed([](void*, const RewireFFIAny*, std::int32_t, RewireFFIAny* result) {
                                result->type_index = kRewireFFIFloat;
                                result->v_float64 = 0.5;
                                return 0;
                              }));
  options.kernels.AddFunction(
      "host.add", Packed([](void*, const RewireFFIAny* args, std::int32_t, RewireFFIAny*) {
        const auto at = [args](int i) { return static_cast<double*>(RewireTensorOf(&args[i])->data); };
        *at(2) = *at(0) + *at(1);
        return 0;
      }));
  TestAllocator memory;
  options.allocator = memory.allocator();
  {
    VirtualMachine vm(ProgramOf(R"(
      .kernel half = "host.half"
      .kernel add = "host.add"
      .func main() -> (y: f64[], half: value)
        invoke_packed half(), outputs=0
        %h = invoke_packed half(), outputs=0
        %s = alloc_storage _, alignment=64, f64, cpu
        %y = alloc_tensor %s, _, f64
        invoke_packed add(%h, %h, %y), outputs=1
        %both = alloc_adt tag=0 (%y, %h)
        ret %both
      .end)",
                                options));
    for (int i = 0; i < 3; ++i) {
      REQUIRE(MessageOf(vm.TryInvoke("main")).empty());
      for (const auto& [field, expected] : {std::pair{0, 1.0}, std::pair{1, 0.5}}) {
        const TensorView view = vm.result().field(static_cast<std::uint32_t>(field)).tensor().view();
        CHECK((view.dtype() == kFloat64));
        CHECK(view.shape().empty());
        CHECK(*static_cast<const double*>(view.data()) == expected);
      }
    }
  }
  CHECK(memory.blocks() == 0);
}

TEST_CASE("kernels return new tensors, their arguments, integers and arrays") {
  LinkOptions options;
  options.kernels.AddFunction("host.array", Packed(NewArray));
  options.kernels.AddFunction("host.same",
                              Packed([](void*, const RewireFFIAny* args, std::int32_t, RewireFFIAny* result) {
                                ObjectOf(args[0])->AddStrong();
                                *result = args[0];
                                return 0;
                              }));
  options.kernels.AddFunction("host.new",
                              Packed([](void*, const RewireFFIAny*, std::int32_t, RewireFFIAny* result) {
                                const std::int64_t shape[] = {3};
                                if (KernelApi()->new_tensor(kFloat32, 1, shape, kHost, result) != 0)
                                  return -1;
                                auto* data = static_cast<float*>(RewireTensorOf(result)->data);
                                for (int i = 0; i < 3; ++i) data[i] = static_cast<float>(i);
                                return 0;
                              }));
  options.kernels.AddFunction("host.bad",
                              Packed([](void*, const RewireFFIAny*, std::int32_t, RewireFFIAny* result) {
                                const std::int64_t shape[] = {-3};
                                return KernelApi()->new_tensor(kFloat32, 1, shape, kHost, result);
                              }));
  TestAllocator memory;
  options.allocator = memory.allocator();
  {
    VirtualMachine vm(ProgramOf(R"(
      .const c: f32[2] = {1, 2}
      .kernel array = "host.array"
      .kernel same = "host.same"
      .kernel new = "host.new"
      .kernel bad = "host.bad"
      .func array(x: value) -> value
        %r = invoke_packed array(%x), outputs=0
        invoke_packed array(%x), outputs=0
        ret %r
      .end
      .func same(x: value) -> value
        %r = invoke_packed same(%x), outputs=0
        invoke_packed same(%r), outputs=0
        ret %r
      .end
      .func constant() -> value
        %c = load_const c
        %a = invoke_packed array(%c), outputs=0
        %r = invoke_packed same(%c), outputs=0
        %both = alloc_adt tag=1 (%a, %r)
        ret %both
      .end
      .func new() -> value
        invoke_packed new(), outputs=0
        %r = invoke_packed new(), outputs=0
        ret %r
      .end
      .func bad() -> value
        %r = invoke_packed bad(), outputs=0
        ret %r
      .end)",
                                options));
    const Value x = Floats({5, 6});
    for (int i = 0; i < 3; ++i) {
      const Value array = *vm.TryInvoke("array", {&x, 1});
      CHECK(array.tag() == 0);
      CHECK(FloatsOf(array.field(0).tensor()) == std::vector<float>{5, 6});
      CHECK(array.field(1).integer() == 42);
      CHECK(FloatsOf(vm.TryInvoke("same", {&x, 1})->tensor()) == std::vector<float>{5, 6});
      REQUIRE(MessageOf(vm.TryInvoke("constant")).empty());
      CHECK(FloatsOf(vm.result().field(0).field(0).tensor()) == std::vector<float>{1, 2});
      CHECK(FloatsOf(vm.result().field(1).tensor()) == std::vector<float>{1, 2});
      REQUIRE(MessageOf(vm.TryInvoke("new")).empty());
      CHECK(FloatsOf(vm.result().tensor()) == std::vector<float>{0, 1, 2});
      CHECK(MessageOf(vm.TryInvoke("bad")) ==
            "bad@0 (%0 = invoke_packed bad(), outputs=0): ValueError: new_tensor: a dimension is negative or "
            "the size overflows");
    }
  }
  CHECK(memory.blocks() == 0);
}

TEST_CASE("a kernel of objects sees trees whole and makes new ones") {
  LinkOptions options;
  // append(list, value): the fields of the list and one more.
  options.kernels.AddFunction(
      "host.append", Packed([](void*, const RewireFFIAny* args, std::int32_t, RewireFFIAny* result) {
        const RewireKernelApi* api = KernelApi();
        const std::int32_t size = api->adt_size(&args[0]);
        if (size < 0) {
          api->set_error("TypeError", "a list expected");
          return -1;
        }
        std::vector<RewireFFIAny> fields(static_cast<std::size_t>(size) + 1);
        if (api->adt_fields(&args[0], 0, size, fields.data()) != 0) return -1;
        for (std::int32_t i = 0; i < size; ++i) {
          RewireFFIAny same;
          const RewireFFIAny& field = fields[static_cast<std::size_t>(i)];
          if (api->adt_field(&args[0], i, &same) != 0 || same.type_index != field.type_index) return -1;
          if (same.v_int64 != field.v_int64) return -1;
        }
        fields.back() = args[1];
        RewireFFIAny none;
        none.type_index = 1234;
        if (api->adt_field(&args[0], size, &none) == 0) return -1;
        const std::int32_t outside[][2] = {{-1, 1}, {0, -1}, {0, size + 1}, {size, 1}, {size + 1, 0}};
        for (const auto& [begin, count] : outside) {
          if (api->adt_fields(&args[0], begin, count, &none) == 0 || none.type_index != 1234) return -1;
        }
        if (api->adt_fields(&args[0], size, 0, &none) != 0) return -1;
        return api->new_adt(api->adt_tag(&args[0]) + 1, size + 1, fields.data(), result);
      }));
  VirtualMachine vm(ProgramOf(R"(
    .kernel append = "host.append" objects
    .func main(x: value) -> value
      %list = alloc_adt tag=10 ()
      %i = load_consti 4
      %list = invoke_packed append(%list, %x), outputs=0
      %list = invoke_packed append(%list, %i), outputs=0
      %list = invoke_packed append(%list, %list), outputs=0
      ret %list
    .end
    .func wrong(x: value) -> value
      %r = invoke_packed append(%x, %x), outputs=0
      ret %r
    .end)",
                              std::move(options)));
  const Value x = Floats({3});
  for (int i = 0; i < 3; ++i) {
    const Value list = *vm.TryInvoke("main", {&x, 1});
    CHECK(list.tag() == 13);
    REQUIRE(list.field_count() == 3);
    CHECK(FloatsOf(list.field(0).tensor()) == std::vector<float>{3});
    CHECK(list.field(1).integer() == 4);
    CHECK(list.field(2).tag() == 12);
    CHECK(list.field(2).field_count() == 2);
    CHECK(MessageOf(vm.TryInvoke("wrong", {&x, 1})).find("TypeError: a list expected") != std::string::npos);
  }
}

TEST_CASE("each VM and import has a slot; it goes with Trim and with the VM") {
  static int alive = 0;
  LinkOptions options;
  options.kernels.AddFunction("host.count",
                              Packed([](void*, const RewireFFIAny*, std::int32_t, RewireFFIAny* result) {
                                auto* count = static_cast<int*>(KernelApi()->get_slot());
                                if (count == nullptr) {
                                  count = new int(0);
                                  ++alive;
                                  KernelApi()->set_slot(count, [](void* state) {
                                    delete static_cast<int*>(state);
                                    --alive;
                                  });
                                }
                                *result = MakeInteger(kRewireFFIInt, ++*count);
                                return 0;
                              }));
  {
    const Program program = ProgramOf(R"(
      .kernel a = "host.count"
      .kernel b = "host.count"
      .func main() -> value
        %a = invoke_packed a(), outputs=0
        %b = invoke_packed b(), outputs=0
        %c = invoke_packed b(), outputs=0
        %r = alloc_adt tag=0 (%a, %b, %c)
        ret %r
      .end)",
                                      std::move(options));
    VirtualMachine first(program);
    VirtualMachine second(program);
    const auto counts = [](VirtualMachine& vm) {
      REQUIRE(MessageOf(vm.TryInvoke()).empty());
      const Value& r = vm.result();
      return std::vector<std::int64_t>{r.field(0).integer(), r.field(1).integer(), r.field(2).integer()};
    };
    CHECK(counts(first) == std::vector<std::int64_t>{1, 1, 2});
    CHECK(counts(first) == std::vector<std::int64_t>{2, 3, 4});
    CHECK(counts(second) == std::vector<std::int64_t>{1, 1, 2});
    CHECK(alive == 4);
    first.Trim();
    CHECK(alive == 2);
    CHECK(counts(first) == std::vector<std::int64_t>{1, 1, 2});
  }
  CHECK(alive == 0);
}

TEST_CASE("workspace is aligned, counted, several blocks at once, and gone after the call") {
  LinkOptions options;
  options.kernels.AddFunction(
      "host.scratch", Packed([](void*, const RewireFFIAny* args, std::int32_t, RewireFFIAny* result) {
        const std::int64_t bytes = *static_cast<const std::int64_t*>(RewireTensorOf(args)->data);
        void* a = KernelApi()->workspace(static_cast<std::uint64_t>(bytes));
        void* b = a == nullptr ? nullptr : KernelApi()->workspace(static_cast<std::uint64_t>(bytes));
        if (b == nullptr) return -1;
        std::memset(a, 1, static_cast<std::size_t>(bytes));
        std::memset(b, 2, static_cast<std::size_t>(bytes));
        const auto low = reinterpret_cast<std::uintptr_t>(a) | reinterpret_cast<std::uintptr_t>(b);
        *result = MakeInteger(kRewireFFIInt, static_cast<std::int64_t>(low % 64));
        return 0;
      }));
  Limits limits;
  limits.bytes = 1 << 20;
  VirtualMachine vm(ProgramOf(R"(
    .kernel scratch = "host.scratch"
    .func main(n: integer) -> value
      %r = invoke_packed scratch(%n), outputs=0
      %r = invoke_packed scratch(%n), outputs=0
      ret %r
    .end)",
                              std::move(options)),
                    limits);
  const Value fits(400'000);
  const Value over(600'000);
  CHECK(vm.TryInvoke("main", {&fits, 1})->integer() == 0);
  CHECK(vm.bytes_held() >= 800'000);
  CHECK(MessageOf(vm.TryInvoke("main", {&over, 1})).find("MemoryError: no 600000 bytes of workspace") !=
        std::string::npos);
  CHECK(MessageOf(vm.TryInvoke("main", {&fits, 1})).empty());
}

TEST_CASE("a kernel with one output that has no elements is not called") {
  LinkOptions options;
  int calls = 0;
  options.kernels.AddFunction("host.count",
                              Packed(
                                  [](void* handle, const RewireFFIAny*, std::int32_t, RewireFFIAny*) {
                                    ++*static_cast<int*>(handle);
                                    return 0;
                                  },
                                  &calls));
  VirtualMachine vm(ProgramOf(R"(
    .kernel count = "host.count"
    .func main() -> f32[0]
      %s = alloc_storage _, alignment=64, f32[0], cpu
      %y = alloc_tensor %s, _, f32[0]
      invoke_packed count(%y), outputs=1
      invoke_packed count(%y), outputs=0
      ret %y
    .end)",
                              std::move(options)));
  REQUIRE(MessageOf(vm.TryInvoke()).empty());
  CHECK(calls == 1);
}

TEST_CASE("a kernel's new ADT holds integers and objects of the VM alone") {
  LinkOptions options;
  // adt(x): an ADT of one field, which is an array that tvm-ffi made around x.
  options.kernels.AddFunction("host.foreign",
                              Packed([](void*, const RewireFFIAny* args, std::int32_t, RewireFFIAny* result) {
                                RewireFFIAny array{};
                                NewArray(nullptr, args, 1, &array);
                                const int status = KernelApi()->new_adt(0, 1, &array, result);
                                DropStrong(ObjectOf(array));
                                return status;
                              }));
  // The same, with the array's padding as of an object that VMs share.
  options.kernels.AddFunction("host.padded",
                              Packed([](void*, const RewireFFIAny* args, std::int32_t, RewireFFIAny* result) {
                                RewireFFIAny array{};
                                NewArray(nullptr, args, 1, &array);
                                ObjectOf(array)->local = kShared;
                                const int status = KernelApi()->new_adt(0, 1, &array, result);
                                DropStrong(ObjectOf(array));
                                return status;
                              }));
  options.kernels.AddFunction("host.float",
                              Packed([](void*, const RewireFFIAny*, std::int32_t, RewireFFIAny* result) {
                                RewireFFIAny number{};
                                number.type_index = kRewireFFIFloat;
                                return KernelApi()->new_adt(0, 1, &number, result);
                              }));
  options.kernels.AddFunction("host.negative",
                              Packed([](void*, const RewireFFIAny*, std::int32_t, RewireFFIAny* result) {
                                return KernelApi()->new_adt(0, -1, nullptr, result);
                              }));
  options.kernels.AddFunction("host.field",
                              Packed([](void*, const RewireFFIAny* args, std::int32_t, RewireFFIAny* result) {
                                return KernelApi()->adt_field(&args[0], 0, result);
                              }));
  options.kernels.AddFunction("host.fields",
                              Packed([](void*, const RewireFFIAny* args, std::int32_t, RewireFFIAny* result) {
                                return KernelApi()->adt_fields(&args[0], 0, 1, result);
                              }));
  VirtualMachine vm(ProgramOf(R"(
    .kernel foreign = "host.foreign" objects
    .kernel fields = "host.fields" objects
    .kernel padded = "host.padded" objects
    .kernel number = "host.float" objects
    .kernel negative = "host.negative" objects
    .kernel field = "host.field" objects
    .func foreign(x: value) -> value
      %r = invoke_packed foreign(%x), outputs=0
      ret %r
    .end
    .func padded(x: value) -> value
      %r = invoke_packed padded(%x), outputs=0
      ret %r
    .end
    .func number(x: value) -> value
      %r = invoke_packed number(%x), outputs=0
      ret %r
    .end
    .func negative(x: value) -> value
      %r = invoke_packed negative(%x), outputs=0
      ret %r
    .end
    .func field(x: value) -> value
      %r = invoke_packed field(%x), outputs=0
      ret %r
    .end
    .func fields(x: value) -> value
      %r = invoke_packed fields(%x), outputs=0
      ret %r
    .end)",
                              std::move(options)));
  const Value x = Floats({3});
  const auto ends_with = [&](const char* function, const std::string& ending) {
    const std::string message = MessageOf(vm.TryInvoke(function, {&x, 1}));
    INFO(message);
    CHECK((message.size() > ending.size() &&
           message.compare(message.size() - ending.size(), ending.size(), ending) == 0));
  };
  ends_with("foreign", "TypeError: new_adt: field 0 is no tensor, integer or ADT of the VM");
  ends_with("padded", "TypeError: new_adt: field 0 is no tensor, integer or ADT of the VM");
  ends_with("number", "TypeError: new_adt: field 0 is no tensor, integer or ADT of the VM");
  ends_with("negative", "ValueError: new_adt: negative size");
  ends_with("field", "IndexError: adt_field: no ADT, or no such field");
  ends_with("fields", "IndexError: adt_fields: no ADT, or no such fields");
}

// Objects as another runtime would make them. Each counts its end in `gone`.
template <typename T>
RewireFFIAny Foreign(T object, std::int32_t kind, int* gone) {  // NOLINT(readability-non-const-parameter)
  struct Owner {
    T object;
    int* gone;
  };
  auto* owner = new Owner{object, gone};
  auto* header = reinterpret_cast<RewireFFIObject*>(owner);
  header->combined_ref_count = kNewObjectCount;
  header->type_index = kind;
  header->deleter = [](void* self, int flags) {
    auto* dead = static_cast<Owner*>(self);
    if ((flags & kRewireFFIStrongGone) != 0) ++*dead->gone;
    if ((flags & kRewireFFIWeakGone) != 0) delete dead;
  };
  return MakeAny(kind, owner);
}

TEST_CASE("a returned object that the VM cannot take is an error, and let go") {
  static int gone = 0;
  LinkOptions options;
  options.kernels.AddFunction("host.strided",
                              Packed([](void*, const RewireFFIAny*, std::int32_t, RewireFFIAny* result) {
                                static float data[4] = {};
                                static std::int64_t dims[2] = {2, 1}, strides[2] = {2, 1};
                                RewireFFITensorObject tensor{};
                                tensor.tensor = {data, {kDLCPU, 0}, 2, kFloat32, dims, strides, 0};
                                *result = Foreign(tensor, kRewireFFITensor, &gone);
                                return 0;
                              }));
  options.kernels.AddFunction("host.adt",
                              Packed([](void*, const RewireFFIAny*, std::int32_t, RewireFFIAny* result) {
                                *result = Foreign(RewireFFIObject{}, kAdtKind, &gone);
                                return 0;
                              }));
  options.kernels.AddFunction("host.device",
                              Packed([](void*, const RewireFFIAny*, std::int32_t, RewireFFIAny* result) {
                                return KernelApi()->new_tensor(kFloat32, 0, nullptr, {kDLCUDA, 0}, result);
                              }));
  VirtualMachine vm(ProgramOf(R"(
    .kernel strided = "host.strided"
    .kernel adt = "host.adt"
    .kernel device = "host.device"
    .func strided() -> value
      %r = invoke_packed strided(), outputs=0
      ret %r
    .end
    .func adt() -> value
      %r = invoke_packed adt(), outputs=0
      ret %r
    .end
    .func device() -> value
      %r = invoke_packed device(), outputs=0
      ret %r
    .end)",
                              std::move(options)));
  CHECK(
      MessageOf(vm.TryInvoke("strided")) ==
      "strided@0 (%0 = invoke_packed strided(), outputs=0): the kernel returned a tensor that is strided or "
      "has a wrong shape");
  CHECK(gone == 1);
  CHECK(MessageOf(vm.TryInvoke("adt")) ==
        "adt@0 (%0 = invoke_packed adt(), outputs=0): the kernel returned an ADT that Rewire did not make");
  CHECK(gone == 2);
  CHECK(MessageOf(vm.TryInvoke("device")) ==
        "device@0 (%0 = invoke_packed device(), outputs=0): ValueError: new_tensor: the executable does not "
        "name this device");
}

TEST_CASE("a kernel that writes more than its one empty output is called") {
  LinkOptions options;
  options.kernels.AddFunction("host.count",
                              MakePackedFunction([](kernel::TensorView state, kernel::TensorView /*empty*/) {
                                state.data<float>()[0] += 1;
                              }));
  options.storage_fill = StorageFill::kZero;
  VirtualMachine vm(ProgramOf(R"(
    .kernel count = "host.count" writes(0)
    .func main() -> f32[1]
      %s = alloc_storage _, alignment=64, f32[1], cpu
      %state = alloc_tensor %s, _, f32[1]
      %t = alloc_storage _, alignment=64, f32[0], cpu
      %y = alloc_tensor %t, _, f32[0]
      invoke_packed count(%state, %y), outputs=1
      ret %state
    .end)",
                              std::move(options)));
  REQUIRE(MessageOf(vm.TryInvoke()).empty());
  CHECK(FloatsOf(vm.Output(0)) == std::vector<float>{1});
}

TEST_CASE("the kernel table outside a run refuses what needs a VM") {
  RewireFFIAny result;
  CHECK(KernelApi()->workspace(16) == nullptr);
  CHECK(KernelApi()->new_adt(0, 0, nullptr, &result) == -1);
  CHECK(TakeKernelError().message == "called outside a kernel that a VM runs");
  CHECK(KernelApi()->cancelled() == 0);
  CHECK(KernelApi()->thread_count() == 1);
}

}  // namespace
}  // namespace rewire::test
