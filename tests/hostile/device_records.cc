// SPDX-License-Identifier: Apache-2.0
#include "rewire/tests/hostile/device_records.h"

#include <utility>

namespace rewire::hostile {
namespace {

enum ArgumentKind : std::uint8_t { kAddressArgument, kNumberArgument, kRealArgument, kLocalArgument };

void ReadSize(ByteReader& reader, Size& size) {
  reader.List(size, [&](std::int64_t& word) { word = reader.Number<std::int64_t>(); });
}
void WriteSize(ByteWriter& writer, const Size& size) {
  writer.List(size, [&](std::int64_t word) { writer.Number(word); });
}

void ReadArgument(ByteReader& reader, DeviceArgument& argument) {
  argument.kind = reader.Number<std::uint8_t>();
  reader.Zeros(3);
  if (argument.kind > kLocalArgument) reader.Fail();
  if (argument.kind != kLocalArgument) argument.word = reader.Number<std::uint32_t>();
  if (argument.kind == kRealArgument) argument.real = reader.Number<std::uint64_t>();
  if (argument.kind == kNumberArgument || argument.kind == kLocalArgument) ReadSize(reader, argument.size);
}
void WriteArgument(ByteWriter& writer, const DeviceArgument& argument) {
  writer.Number(argument.kind);
  writer.Zeros(3);
  if (argument.kind != kLocalArgument) writer.Number(argument.word);
  if (argument.kind == kRealArgument) writer.Number(argument.real);
  if (argument.kind == kNumberArgument || argument.kind == kLocalArgument) WriteSize(writer, argument.size);
}

void ReadDeviceKernel(ByteReader& reader, DeviceKernel& kernel) {
  kernel.name = reader.Text();
  kernel.code = reader.Text();
  kernel.symbol = reader.Text();
  reader.List(kernel.parameters, [&](std::pair<std::string, TypeNode>& parameter) {
    parameter.first = reader.Text();
    ReadNode(reader, parameter.second);
  });
  kernel.outputs = reader.Number<std::uint32_t>();
  reader.List(kernel.arguments, [&](DeviceArgument& argument) { ReadArgument(reader, argument); });
  for (Size& size : kernel.sizes) ReadSize(reader, size);
}
void WriteDeviceKernel(ByteWriter& writer, const DeviceKernel& kernel) {
  writer.Text(kernel.name);
  writer.Text(kernel.code);
  writer.Text(kernel.symbol);
  writer.List(kernel.parameters, [&](const std::pair<std::string, TypeNode>& parameter) {
    writer.Text(parameter.first);
    WriteNode(writer, parameter.second);
  });
  writer.Number(kernel.outputs);
  writer.List(kernel.arguments, [&](const DeviceArgument& argument) { WriteArgument(writer, argument); });
  for (const Size& size : kernel.sizes) WriteSize(writer, size);
}

}  // namespace

void ReadDeviceCode(ByteReader& reader, Program& program) {
  reader.List(program.device_blobs, [&](DeviceBlob& blob) {
    blob.name = reader.Text();
    blob.form = reader.Number<std::uint32_t>();
    blob.architecture = reader.Text();
    blob.constant = reader.Number<std::uint32_t>();
  });
  reader.List(program.device_kernels, [&](DeviceKernel& kernel) { ReadDeviceKernel(reader, kernel); });
}

void WriteDeviceCode(ByteWriter& writer, const Program& program) {
  writer.List(program.device_blobs, [&](const DeviceBlob& blob) {
    writer.Text(blob.name);
    writer.Number(blob.form);
    writer.Text(blob.architecture);
    writer.Number(blob.constant);
  });
  writer.List(program.device_kernels, [&](const DeviceKernel& kernel) { WriteDeviceKernel(writer, kernel); });
}

}  // namespace rewire::hostile
