// SPDX-License-Identifier: Apache-2.0
#include "rewire/tests/fuzz/onnx_mutator.h"

#include <limits>
#include <random>
#include <string>
#include <vector>

namespace rewire::test {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// Repeated fields of this many elements are not made longer, and data is looked into so far.
constexpr int kMostElements = 64;

class Mutator {
 public:
  explicit Mutator(std::uint32_t seed) : random_(seed) {}

  void Run(onnx::ModelProto* model) {
    for (int change = Below(4) + 1; change > 0; --change) {
      messages_.clear();
      names_.clear();
      Collect(model);
      Change(messages_[static_cast<std::size_t>(Below(static_cast<int>(messages_.size())))]);
    }
  }

 private:
  int Below(int limit) { return limit <= 1 ? 0 : static_cast<int>(random_() % static_cast<unsigned>(limit)); }

  // Protobuf does not nest deeper than its parser allows, and neither does this.
  void Collect(Message* message) {
    messages_.push_back(message);
    const Reflection* reflection = message->GetReflection();
    std::vector<const FieldDescriptor*> fields;
    reflection->ListFields(*message, &fields);
    for (const FieldDescriptor* field : fields) {
      const bool text = field->cpp_type() == FieldDescriptor::CPPTYPE_STRING;
      const bool inner = field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
      if (!text && !inner) continue;
      const int size = field->is_repeated() ? reflection->FieldSize(*message, field) : 1;
      for (int i = 0; i < size; ++i) {
        if (inner) {
          Collect(field->is_repeated() ? reflection->MutableRepeatedMessage(message, field, i)
                                       : reflection->MutableMessage(message, field));
        } else if (field->type() == FieldDescriptor::TYPE_STRING) {
          names_.push_back(field->is_repeated() ? reflection->GetRepeatedString(*message, field, i)
                                                : reflection->GetString(*message, field));
        }
      }
    }
  }

  void Change(Message* message) {
    const auto* descriptor = message->GetDescriptor();
    const Reflection* reflection = message->GetReflection();
    std::vector<const FieldDescriptor*> fields;
    reflection->ListFields(*message, &fields);
    // Mostly a field that is there; at times any.
    const bool any = fields.empty() || Below(4) == 0;
    if (any && descriptor->field_count() == 0) return;
    const FieldDescriptor* field =
        any ? descriptor->field(Below(descriptor->field_count()))
            : fields[static_cast<std::size_t>(Below(static_cast<int>(fields.size())))];
    const int size = field->is_repeated() ? reflection->FieldSize(*message, field) : 0;
    switch (Below(field->is_repeated() ? 5 : 3)) {
      case 0:
        if (Below(4) == 0) {
          reflection->ClearField(message, field);
          return;
        }
        break;
      case 3:
        if (size > 1) reflection->SwapElements(message, field, Below(size), Below(size));
        return;
      case 4:
        if (size > 0 && Below(2) == 0) {
          reflection->RemoveLast(message, field);
          return;
        }
        if (size < kMostElements) Add(message, field, size);
        return;
      default:
        break;
    }
    Set(message, field, size);
  }

