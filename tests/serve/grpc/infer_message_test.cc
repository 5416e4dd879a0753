// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/grpc/infer_message.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "rewire/base/dtype.h"
#include "rewire/serve/core/wire_types.h"
#include "rewire/serve/grpc/protobuf_wire.h"
#include "rewire/tests/serve/grpc/grpc_client.h"

namespace rewire::test {
namespace {

using Catch::Contains;
using serve::WireWriter;

const std::vector<float> kMessageX = {1, -2, 3.5F, 4};

class AskedRequest : public serve::Request {
  void Finish() override {}
};

// An input of a datatype, with its elements in a list.
std::string WithContents(const char* datatype, std::uint32_t field, bool packed,
                         const std::vector<std::int64_t>& numbers, std::size_t fixed) {
  std::string list;
  std::string lists;
  for (const std::int64_t number : numbers) {
    std::string element;
    if (fixed != 0) {
      element.assign(reinterpret_cast<const char*>(&number), fixed);
    } else {
      WireWriter(&element).AlwaysNumber(1, static_cast<std::uint64_t>(number));
      element.erase(0, 1);
    }
    list += element;
    const int type = fixed == 0 ? 0 : fixed == 4 ? 5 : 1;
    lists += static_cast<char>(field << 3 | type);
    lists += element;
  }
  std::string message;
  WireWriter(&message).Text(1, "double").Message(5, [&](WireWriter* input) {
    input->Text(1, "x").Text(2, datatype).Packed(3, std::vector<std::size_t>{numbers.size()});
    if (!packed) {
      input->AlwaysText(5, lists);
    } else {
      input->Message(5, [&](WireWriter* contents) { contents->AlwaysText(field, list); });
    }
  });
  return message;
}

TEST_CASE("elements in lists, packed or not, are those that raw contents would have") {
  struct Row {
    const char* datatype;
    std::uint32_t field;
    std::size_t fixed;  // bytes of an element on the wire; 0: a varint
    std::vector<std::int64_t> numbers;
  };
  const std::vector<Row> rows = {{"BOOL", 1, 0, {0, 1, 1}},
                                 {"INT8", 2, 0, {-128, 127, 0}},
                                 {"INT16", 2, 0, {-32768, 32767}},
                                 {"INT32", 2, 0, {-2147483648LL, 2147483647, 5}},
                                 {"INT64", 3, 0, {-1, INT64_MIN, INT64_MAX}},
                                 {"UINT8", 4, 0, {0, 255}},
                                 {"UINT16", 4, 0, {65535}},
                                 {"UINT32", 4, 0, {4294967295LL, 0}},
                                 {"UINT64", 5, 0, {-1, 0}},
                                 {"FP32", 6, 4, {0x3f800000, 0x40490fdb}},
                                 {"FP64", 7, 8, {0x3ff0000000000000, 1}}};
  const serve::SharedRegions regions;
  for (const Row& row : rows) {
    for (const bool packed : {true, false}) {
      INFO(row.datatype << " " << packed);
      const std::string message = WithContents(row.datatype, row.field, packed, row.numbers, row.fixed);
      AskedRequest request;
      std::vector<serve::OutputRegion> regions_of;
      const Status read = serve::ReadInferRequest(message, regions, &request, &regions_of);
      REQUIRE(read);
      const std::size_t element =
          serve::ParseWireName(row.datatype)->bits == 1 ? 1 : serve::ParseWireName(row.datatype)->bits / 8U;
      REQUIRE(request.inputs[0].data.size() == element * row.numbers.size());
      for (std::size_t i = 0; i < row.numbers.size(); ++i)
        CHECK(std::memcmp(request.inputs[0].data.data() + i * element, &row.numbers[i], element) == 0);
    }
  }
}

TEST_CASE("gRPC: requests for inference that are wrong say what is") {
  GrpcServer server;
  GrpcClient client(server.port());
  const auto refused = [&](int status, const std::string& text, const std::function<void(WireWriter*)>& input,
                           const std::function<void(WireWriter*)>& more = {}) {
    std::string message;
    WireWriter writer(&message);
    writer.Text(1, "double").Message(5, input);
    if (more) more(&writer);
    const GrpcAnswer& answer = client.Wait(client.Call("ModelInfer", Framed(message)));
    INFO(text);
    CHECK(answer.status() == status);
    CHECK_THAT(answer.headers.count("grpc-message") ? answer.headers.at("grpc-message") : "", Contains(text));
  };
  const auto input = [](const char* datatype, const std::function<void(WireWriter*)>& more = {}) {
    return [=](WireWriter* writer) {
      writer->Text(1, "x").Text(2, datatype).Packed(3, std::vector<int>{2});
      if (more) more(writer);
    };
  };
  const auto contents = [](const char* list, std::uint32_t field) {
    return [=](WireWriter* writer) {
      writer->Message(5, [&](WireWriter* lists) { lists->AlwaysText(field, list); });
    };
  };
  const auto parameter = [](const char* name, const std::function<void(WireWriter*)>& value) {
    return [=](WireWriter* writer) { writer->Entry(4, name, value); };
  };
  const auto text = [](const char* value) {
    return [=](WireWriter* writer) { writer->AlwaysText(3, value); };
  };
  const auto number = [](std::uint64_t value) {
    return [=](WireWriter* writer) { writer->AlwaysNumber(2, value); };
  };
  refused(3, "input 'x': there is no datatype 'FP7' here", input("FP7"));
  refused(3, "1 of raw_input_contents expected, 0 given", input("FP32"));
  refused(3, "0 of raw_input_contents expected, 1 given", input("INT32", contents("\x01\x02", 2)),
          [](WireWriter* writer) { writer->AlwaysText(7, "12345678"); });
  refused(3, "a size of its shape is negative",
          [](WireWriter* writer) { writer->Text(1, "x").Text(2, "FP32").Packed(3, std::vector<int>{-2}); });
  refused(3, "more than 64 dimensions", [](WireWriter* writer) {
    writer->Text(1, "x").Text(2, "FP32").Packed(3, std::vector<int>(65, 1));
  });
  refused(3, "element 1 of 'contents' is no INT8", input("INT8", contents("\x01\x80\x01", 2)));
  refused(3, "element 0 of 'contents' is no BOOL", input("BOOL", contents("\x02", 1)));
  refused(3, "element 0 of 'contents' is no UINT16", input("UINT16", contents("\x80\x80\x04", 4)));
  refused(3, "has another list of 'contents'", input("FP32", contents("\x01\x02", 2)));
  refused(3, "'contents' ends within an element", input("FP32", contents("12345", 6)));
  refused(3, "'contents' is malformed", input("INT32", contents("\xff", 2)));
  refused(12, "'contents' has no list for FP16", input("FP16", contents("12", 2)));
  refused(5, "input 'x'", input("FP32", [&](WireWriter* writer) {
            parameter("shared_memory_region", text("none"))(writer);
            parameter("shared_memory_byte_size", number(8))(writer);
          }));
  refused(3, "'shared_memory_byte_size' is missing",
          input("FP32", parameter("shared_memory_region", text("none"))));
  refused(3, "must be the name of a region", input("FP32", parameter("shared_memory_region", number(1))));
  refused(3, "must be a number of bytes", input("FP32", parameter("shared_memory_offset", text("1"))));
  refused(3, "in 'contents' and in a region", input("INT32", [&](WireWriter* writer) {
            parameter("shared_memory_region", text("none"))(writer);
            contents("\x01\x02", 2)(writer);
          }));
  refused(3, "'sequence_start' must be true or false", input("INT32", contents("\x01\x02", 2)),
          parameter("sequence_start", number(4)));
  refused(3, "'sequence_id' must be a whole number of 64 bits or a text",
          input("INT32", contents("\x01\x02", 2)),
          parameter("sequence_id", text(std::string(129, 'a').c_str())));
  refused(3, "'classification'", input("INT32", contents("\x01\x02", 2)), [](WireWriter* writer) {
    writer->Message(6, [](WireWriter* output) {
      output->Text(1, "y").Entry(2, "classification", [](WireWriter* value) { value->AlwaysText(3, "3"); });
    });
  });
  refused(3, "BYTES has another list of 'contents'", input("BYTES", contents("\x01\x02", 2)));
  refused(3, "'timeout'", input("INT32", contents("\x01\x02", 2)), parameter("timeout", text("1")));
}

TEST_CASE("gRPC: every cut and every changed byte of a request is answered, and the next request, too") {
  GrpcServer server;
  GrpcClient client(server.port());
  const std::string message = InferMessage("double", kMessageX, "id");
  for (std::size_t size = 0; size < message.size(); ++size) {
    const GrpcAnswer& answer = client.Wait(client.Call("ModelInfer", Framed(message.substr(0, size))));
    INFO(size);
    CHECK(answer.status() > 0);
  }
  std::mt19937 random(1);
  for (std::size_t at = 0; at < message.size() - sizeof(float) * kMessageX.size(); ++at) {
    std::string changed = message;
    changed[at] = static_cast<char>(changed[at] ^ (1 + random() % 255));
    const GrpcAnswer& answer = client.Wait(client.Call("ModelInfer", Framed(changed)));
    CHECK(answer.status() >= 0);
  }
  CHECK(client.Wait(client.Call("ModelInfer", Framed(message))).status() == 0);
}

}  // namespace
}  // namespace rewire::test
