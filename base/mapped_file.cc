// SPDX-License-Identifier: Apache-2.0
#include "base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace rewire {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

struct OpenFile {
  Descriptor descriptor;
  struct stat info;
};

tl::unexpected<Error> FailWith(const char* what, const std::string& path, int error) {
  return Fail(error == ENOENT || error == ENOTDIR ? StatusCode::kNotFound : StatusCode::kIo,
              std::string(what) + " '" + path + "': " + std::strerror(error));
}

Result<OpenFile> OpenForReading(const std::string& path) {
  OpenFile file{Descriptor(open(path.c_str(), O_RDONLY | O_CLOEXEC)), {}};
  if (file.descriptor.get() < 0) return FailWith("cannot open", path, errno);
  if (fstat(file.descriptor.get(), &file.info) != 0) return FailWith("cannot inspect", path, errno);
  if (S_ISDIR(file.info.st_mode)) return FailWith("cannot read", path, EISDIR);
  return file;
}

// Memory that grows as bytes arrive and comes out aligned.
class Buffer {
 public:
  static constexpr std::size_t kAlignment = 64;

  ~Buffer() { std::free(data_); }
  Buffer() = default;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  bool Reserve(std::size_t capacity) {
    capacity = (capacity + kAlignment - 1) / kAlignment * kAlignment;
    auto* grown = static_cast<std::byte*>(std::aligned_alloc(kAlignment, capacity));
    if (grown == nullptr) return false;
    if (size_ != 0) std::memcpy(grown, data_, size_);
    std::free(data_);
    data_ = grown;
    capacity_ = capacity;
    return true;
  }
  std::byte* end() { return data_ + size_; }
  std::size_t free() const { return capacity_ - size_; }
  void Grew(std::size_t bytes) { size_ += bytes; }
  Span<const std::byte> view() const { return {data_, size_}; }

 private:
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

}  // namespace

Result<SharedBytes> MapFile(const std::string& path) {
  Result<OpenFile> file = OpenForReading(path);
  if (!file) return Forward(file);
  if (!S_ISREG(file->info.st_mode)) return FailWith("cannot map", path, ENODEV);
  const auto size = static_cast<std::size_t>(file->info.st_size);
  if (size == 0) return SharedBytes{};
  void* address = mmap(nullptr, size, PROT_READ, MAP_SHARED, file->descriptor.get(), 0);
  if (address == MAP_FAILED) return FailWith("cannot map", path, errno);
  std::shared_ptr<const void> owner(address, [size](void* start) { munmap(start, size); });
  return SharedBytes{{static_cast<const std::byte*>(address), size}, std::move(owner)};
}

Result<SharedBytes> ReadFile(const std::string& path) {
  Result<OpenFile> file = OpenForReading(path);
  if (!file) return Forward(file);
  auto buffer = std::make_shared<Buffer>();
  // One byte more than the file claims, so that its end shows without growing.
  std::size_t want = static_cast<std::size_t>(file->info.st_size) + 1;
  for (;;) {
    if (buffer->free() == 0 && !buffer->Reserve(buffer->view().size() + want)) {
      return FailWith("cannot read", path, ENOMEM);
    }
    const ssize_t got = read(file->descriptor.get(), buffer->end(), buffer->free());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return FailWith("cannot read", path, errno);
    if (got == 0) break;
    buffer->Grew(static_cast<std::size_t>(got));
    want = buffer->view().size();
  }
  const Span<const std::byte> view = buffer->view();
  return SharedBytes{view, std::move(buffer)};
}

}  // namespace rewire
