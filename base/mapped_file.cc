// SPDX-License-Identifier: Apache-2.0
#include "rewire/base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <utility>

#include "rewire/base/array.h"
#include "rewire/base/standalone/descriptor.h"
#include "rewire/base/touched_files.h"

namespace rewire {
namespace {

// The most that is read of a device or a pipe: it does not say how much it has, and some never end.
constexpr std::size_t kMostStreamed = std::size_t{1} << 30;

struct OpenFile {
  Descriptor descriptor;
  struct stat info;
};

Status FailWith(const char* what, const std::string& path, int error) {
  return Fail(error == ENOENT || error == ENOTDIR ? StatusCode::kNotFound : StatusCode::kIo, "{} '{}': {}",
              what, path, std::strerror(error));
}

// Opening a pipe that nobody writes to would wait for ever; reading from it gives its end at once.
constexpr int kForReading = O_RDONLY | O_CLOEXEC | O_NONBLOCK;

// Opens one part of the path after the other, none of which may be a link. errno says why it fails.
Descriptor OpenPartByPart(const std::string& path) {
  Descriptor folder(open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
  std::size_t begin = path.find_first_not_of('/');
  while (folder.get() >= 0 && begin != std::string::npos) {
    const std::size_t end = path.find('/', begin);
    const std::string part = path.substr(begin, end - begin);
    begin = path.find_first_not_of('/', end);
    const bool is_last = begin == std::string::npos;
    const int how = is_last ? kForReading : O_PATH | O_DIRECTORY | O_CLOEXEC;
    folder = Descriptor(openat(folder.get(), part.c_str(), how | O_NOFOLLOW));
  }
  return folder;
}

Result<OpenFile> Inspect(Descriptor descriptor, const std::string& path) {
  OpenFile file{std::move(descriptor), {}};
  if (file.descriptor.get() < 0) return FailWith("cannot open", path, errno);
  if (fcntl(file.descriptor.get(), F_SETFL, 0) != 0) return FailWith("cannot open", path, errno);
  if (fstat(file.descriptor.get(), &file.info) != 0) return FailWith("cannot inspect", path, errno);
  if (S_ISDIR(file.info.st_mode)) return FailWith("cannot read", path, EISDIR);
  NoteReadFile(path, file.info);
  return file;
}

Result<OpenFile> OpenForReading(const std::string& path) {
  return Inspect(Descriptor(open(path.c_str(), kForReading)), path);
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

// A mapping, and how to tell that a file is mapped already. The mapping keeps the inode, so its number is not
// used again meanwhile.
struct Mapping {
  ~Mapping();

  bool Has(Span<const std::byte> bytes) const {
    const auto begin = reinterpret_cast<std::uintptr_t>(address);
    const auto first = reinterpret_cast<std::uintptr_t>(bytes.data());
    return first >= begin && first - begin < size && bytes.size() <= size - (first - begin);
  }

  void* address;
  std::size_t size;
  dev_t device;
  ino_t inode;
  std::int64_t changed;  // the last change of the inode that MapFile has seen, in nanoseconds
  std::weak_ptr<Mapping> self;
};

struct Mappings {
  // Never destroyed: mappings may be released while the process ends.
  static Mappings& Instance() {
    static Mappings* const kInstance = new Mappings;
    return *kInstance;
  }
  std::mutex mutex;
  Array<Mapping*> all;
};

Mapping::~Mapping() {
  Mappings& mappings = Mappings::Instance();
  {
    const std::lock_guard<std::mutex> lock(mappings.mutex);
    mappings.all.erase(std::find(mappings.all.begin(), mappings.all.end(), this));
  }
  munmap(address, size);
}

}  // namespace

namespace {

Result<SharedBytes> Map(Result<OpenFile> file, const std::string& path) {
  if (!file) return Forward(file);
  if (!S_ISREG(file->info.st_mode)) {
    return Fail(StatusCode::kIo, "cannot map '{}': it is a device or a pipe, a file is expected", path);
  }
  const auto size = static_cast<std::size_t>(file->info.st_size);
  if (size == 0) return SharedBytes{};
  Mappings& mappings = Mappings::Instance();
  const std::lock_guard<std::mutex> lock(mappings.mutex);
  constexpr std::int64_t kSecond = 1'000'000'000;
  const std::int64_t changed = file->info.st_ctim.tv_sec * kSecond + file->info.st_ctim.tv_nsec;
  std::shared_ptr<Mapping> mapping;
  for (Mapping* known : mappings.all) {
    if (known->device != file->info.st_dev || known->inode != file->info.st_ino) continue;
    if (known->size == size && mapping == nullptr) mapping = known->self.lock();
    known->changed = changed;
  }
  if (mapping == nullptr) {
    void* address = mmap(nullptr, size, PROT_READ, MAP_SHARED, file->descriptor.get(), 0);
    if (address == MAP_FAILED) return FailWith("cannot map", path, errno);
    mapping.reset(new Mapping{address, size, file->info.st_dev, file->info.st_ino, changed, {}});
    mapping->self = mapping;
    mappings.all.push_back(mapping.get());
  }
  const auto* data = static_cast<const std::byte*>(mapping->address);
  return SharedBytes{{data, size}, std::move(mapping), true};
}

}  // namespace

Result<SharedBytes> MapFile(const std::string& path) { return Map(OpenForReading(path), path); }

Result<SharedBytes> MapFileWithoutLinks(const std::string& path, const std::string& name) {
  return Map(Inspect(OpenPartByPart(path), name), name);
}

void ForgetPages(const SharedBytes& bytes) {
  if (!bytes.mapped) return;
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(bytes.view.data());
  // Pages that are shared with the neighbors stay.
  const std::uintptr_t first = (begin + page - 1) / page * page;
  const std::uintptr_t last = (begin + bytes.view.size()) / page * page;
  if (first < last) madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
}

std::int64_t MappedFileChanged(Span<const std::byte> bytes) {
  Mappings& mappings = Mappings::Instance();
  const std::lock_guard<std::mutex> lock(mappings.mutex);
  for (const Mapping* mapping : mappings.all) {
    if (mapping->Has(bytes)) return mapping->changed;
  }
  return kNotMapped;
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
    if (!S_ISREG(file->info.st_mode) && buffer->view().size() > kMostStreamed) {
      return Fail(StatusCode::kIo, "cannot read '{}': it is a device or a pipe and gives more than {} bytes",
                  path, kMostStreamed);
    }
    want = buffer->view().size();
  }
  const Span<const std::byte> view = buffer->view();
  return SharedBytes{view, std::move(buffer)};
}

}  // namespace rewire
