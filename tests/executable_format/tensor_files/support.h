// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "rewire/base/dtype.h"
#include "rewire/executable_format/tensor_files/host_tensor.h"

namespace rewire::test {

// A folder for one test, deleted with it.
class Folder {
 public:
  Folder()
      : path_(std::filesystem::temp_directory_path() / ("rewire_tensor_files_" + std::to_string(getpid()))) {
    std::filesystem::create_directories(path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

inline SharedBytes Bytes(const std::string& text) {
  return CopyBytes({reinterpret_cast<const std::byte*>(text.data()), text.size()});
}

inline std::string Text(const SharedBytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.view.data()), bytes.view.size()};
}

inline void WriteText(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

inline std::string ReadText(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Every element different, where the type allows it.
inline HostTensor Counting(DLDataType dtype, std::vector<std::int64_t> shape) {
  std::byte* data = nullptr;
  HostTensor tensor{dtype, std::move(shape), {}};
  tensor.bytes = AllocateBytes(*CompactBytes(dtype, tensor.shape), &data);
  for (std::size_t i = 0; i < tensor.bytes.view.size(); ++i) data[i] = static_cast<std::byte>(i + 1);
  return tensor;
}

inline bool Same(const HostTensor& a, const HostTensor& b) {
  return a.dtype == b.dtype && a.shape == b.shape && Text(a.bytes) == Text(b.bytes);
}

}  // namespace rewire::test
