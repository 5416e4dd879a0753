// SPDX-License-Identifier: Apache-2.0
#include "rewire/executable_format/linked/linked_image.h"

#include <memory>
#include <utility>

#include "rewire/base/array.h"
#include "rewire/base/assert.h"
#include "rewire/executable_format/constant_data.h"
#include "rewire/executable_format/linked/linked_archive.h"

namespace rewire {
namespace {

// The constant with the bytes of its tensor in place of what is stored.
Status DecodeInPlace(Constant* constant) {
  auto raw = std::make_shared<std::vector<std::byte>>(constant->raw_bytes);
  if (Status ok = DecodeConstant(*constant, {}, {raw->data(), raw->size()}); !ok) return ok;
  constant->codec = kCodecNone;
  constant->checksum = 0;
  constant->stored = {{raw->data(), raw->size()}, raw};
  return {};
}

}  // namespace

Result<LinkedImage> MakeLinkedImage(const Executable& executable) {
  Module decoded = executable.module();
  for (Constant& constant : decoded.constants) {
    if (constant.kind != ConstantKind::kData) continue;
    if (Status ok = DecodeInPlace(&constant); !ok) return Forward(ok);
  }
  const Result<Executable> verified = Executable::FromModule(std::move(decoded));
  if (!verified) return Forward(verified);
  const Module& module = verified->module();

  LinkedImage image;
  Array<std::uint64_t> sizes;
  for (const Constant& constant : module.constants) {
    const Span<const std::byte> bytes = constant.stored.view;
    sizes.push_back(bytes.size());
    image.data.insert(image.data.end(), bytes.begin(), bytes.end());
    image.data.resize((image.data.size() + kDataAlignment - 1) / kDataAlignment * kDataAlignment);
  }
  Array<std::uint32_t> words;
  for (const Function& function : module.functions) {
    words.push_back(static_cast<std::uint32_t>(function.code.size()));
  }
  ArchiveWriter archive;
  sections::LinkedTables(archive, module, sizes, words);
  REWIRE_ASSERT(archive.ok(), "the verifier limits lists and texts to less than 2^32");
  image.tables = std::move(archive.bytes());
  return image;
}

#define REWIRE_TEXT_OF(name) #name
#define REWIRE_TEXT(name) REWIRE_TEXT_OF(name)
const char* LinkedVersionSymbol() { return REWIRE_TEXT(REWIRE_LINKED_VERSION); }

}  // namespace rewire