  void Add(Message* message, const FieldDescriptor* field, int size) {
    const Reflection* reflection = message->GetReflection();
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      // A copy of one of its own, as a node without anything says little.
      Message* added = reflection->AddMessage(message, field);
      if (size > 0) added->CopyFrom(reflection->GetRepeatedMessage(*message, field, Below(size)));
      return;
    }
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT32:
        return reflection->AddInt32(message, field, static_cast<std::int32_t>(Integer()));
      case FieldDescriptor::CPPTYPE_INT64:
        return reflection->AddInt64(message, field, Integer());
      case FieldDescriptor::CPPTYPE_UINT64:
        return reflection->AddUInt64(message, field, static_cast<std::uint64_t>(Integer()));
      case FieldDescriptor::CPPTYPE_FLOAT:
        return reflection->AddFloat(message, field, Real());
      case FieldDescriptor::CPPTYPE_DOUBLE:
        return reflection->AddDouble(message, field, Real());
      case FieldDescriptor::CPPTYPE_STRING:
        return reflection->AddString(message, field, Name());
      default:
        return;
    }
  }

  void Set(Message* message, const FieldDescriptor* field, int size) {
    const Reflection* reflection = message->GetReflection();
    const bool repeated = field->is_repeated();
    if (repeated && size == 0) return;
    const int at = Below(size);
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT32: {
        const auto value = static_cast<std::int32_t>(Integer());
        return repeated ? reflection->SetRepeatedInt32(message, field, at, value)
                        : reflection->SetInt32(message, field, value);
      }
      case FieldDescriptor::CPPTYPE_INT64:
        return repeated ? reflection->SetRepeatedInt64(message, field, at, Integer())
                        : reflection->SetInt64(message, field, Integer());
      case FieldDescriptor::CPPTYPE_UINT64: {
        const auto value = static_cast<std::uint64_t>(Integer());
        return repeated ? reflection->SetRepeatedUInt64(message, field, at, value)
                        : reflection->SetUInt64(message, field, value);
      }
      case FieldDescriptor::CPPTYPE_FLOAT:
        return repeated ? reflection->SetRepeatedFloat(message, field, at, Real())
                        : reflection->SetFloat(message, field, Real());
      case FieldDescriptor::CPPTYPE_DOUBLE:
        return repeated ? reflection->SetRepeatedDouble(message, field, at, Real())
                        : reflection->SetDouble(message, field, Real());
      case FieldDescriptor::CPPTYPE_STRING:
        return repeated ? reflection->SetRepeatedString(message, field, at, Name())
                        : reflection->SetString(message, field, Name());
      case FieldDescriptor::CPPTYPE_ENUM:
        return repeated ? reflection->SetRepeatedEnumValue(message, field, at, Below(24))
                        : reflection->SetEnumValue(message, field, Below(24));
      default:
        return;
    }
  }

  std::int64_t Integer() {
    switch (Below(5)) {
      case 0:
        return Below(4);
      case 1:
        return Below(24) - 8;
      case 2:
        return std::int64_t{1} << Below(63);
      case 3:
        return Below(2) == 0 ? std::numeric_limits<std::int64_t>::min()
                             : std::numeric_limits<std::int64_t>::max();
      default:
        return Below(1 << 16);
    }
  }

  float Real() {
    switch (Below(4)) {
      case 0:
        return std::numeric_limits<float>::quiet_NaN();
      case 1:
        return std::numeric_limits<float>::infinity();
      case 2:
        return static_cast<float>(Integer());
      default:
        return 0.5F;
    }
  }

  // Mostly one that the model has, so that edges lead elsewhere; operators are among them.
  std::string Name() {
    static constexpr const char* kOperators[] = {
        "If",       "Loop",     "Scan",    "Reshape",   "Slice",   "Gather", "Concat", "Split",
        "Squeeze",  "Expand",   "Conv",    "MatMul",    "Gemm",    "Resize", "Pad",    "ConstantOfShape",
        "Range",    "Tile",     "Shape",   "Size",      "Einsum",  "LSTM",   "TopK",   "SequenceConstruct",
        "Optional", "Constant", "Softmax", "ReduceSum", "NonZero", "OneHot", "Cast",   "Transpose"};
    if (names_.empty() || Below(4) == 0) return kOperators[Below(static_cast<int>(std::size(kOperators)))];
    return names_[static_cast<std::size_t>(Below(static_cast<int>(names_.size())))];
  }

  std::mt19937 random_;
  std::vector<Message*> messages_;
  std::vector<std::string> names_;
};

}  // namespace

void MutateModel(onnx::ModelProto* model, std::uint32_t seed) { Mutator(seed).Run(model); }

}  // namespace rewire::test
