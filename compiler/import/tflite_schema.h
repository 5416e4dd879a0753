// SPDX-License-Identifier: Apache-2.0
//
// The tables of a .tflite file that are read, as flatbuffers' runtime reads tables. The numbers of fields,
// types and operators are those of TensorFlow's schema.fbs, version 3 of the format. Fields that nothing
// reads are not here; the verifier passes over them.
//
// A table is valid only after Verify has returned true for the whole file.
#pragma once

#include <flatbuffers/flatbuffers.h>

#include <cstdint>

namespace rewire::compiler::tflite {

inline constexpr char kIdentifier[] = "TFL3";

// Tensor.type.
enum class ElementType : std::int8_t {
  kFloat32 = 0,
  kFloat16 = 1,
  kInt32 = 2,
  kUInt8 = 3,
  kInt64 = 4,
  kBool = 6,
  kInt16 = 7,
  kInt8 = 9,
  kFloat64 = 10,
  kResource = 13,
};

using Numbers = flatbuffers::Vector<std::int32_t>;

// A table whose fields go by their numbers.
class Fields : private flatbuffers::Table {
 public:
  template <typename T>
  T Scalar(int field, T fallback) const {
    return GetField<T>(Place(field), fallback);
  }
  template <typename T>
  const T* Pointer(int field) const {
    return GetPointer<const T*>(Place(field));
  }
  template <typename T>
  bool VerifyScalar(const flatbuffers::Verifier& verifier, int field) const {
    return VerifyField<T>(verifier, Place(field), sizeof(T));
  }
  template <typename T>
  bool VerifyNumbers(const flatbuffers::Verifier& verifier, int field) const {
    return VerifyOffset(verifier, Place(field)) &&
           verifier.VerifyVector(Pointer<flatbuffers::Vector<T>>(field));
  }
  bool VerifyText(const flatbuffers::Verifier& verifier, int field) const {
    return VerifyOffset(verifier, Place(field)) && verifier.VerifyString(Pointer<flatbuffers::String>(field));
  }
  template <typename T>
  bool VerifyOne(flatbuffers::Verifier& verifier, int field) const {
    return VerifyOffset(verifier, Place(field)) && verifier.VerifyTable(Pointer<T>(field));
  }
  template <typename T>
  bool VerifyTables(flatbuffers::Verifier& verifier, int field) const {
    using Tables = flatbuffers::Vector<flatbuffers::Offset<T>>;
    return VerifyNumbers<flatbuffers::Offset<T>>(verifier, field) &&
           verifier.VerifyVectorOfTables(Pointer<Tables>(field));
  }
  bool Begin(flatbuffers::Verifier& verifier) const { return VerifyTableStart(verifier); }

  // Options of an operator are verified again, as the table that its union names.
  bool Verify(flatbuffers::Verifier& verifier) const { return Begin(verifier) && verifier.EndTable(); }

 private:
  // Each field has two bytes in the table's list of places, behind two numbers of two bytes.
  static flatbuffers::voffset_t Place(int field) {
    return static_cast<flatbuffers::voffset_t>(4 + 2 * field);
  }
};

struct OperatorCode : Fields {
  // Files before 2020 have the code in a field of one byte alone.
  std::int32_t builtin_code() const {
    const std::int32_t narrow = Scalar<std::int8_t>(0, 0), wide = Scalar<std::int32_t>(3, 0);
    return narrow > wide ? narrow : wide;
  }
  const flatbuffers::String* custom_code() const { return Pointer<flatbuffers::String>(1); }

  bool Verify(flatbuffers::Verifier& verifier) const {
    return Begin(verifier) && VerifyScalar<std::int8_t>(verifier, 0) && VerifyText(verifier, 1) &&
           VerifyScalar<std::int32_t>(verifier, 3) && verifier.EndTable();
  }
};

struct Quantization : Fields {
  const flatbuffers::Vector<float>* scale() const { return Pointer<flatbuffers::Vector<float>>(2); }
  const flatbuffers::Vector<std::int64_t>* zero_point() const {
    return Pointer<flatbuffers::Vector<std::int64_t>>(3);
  }
  std::uint8_t details_type() const { return Scalar<std::uint8_t>(4, 0); }
  std::int32_t quantized_dimension() const { return Scalar<std::int32_t>(6, 0); }

