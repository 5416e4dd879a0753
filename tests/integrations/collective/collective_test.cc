// SPDX-License-Identifier: Apache-2.0
// The collectives, beside sums that each rank computes by itself. Run it by mpirun with any number of ranks,
// or alone as a job of one. With REWIRE_TEST_DEVICE, the tensors of calls are on that device: cases that are
// not for it have the tag [host].
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "rewire/kernels/contract/collective.h"
#include "rewire/kernels/cpu/support/half.h"
#include "rewire/tests/vm/test_program.h"

namespace rewire::test {
namespace {

using kernel::cpu::BFloat16;
using kernel::cpu::Computed;
using kernel::cpu::Float16;
using Shape = std::vector<std::int64_t>;

int FromEnvironment(const char* name, int otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : std::atoi(value);
}
int Rank() { return FromEnvironment("REWIRE_COLLECTIVE_RANK", FromEnvironment("OMPI_COMM_WORLD_RANK", 0)); }
int Ranks() { return FromEnvironment("REWIRE_COLLECTIVE_RANKS", FromEnvironment("OMPI_COMM_WORLD_SIZE", 1)); }

std::int64_t Count(const Shape& shape) {
  std::int64_t count = 1;
  for (const std::int64_t dim : shape) count *= dim;
  return count;
}

template <typename T>
std::string NameOf() {
  return kernel::DTypeName(kernel::DTypeOf<T>());
}

template <typename T>
std::string TypeText(const Shape& shape) {
  std::string text = NameOf<T>() + "[";
  for (std::size_t i = 0; i < shape.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  return text + "]";
}

// y = kernel(x), or y = kernel() where there is no x.
std::string OneCall(const std::string& kernel, const std::string& attributes, const std::string& x,
                    const std::string& y) {
  if (const char* device = std::getenv("REWIRE_TEST_DEVICE"); device != nullptr) {
    return ".device gpu = " + std::string(device) + ":0\n.kernel k = \"" + names::OnDevice(kernel) + "\" {" +
           attributes + "}\n.func main(" + (x.empty() ? "" : "x: " + x) + ") -> y: " + y +
           (x.empty() ? "\n" : "\n  %d = device_copy %x, cpu, gpu\n") +
           "  %s = alloc_storage _, alignment=64, " + y + ", gpu\n  %y = alloc_tensor %s, _, " + y +
           "\n  invoke_packed k(" + (x.empty() ? "" : "%d, ") +
           "%y), outputs=1\n  %h = device_copy %y, gpu, cpu\n  ret %h\n.end\n";
  }
  return ".kernel k = \"" + kernel + "\" {" + attributes + "}\n.func main(" + (x.empty() ? "" : "x: " + x) +
         ") -> y: " + y + "\n  %s = alloc_storage _, alignment=64, " + y +
         ", cpu\n  %y = alloc_tensor %s, _, " + y + "\n  invoke_packed k(" + (x.empty() ? "" : "%x, ") +
         "%y), outputs=1\n  ret %y\n.end\n";
}

Program Linked(const std::string& text) {
  Result<Program> program = Program::Link(ExecutableOf(text));
  if (!program) FAIL(program.error().message());
  return *std::move(program);
}

template <typename T>
Tensor TensorOf(const Shape& shape, const std::vector<T>& elements) {
  Result<Tensor> tensor = Tensor::Make(kernel::DTypeOf<T>(), shape);
  REQUIRE(tensor);
  if (!elements.empty()) std::memcpy(tensor->view().data(), elements.data(), elements.size() * sizeof(T));
  return *std::move(tensor);
}

template <typename T>
std::vector<T> ElementsOf(const Result<Value>& result) {
  if (!result) FAIL(result.error().message());
  const Tensor tensor = result->tensor();
  std::vector<T> elements(static_cast<std::size_t>(tensor.view().size()));
  if (!elements.empty()) std::memcpy(elements.data(), tensor.view().data(), elements.size() * sizeof(T));
  return elements;
}

template <typename T>
std::vector<double> Numbers(const std::vector<T>& elements) {
  std::vector<double> numbers;
  for (const T each : elements) numbers.push_back(static_cast<double>(static_cast<Computed<T>>(each)));
  return numbers;
}

// A small integer: sums of those of some ranks are exact in every dtype.
int Drawn(int rank, std::int64_t i) {
  return static_cast<int>(
             (static_cast<std::uint64_t>(rank + 3) * 2654435761u + static_cast<std::uint64_t>(i) * 40503u) >>
             7) %
         13;
}

template <typename T>
std::vector<T> Own(int rank, std::int64_t count) {
  std::vector<T> elements;
  for (std::int64_t i = 0; i < count; ++i)
    elements.push_back(static_cast<T>(static_cast<Computed<T>>(Drawn(rank, i))));
  return elements;
}

double Reduced(const std::string& op, std::int64_t i) {
  double value = Drawn(0, i);
  for (int rank = 1; rank < Ranks(); ++rank) {
    const double other = Drawn(rank, i);
    value = op == "max" ? std::max(value, other) : op == "min" ? std::min(value, other) : value + other;
  }
  return op == "mean" ? value / Ranks() : value;
}

template <typename T>
constexpr bool kIsWhole = std::is_integral_v<T>;

// As the dtype holds it.
template <typename T>
double Held(double value) {
  return static_cast<double>(static_cast<Computed<T>>(static_cast<T>(static_cast<Computed<T>>(value))));
}

TEMPLATE_TEST_CASE("rewire.collective.all_reduce gives every rank what is computed from all", "", float,
                   double, Float16, BFloat16, std::int32_t, std::int64_t, std::uint8_t) {
  // Around the sizes at which algorithms change, and less than one element for each rank.
  for (const Shape& shape :
       {Shape{}, Shape{1}, Shape{3, 5}, Shape{0, 4}, Shape{1023}, Shape{2047, 2}, Shape{5, 4099}}) {
    for (const std::string op : {"sum", "max", "min", "mean"}) {
      if (op == "mean" && kIsWhole<TestType>) continue;
      CAPTURE(NameOf<TestType>(), shape, op);
      const std::string type = TypeText<TestType>(shape);
      VirtualMachine vm(Linked(OneCall(names::kAllReduce, "op=\"" + op + "\"", type, type)));
      const std::int64_t count = Count(shape);
      const std::vector<Value> inputs = {Value(TensorOf(shape, Own<TestType>(Rank(), count)))};
      std::vector<double> expected;
      for (std::int64_t i = 0; i < count; ++i) expected.push_back(Held<TestType>(Reduced(op, i)));
      CHECK(Numbers(ElementsOf<TestType>(vm.TryInvoke("main", inputs))) == expected);
    }
  }
}

TEST_CASE("all_reduce may write over what it reads") {
  for (const std::int64_t size : {7, 9001}) {
    const std::string type = TypeText<float>({size});
    std::string text = OneCall(names::kAllReduce, "", type, type);
    const std::string end = "outputs=1\n";
    text.insert(text.find(end) + end.size(), "  invoke_packed k(%y, %y), outputs=1\n");
    VirtualMachine vm(Linked(text));
    const std::vector<Value> inputs = {Value(TensorOf({size}, Own<float>(Rank(), size)))};
    std::vector<double> expected;
    for (std::int64_t i = 0; i < size; ++i) expected.push_back(Ranks() * Reduced("sum", i));
    CHECK(Numbers(ElementsOf<float>(vm.TryInvoke("main", inputs))) == expected);
  }
}

TEST_CASE("sums of 16-bit floats are rounded once", "[host]") {
  const std::string type = TypeText<Float16>({1});
  VirtualMachine vm(Linked(OneCall(names::kAllReduce, "", type, type)));
  // Above 2048 a float of 16 bits has no odd numbers, so a sum that is rounded at each step stays at 2048.
  const std::vector<Value> inputs = {Value(TensorOf<Float16>({1}, {Float16(Rank() == 0 ? 2048.0f : 1.0f)}))};
  CHECK(Numbers(ElementsOf<Float16>(vm.TryInvoke("main", inputs))) ==
        std::vector<double>{Held<Float16>(2048.0 + Ranks() - 1)});
}

TEST_CASE("a maximum is NaN if a part is, and integers wrap", "[host]") {
  for (const std::int64_t size : {1, 5000}) {
    const std::string type = TypeText<float>({size});
    for (const std::string op : {"max", "min", "sum"}) {
      for (int holder = 0; holder < Ranks(); ++holder) {
        VirtualMachine vm(Linked(OneCall(names::kAllReduce, "op=\"" + op + "\"", type, type)));
        std::vector<float> elements(static_cast<std::size_t>(size), static_cast<float>(Rank()));
        if (holder == Rank()) elements.back() = std::numeric_limits<float>::quiet_NaN();
        const std::vector<Value> inputs = {Value(TensorOf({size}, elements))};
        CHECK(std::isnan(ElementsOf<float>(vm.TryInvoke("main", inputs)).back()));
      }
    }
    const std::string ints = TypeText<std::int32_t>({size});
    VirtualMachine vm(Linked(OneCall(names::kAllReduce, "", ints, ints)));
    const std::vector<std::int32_t> most(static_cast<std::size_t>(size),
                                         std::numeric_limits<std::int32_t>::max());
    const auto sum =
        static_cast<std::int32_t>(static_cast<std::uint32_t>(most[0]) * static_cast<std::uint32_t>(Ranks()));
    const std::vector<Value> inputs = {Value(TensorOf({size}, most))};
    CHECK(ElementsOf<std::int32_t>(vm.TryInvoke("main", inputs)).back() == sum);
  }
}

// A tensor of all ranks: its shape, how its axis is cut, and the elements that it has together.
struct Cut {
  Shape whole;
  int axis = 0;
  Shape sizes;

  std::int64_t Begin(int rank) const {
    std::int64_t begin = 0;
    for (int i = 0; i < rank; ++i) begin += sizes[static_cast<std::size_t>(i)];
    return begin;
  }
  Shape Part(int rank) const {
    Shape part = whole;
    part[static_cast<std::size_t>(axis)] = sizes[static_cast<std::size_t>(rank)];
    return part;
  }
  // The positions in the whole tensor of a part's elements, in order.
  std::vector<std::int64_t> Positions(int rank) const {
    std::int64_t inner = 1;
    for (std::size_t i = static_cast<std::size_t>(axis) + 1; i < whole.size(); ++i) inner *= whole[i];
    const std::int64_t size = sizes[static_cast<std::size_t>(rank)],
                       all = whole[static_cast<std::size_t>(axis)];
    std::vector<std::int64_t> positions;
    for (std::int64_t i = 0; i < Count(Part(rank)); ++i) {
      const std::int64_t row = i / (size * inner), rest = i % (size * inner);
      positions.push_back((row * all + Begin(rank)) * inner + rest);
    }
    return positions;
  }
  std::string Attributes() const {
    std::string text = "axis=" + std::to_string(axis - static_cast<int>(whole.size()));
    const bool equal =
        std::all_of(sizes.begin(), sizes.end(), [&](std::int64_t size) { return size == sizes[0]; });
    if (equal) return text;
    text += ", sizes=[";
    for (std::size_t i = 0; i < sizes.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(sizes[i]);
    return text + "]";
  }
};

// The same on all ranks. `least` is the smallest size of a part where parts differ.
std::vector<Cut> DrawnCuts(std::int64_t least) {
  std::mt19937 dice(20261130);
  const auto draw = [&](int most) {
    return static_cast<std::int64_t>(dice() % static_cast<unsigned>(most + 1));
  };
  std::vector<Cut> cuts;
  for (int i = 0; i < 30; ++i) {
    Cut cut;
    const std::int64_t rank = 1 + draw(2);
    for (std::int64_t axis = 0; axis < rank; ++axis) cut.whole.push_back(draw(i % 5 == 0 ? 60 : 7));
    cut.axis = static_cast<int>(draw(static_cast<int>(rank) - 1));
    const std::int64_t equal = draw(5);
    for (int each = 0; each < Ranks(); ++each)
      cut.sizes.push_back(i % 2 == 0 ? equal : std::max(least, draw(5)));
    std::int64_t sum = 0;
    for (const std::int64_t size : cut.sizes) sum += size;
    cut.whole[static_cast<std::size_t>(cut.axis)] = sum;
    cuts.push_back(cut);
  }
  return cuts;
}

TEMPLATE_TEST_CASE("rewire.collective.all_gather puts the parts of all ranks together along any axis", "",
                   float, BFloat16, std::int64_t, std::uint8_t) {
  for (const Cut& cut : DrawnCuts(0)) {
    CAPTURE(cut.whole, cut.axis, cut.sizes);
    VirtualMachine vm(Linked(OneCall(names::kAllGather, cut.Attributes(),
                                     TypeText<TestType>(cut.Part(Rank())), TypeText<TestType>(cut.whole))));
    const Shape part = cut.Part(Rank());
    const std::vector<Value> inputs = {Value(TensorOf(part, Own<TestType>(Rank(), Count(part))))};
    std::vector<double> expected(static_cast<std::size_t>(Count(cut.whole)));
    for (int rank = 0; rank < Ranks(); ++rank) {
      const std::vector<std::int64_t> positions = cut.Positions(rank);
      for (std::size_t i = 0; i < positions.size(); ++i)
        expected[static_cast<std::size_t>(positions[i])] = Drawn(rank, static_cast<std::int64_t>(i));
    }
    CHECK(Numbers(ElementsOf<TestType>(vm.TryInvoke("main", inputs))) == expected);
  }
}

TEMPLATE_TEST_CASE("rewire.collective.reduce_scatter gives each rank its part along any axis", "", float,
                   double, Float16, BFloat16, std::int32_t, std::int64_t, std::uint8_t) {
  for (const Cut& cut : DrawnCuts(1)) {
    for (const std::string op : {"sum", "max", "mean"}) {
      if (op == "mean" && kIsWhole<TestType>) continue;
      CAPTURE(cut.whole, cut.axis, cut.sizes, op);
      VirtualMachine vm(Linked(OneCall(names::kReduceScatter, cut.Attributes() + ", op=\"" + op + "\"",
                                       TypeText<TestType>(cut.whole), TypeText<TestType>(cut.Part(Rank())))));
      const std::vector<Value> inputs = {Value(TensorOf(cut.whole, Own<TestType>(Rank(), Count(cut.whole))))};
      std::vector<double> expected;
      for (const std::int64_t position : cut.Positions(Rank()))
        expected.push_back(Held<TestType>(Reduced(op, position)));
      CHECK(Numbers(ElementsOf<TestType>(vm.TryInvoke("main", inputs))) == expected);
    }
  }
}

TEST_CASE("rewire.collective.broadcast gives all ranks what the root has") {
  for (int root = 0; root < Ranks(); ++root) {
    for (const Shape& shape : {Shape{}, Shape{3, 0}, Shape{7, 3}, Shape{70001}}) {
      CAPTURE(root, shape);
      const std::string type = TypeText<std::int32_t>(shape);
      VirtualMachine vm(Linked(OneCall(names::kBroadcast, "root=" + std::to_string(root), type, type)));
      const std::vector<Value> inputs = {Value(TensorOf(shape, Own<std::int32_t>(Rank(), Count(shape))))};
      CHECK(ElementsOf<std::int32_t>(vm.TryInvoke("main", inputs)) == Own<std::int32_t>(root, Count(shape)));
    }
  }
}

TEST_CASE("what is sent is received, in order, whatever its size") {
  if (Ranks() == 1) return;
  const int next = (Rank() + 1) % Ranks(), before = (Rank() + Ranks() - 1) % Ranks();
  for (const Shape& shape : {Shape{}, Shape{0}, Shape{3, 7}, Shape{300, 1000}}) {
    const std::string type = TypeText<float>(shape);
    VirtualMachine send(Linked(OneCall(names::kSend, "tag=5, peer=" + std::to_string(next), type, "i64[]")));
    VirtualMachine receive(
        Linked(OneCall(names::kReceive, "tag=5, peer=" + std::to_string(before), "", type)));
    const std::vector<Value> inputs = {Value(TensorOf(shape, Own<float>(Rank(), Count(shape))))};
    // Who sends first waits for the neighbor, so one rank receives first.
    for (const bool sends : {Rank() != 0, Rank() == 0}) {
      if (sends) {
        CHECK(ElementsOf<std::int64_t>(send.TryInvoke("main", inputs)) == Shape{Count(shape)});
      } else {
        CHECK(ElementsOf<float>(receive.TryInvoke("main", {})) == Own<float>(before, Count(shape)));
      }
    }
  }
}

TEST_CASE("a receive takes the call before it as an input", "[host]") {
  if (Ranks() == 1) return;
  const int other = Rank() % 2 == 0 ? Rank() + 1 : Rank() - 1;
  if (other == Ranks()) return;
  const std::string peer = "peer=" + std::to_string(other);
  const std::string allocate = " = alloc_storage _, alignment=64, f32[2], cpu\n";
  VirtualMachine vm(Linked(".kernel send = \"rewire.collective.send\" {" + peer + "}\n" +
                           ".kernel receive = \"rewire.collective.receive\" {" + peer + "}\n" +
                           ".func main(x: f32[2]) -> y: f32[2]\n  %a" + allocate + "  %b" + allocate +
                           "  %sent = alloc_tensor %a, _, i64[]\n  %y = alloc_tensor %b, _, f32[2]\n" +
                           "  invoke_packed send(%x, %sent), outputs=1\n" +
                           "  invoke_packed receive(%sent, %y), outputs=1\n  ret %y\n.end\n"));
  const std::vector<Value> inputs = {Value(TensorOf({2}, Own<float>(Rank(), 2)))};
  CHECK(ElementsOf<float>(vm.TryInvoke("main", inputs)) == Own<float>(other, 2));
}

TEST_CASE("a thousand calls in a row keep step") {
  const std::string type = TypeText<std::int64_t>({3});
  VirtualMachine vm(Linked(OneCall(names::kAllReduce, "", type, type)));
  int wrong = 0;
  for (int i = 0; i < 1000; ++i) {
    const std::vector<Value> inputs = {Value(TensorOf<std::int64_t>({3}, {i, Rank(), i * Rank()}))};
    const std::int64_t ranks = Ranks(), sum = ranks * (ranks - 1) / 2;
    wrong += ElementsOf<std::int64_t>(vm.TryInvoke("main", inputs)) != Shape{i * ranks, sum, i * sum} ? 1 : 0;
  }
  CHECK(wrong == 0);
}

// One of two threads runs this. It returns the first message of a failure, or what differs.
std::string RunOnChannel(int channel) {
  const std::int64_t size = 1 + channel * 3000;
  const std::string type = TypeText<float>({size});
  const Result<Program> program = Program::Link(
      ExecutableOf(OneCall(names::kAllReduce, "channel=" + std::to_string(channel), type, type)));
  if (!program) return program.error().message();
  VirtualMachine vm(*program);
  Result<Tensor> x = Tensor::Make(kernel::DTypeOf<float>(), Shape{size});
  if (!x) return x.error().message();
  for (int i = 0; i < 200; ++i) {
    for (std::int64_t j = 0; j < size; ++j)
      static_cast<float*>(x->view().data())[j] = static_cast<float>(i + Rank() + channel);
    const std::vector<Value> inputs = {Value(*x)};
    const Result<Value> y = vm.TryInvoke("main", inputs);
    if (!y) return y.error().message();
    const Tensor tensor = y->tensor();
    const auto* elements = static_cast<const float*>(tensor.view().data());
    const auto sum = static_cast<float>(Ranks() * (i + channel) + Ranks() * (Ranks() - 1) / 2);
    if (!std::all_of(elements, elements + size, [&](float each) { return each == sum; }))
      return "another sum";
  }
  return {};
}

TEST_CASE("two programs run at once on channels of their own") {
  std::string first, second;
  std::thread other([&] { first = RunOnChannel(1); });
  second = RunOnChannel(2);
  other.join();
  CHECK(first.empty());
  CHECK(second.empty());
  INFO(first << second);
}

TEST_CASE("a second call on a channel that is in use is refused") {
  if (Ranks() == 1) return;
  const std::string type = TypeText<float>({2});
  const auto call = [&] {
    VirtualMachine vm(Linked(OneCall(names::kAllReduce, "channel=9", type, type)));
    return MessageOf(vm.TryInvoke("main", std::vector<Value>{Value(TensorOf<float>({2}, {1, 2}))}));
  };
  if (Rank() == 0) {
    // One of both waits for rank 1, which comes when the other has been refused.
    std::string messages[2];
    const auto call_and_tell = [&](std::string* message, VirtualMachine* vm, VirtualMachine* tell,
                                   const Value& x) {
      const std::vector<Value> inputs = {x};
      *message = MessageOf(vm->TryInvoke("main", inputs));
      if (!message->empty()) (void)tell->TryInvoke("main", inputs);
    };
    const Program program = Linked(OneCall(names::kAllReduce, "channel=9", type, type));
    const Program tells = Linked(OneCall(names::kSend, "tag=9, peer=1", type, "i64[]"));
    VirtualMachine vms[2] = {VirtualMachine(program), VirtualMachine(program)};
    VirtualMachine tell[2] = {VirtualMachine(tells), VirtualMachine(tells)};
    const Value x(TensorOf<float>({2}, {1, 2}));
    std::thread other([&] { call_and_tell(&messages[0], &vms[0], &tell[0], x); });
    call_and_tell(&messages[1], &vms[1], &tell[1], x);
    other.join();
    CHECK(messages[0].empty() != messages[1].empty());
    CHECK_THAT(
        messages[0] + messages[1],
        Catch::Contains("channel 9 is in use by another run of this process; programs that run at once "
                        "need channels of their own"));
    return;
  }
  if (Rank() == 1) {
    VirtualMachine receive(Linked(OneCall(names::kReceive, "tag=9, peer=0", "", type)));
    CHECK(MessageOf(receive.TryInvoke("main", {})).empty());
  }
  CHECK(call().empty());
}

// Every rank refuses such a call before a message is under way.
struct Refused {
  std::string kernel, attributes;
  DLDataType dtype;
  Shape x;
  std::string y, message;
};

TEST_CASE("calls that no rank can make are refused by name, and the next one works") {
  const std::string ranks = std::to_string(Ranks()), rank = std::to_string(Rank());
  const std::string more = std::to_string(Ranks() + 1), twice = std::to_string(2 * Ranks());
  const std::string of_another_job = Ranks() == 1 ? "sizes=[1, 1]" : "sizes=[2]";
  constexpr DLDataType kFloat = kernel::DTypeOf<float>();
  const Refused calls[] = {
      {names::kAllReduce,
       "op=\"mean\"",
       kernel::DTypeOf<std::int32_t>(),
       {2},
       "i32[2]",
       "op mean takes floats, and x has dtype i32"},
      {names::kReduceScatter,
       "op=\"mean\"",
       kernel::DTypeOf<std::uint8_t>(),
       {2},
       "u8[2]",
       "op mean takes floats, and x has dtype u8"},
      {names::kAllReduce, "", kFloat, {2}, "f32[3]", "out has shape [3], expected [2]"},
      {names::kAllReduce, "", kernel::DTypeOf<std::int16_t>(), {2}, "i16[2]", "i16"},
      {names::kAllGather, "", kFloat, {}, "f32[]", "x is a scalar, expected an axis"},
      {names::kAllGather, "axis=1", kFloat, {2}, "f32[2]", "axis is 1, expected at least -1 and less than 1"},
      {names::kAllGather,
       "axis=1",
       kFloat,
       {2, 2},
       "f32[3, " + twice + "]",
       "expected shapes that differ along axis 1 alone"},
      {names::kAllGather, "", kFloat, {2}, "f32[1]", "expected " + ranks + " equal parts along axis 0"},
      {names::kAllGather,
       of_another_job,
       kFloat,
       {2},
       "f32[2]",
       "expected one for each of the " + ranks + " ranks"},
      {names::kBroadcast,
       "root=" + ranks,
       kFloat,
       {2},
       "f32[2]",
       "attribute 'root' is " + ranks + ", expected a rank; there are " + ranks},
      {names::kSend,
       "peer=" + rank,
       kFloat,
       {2},
       "i64[]",
       "attribute 'peer' is " + rank + ", expected another rank; this is rank " + rank + " of " + ranks},
      {names::kSend,
       "peer=" + more,
       kFloat,
       {2},
       "i64[2]",
       "sent has dtype i64 and shape [2], expected one i64"},
      {names::kReceive, "peer=" + more, kFloat, {2}, "f32[2]", "attribute 'peer' is " + more},
  };
  for (const Refused& each : calls) {
    CAPTURE(each.kernel, each.attributes, each.x, each.y);
    std::string type = kernel::DTypeName(each.dtype) + "[";
    for (std::size_t i = 0; i < each.x.size(); ++i) type += (i == 0 ? "" : ", ") + std::to_string(each.x[i]);
    const bool reads = each.kernel != names::kReceive;
    const Result<Program> program =
        Program::Link(ExecutableOf(OneCall(each.kernel, each.attributes, reads ? type + "]" : "", each.y)));
    if (!program) {
      CHECK_THAT(program.error().message(), Catch::Contains(each.message));
      continue;
    }
    const Result<Tensor> x = Tensor::Make(each.dtype, each.x);
    REQUIRE(x);
    VirtualMachine vm(*program);
    const std::vector<Value> inputs(reads ? 1 : 0, Value(*x));
    CHECK_THAT(MessageOf(vm.TryInvoke("main", inputs)), Catch::Contains(each.message));
  }
  for (const std::string channel : {"-1", "32768"}) {
    CHECK_THAT(
        MessageOf(Program::Link(
            ExecutableOf(OneCall(names::kAllReduce, "channel=" + channel, "f32[1]", "f32[1]")))),
        Catch::Contains("attribute 'channel' is " + channel + ", expected at least 0 and at most 32767"));
  }
  CHECK_THAT(MessageOf(Program::Link(ExecutableOf(OneCall(names::kSend, "", "f32[1]", "i64[]")))),
             Catch::Contains("attribute 'peer' is missing"));
  VirtualMachine vm(Linked(OneCall(names::kAllReduce, "", "f32[1]", "f32[1]")));
  CHECK(ElementsOf<float>(vm.TryInvoke("main", std::vector<Value>{Value(TensorOf<float>({1}, {1}))})) ==
        std::vector<float>{static_cast<float>(Ranks())});
}

TEST_CASE("the first dimension of a part is checked against its size") {
  if (Ranks() == 1) return;
  std::string sizes = "1";
  for (int i = 1; i < Ranks(); ++i) sizes += ", 1";
  VirtualMachine vm(Linked(OneCall(names::kAllGather, "sizes=[" + sizes + "]", "f32[2]",
                                   "f32[" + std::to_string(2 * Ranks()) + "]")));
  CHECK_THAT(MessageOf(vm.TryInvoke("main", std::vector<Value>{Value(TensorOf<float>({2}, {1, 2}))})),
             Catch::Contains("expected sizes of " + std::to_string(Ranks()) + " and 1 along axis 0"));
}

}  // namespace
}  // namespace rewire::test
