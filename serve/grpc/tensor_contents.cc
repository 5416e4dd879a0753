// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/grpc/tensor_contents.h"

#include <bit>
#include <cstring>
#include <string>

#include "rewire/base/dtype.h"
#include "rewire/serve/core/wire_types.h"
#include "rewire/serve/grpc/protobuf_wire.h"

namespace rewire::serve {
namespace {

// Fields of InferTensorContents, each for a group of datatypes.
enum class List : std::uint32_t { kNone, kBool, kInt, kInt64, kUInt, kUInt64, kFloat32, kFloat64 };

List ListOf(DLDataType dtype) {
  if (dtype == kBool8) return List::kBool;
  if (dtype == kFloat32) return List::kFloat32;
  if (dtype == kFloat64) return List::kFloat64;
  if (dtype.code == kInt) return dtype.bits == 64 ? List::kInt64 : List::kInt;
  if (dtype.code == kUInt) return dtype.bits == 64 ? List::kUInt64 : List::kUInt;
  return List::kNone;
}

WireType TypeOf(List list) {
  return list == List::kFloat32   ? WireType::kFixed32
         : list == List::kFloat64 ? WireType::kFixed64
                                  : WireType::kVarint;
}

// Whether a number that was sent as a varint is an element of the dtype.
bool Fits(std::uint64_t number, DLDataType dtype) {
  if (dtype == kBool8) return number <= 1;
  if (dtype.bits == 64) return true;
  if (dtype.code == kUInt) return number < std::uint64_t{1} << dtype.bits;
  const auto value = static_cast<std::int64_t>(number);
  const std::int64_t most = std::int64_t{1} << (dtype.bits - 1);
  return value >= -most && value < most;
}

// Texts are a list of bytes; each takes its size in front.
Status ReadTexts(std::string_view contents, const std::string& where, Arena* memory, InputTensor* input) {
  constexpr std::uint32_t kTexts = 8;
  std::string wire;
  WireReader reader(contents);
  while (reader.Next()) {
    if (!reader.Is(kTexts, WireType::kBytes)) {
      return Fail(StatusCode::kInvalidArgument,
                  where + ": the datatype BYTES has another list of 'contents'");
    }
    AppendWireText(reader.bytes(), &wire);
  }
  if (reader.malformed()) return Fail(StatusCode::kInvalidArgument, where + ": 'contents' is malformed");
  std::byte* const elements = memory->Allocate(wire.size() + 1);
  if (elements == nullptr)
    return Fail(StatusCode::kOutOfMemory, where + ": there is no memory for its elements");
  std::memcpy(elements, wire.data(), wire.size());
  input->data = {elements, wire.size()};
  return {};
}

}  // namespace

Status ReadTensorContents(std::string_view contents, const std::string& where, Arena* memory,
                          InputTensor* input) {
  if (input->dtype == kWireText) return ReadTexts(contents, where, memory, input);
  const List known = ListOf(input->dtype);
  if (known == List::kNone) {
    return Fail(StatusCode::kUnsupported, where + ": 'contents' has no list for " +
                                              std::string(WireName(input->dtype)) +
                                              "; send raw_input_contents");
  }
  const auto list = static_cast<std::uint32_t>(known);
  const WireType type = TypeOf(known);
  const std::size_t element = input->dtype.bits / 8U;
  // Each element takes at least a byte, so memory follows what has arrived.
  std::byte* const elements = memory->Allocate(contents.size() * element + 1);
  if (elements == nullptr)
    return Fail(StatusCode::kOutOfMemory, where + ": there is no memory for its elements");
  std::size_t bytes = 0;
  const auto add = [&](std::uint64_t number) {
    std::memcpy(elements + bytes, &number, element);  // little-endian: the low bytes come first
    bytes += element;
  };
  WireReader reader(contents);
  while (reader.Next()) {
    if (reader.field() != list) {
      return Fail(StatusCode::kInvalidArgument, where + ": the datatype " +
                                                    std::string(WireName(input->dtype)) +
                                                    " has another list of 'contents'");
    }
    if (reader.Is(list, WireType::kBytes) && type != WireType::kVarint) {
      if (reader.bytes().size() % element != 0)
        return Fail(StatusCode::kInvalidArgument, where + ": 'contents' ends within an element");
      std::memcpy(elements + bytes, reader.bytes().data(), reader.bytes().size());
      bytes += reader.bytes().size();
      continue;
    }
    std::string_view rest = reader.bytes();
    const bool packed = reader.Is(list, WireType::kBytes);
    if (!packed && reader.type() != type)
      return Fail(StatusCode::kInvalidArgument, where + ": 'contents' is malformed");
    std::uint64_t number = reader.number();
    while (!packed || !rest.empty()) {
      if (packed && !WireReader::TakeVarint(&rest, &number))
        return Fail(StatusCode::kInvalidArgument, where + ": 'contents' is malformed");
      if (type == WireType::kVarint && !Fits(number, input->dtype)) {
        return Fail(StatusCode::kInvalidArgument, where + ": element " + std::to_string(bytes / element) +
                                                      " of 'contents' is no " +
                                                      std::string(WireName(input->dtype)));
      }
      add(number);
      if (!packed) break;
    }
  }
  if (reader.malformed()) return Fail(StatusCode::kInvalidArgument, where + ": 'contents' is malformed");
  input->data = {elements, bytes};
  return {};
}

}  // namespace rewire::serve