  bool Verify(flatbuffers::Verifier& verifier) const {
    return Begin(verifier) && VerifyNumbers<float>(verifier, 2) && VerifyNumbers<std::int64_t>(verifier, 3) &&
           VerifyScalar<std::uint8_t>(verifier, 4) && VerifyScalar<std::int32_t>(verifier, 6) &&
           verifier.EndTable();
  }
};

struct Tensor : Fields {
  const Numbers* shape() const { return Pointer<Numbers>(0); }
  std::int8_t type() const { return Scalar<std::int8_t>(1, 0); }
  std::uint32_t buffer() const { return Scalar<std::uint32_t>(2, 0); }
  const flatbuffers::String* name() const { return Pointer<flatbuffers::String>(3); }
  const Quantization* quantization() const { return Pointer<Quantization>(4); }
  bool is_sparse() const { return Pointer<Fields>(6) != nullptr; }
  // Not 0: the bytes lie in another file.
  std::uint32_t external_buffer() const { return Scalar<std::uint32_t>(10, 0); }
  // The shape with -1 for sizes that a run may choose; null if there are none.
  const Numbers* shape_signature() const { return Pointer<Numbers>(7); }

  bool Verify(flatbuffers::Verifier& verifier) const {
    return Begin(verifier) && VerifyNumbers<std::int32_t>(verifier, 0) &&
           VerifyScalar<std::int8_t>(verifier, 1) && VerifyScalar<std::uint32_t>(verifier, 2) &&
           VerifyText(verifier, 3) && VerifyOne<Quantization>(verifier, 4) &&
           VerifyOne<Fields>(verifier, 6) && VerifyNumbers<std::int32_t>(verifier, 7) &&
           VerifyScalar<std::uint32_t>(verifier, 10) && verifier.EndTable();
  }
};

struct Operator : Fields {
  std::uint32_t opcode_index() const { return Scalar<std::uint32_t>(0, 0); }
  const Numbers* inputs() const { return Pointer<Numbers>(1); }
  const Numbers* outputs() const { return Pointer<Numbers>(2); }
  std::uint8_t options_type() const { return Scalar<std::uint8_t>(3, 0); }
  const Fields* options() const { return Pointer<Fields>(4); }

  bool Verify(flatbuffers::Verifier& verifier) const {
    return Begin(verifier) && VerifyScalar<std::uint32_t>(verifier, 0) &&
           VerifyNumbers<std::int32_t>(verifier, 1) && VerifyNumbers<std::int32_t>(verifier, 2) &&
           VerifyScalar<std::uint8_t>(verifier, 3) && VerifyOne<Fields>(verifier, 4) && verifier.EndTable();
  }
};

struct SubGraph : Fields {
  using Tensors = flatbuffers::Vector<flatbuffers::Offset<Tensor>>;
  using Operators = flatbuffers::Vector<flatbuffers::Offset<Operator>>;

  const Tensors* tensors() const { return Pointer<Tensors>(0); }
  const Numbers* inputs() const { return Pointer<Numbers>(1); }
  const Numbers* outputs() const { return Pointer<Numbers>(2); }
  const Operators* operators() const { return Pointer<Operators>(3); }

  bool Verify(flatbuffers::Verifier& verifier) const {
    return Begin(verifier) && VerifyTables<Tensor>(verifier, 0) && VerifyNumbers<std::int32_t>(verifier, 1) &&
           VerifyNumbers<std::int32_t>(verifier, 2) && VerifyTables<Operator>(verifier, 3) &&
           verifier.EndTable();
  }
};

struct Buffer : Fields {
  const flatbuffers::Vector<std::uint8_t>* data() const {
    return Pointer<flatbuffers::Vector<std::uint8_t>>(0);
  }
  // The place of the bytes in a file above 2 GiB, which has them behind the tables.
  std::uint64_t offset() const { return Scalar<std::uint64_t>(1, 0); }

  bool Verify(flatbuffers::Verifier& verifier) const {
    return Begin(verifier) && VerifyNumbers<std::uint8_t>(verifier, 0) &&
           VerifyScalar<std::uint64_t>(verifier, 1) && verifier.EndTable();
  }
};

struct Model : Fields {
  using Codes = flatbuffers::Vector<flatbuffers::Offset<OperatorCode>>;
  using SubGraphs = flatbuffers::Vector<flatbuffers::Offset<SubGraph>>;
  using Buffers = flatbuffers::Vector<flatbuffers::Offset<Buffer>>;

  std::uint32_t version() const { return Scalar<std::uint32_t>(0, 0); }
  const Codes* operator_codes() const { return Pointer<Codes>(1); }
  const SubGraphs* subgraphs() const { return Pointer<SubGraphs>(2); }
  const flatbuffers::String* description() const { return Pointer<flatbuffers::String>(3); }
  const Buffers* buffers() const { return Pointer<Buffers>(4); }

  bool Verify(flatbuffers::Verifier& verifier) const {
    return Begin(verifier) && VerifyScalar<std::uint32_t>(verifier, 0) &&
           VerifyTables<OperatorCode>(verifier, 1) && VerifyTables<SubGraph>(verifier, 2) &&
           VerifyText(verifier, 3) && VerifyTables<Buffer>(verifier, 4) && verifier.EndTable();
  }
};

}  // namespace rewire::compiler::tflite
