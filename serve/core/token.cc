// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/core/token.h"

#include <algorithm>
#include <cstddef>

#include "rewire/base/mapped_file.h"

namespace rewire::serve {
namespace {

constexpr std::size_t kShortest = 16;

}  // namespace

bool HasToken(std::string_view authorization, std::string_view token) {
  if (token.empty()) return true;
  constexpr std::string_view kScheme = "bearer ";
  if (authorization.size() < kScheme.size()) return false;
  for (std::size_t i = 0; i < kScheme.size(); ++i) {
    if ((authorization[i] | 0x20) != (kScheme[i] | 0x20)) return false;
  }
  const std::string_view given = authorization.substr(kScheme.size());
  unsigned different = given.size() == token.size() ? 0 : 1;
  for (std::size_t i = 0; i < given.size(); ++i)
    different |= static_cast<unsigned char>(given[i] ^ token[i % token.size()]);
  return different == 0;
}

Result<std::string> ReadTokenFile(const std::string& path) {
  const Result<SharedBytes> file = ReadFile(path);
  if (!file) return Forward(file);
  std::string_view text(reinterpret_cast<const char*>(file->view.data()), file->view.size());
  text = text.substr(0, text.find('\n'));
  if (!text.empty() && text.back() == '\r') text.remove_suffix(1);
  const auto is_plain = [](char byte) { return byte > 0x20 && byte < 0x7f; };
  if (text.size() < kShortest || !std::all_of(text.begin(), text.end(), is_plain)) {
    return Fail(
        StatusCode::kInvalidArgument,
        "{}: a token of at least {} letters, digits and signs is expected in the first line, which has {} "
        "bytes; make one by 'openssl rand -hex 32'",
        path, kShortest, text.size());
  }
  return std::string(text);
}

}  // namespace rewire::serve
