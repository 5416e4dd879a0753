// SPDX-License-Identifier: Apache-2.0
// A job whose ranks find each other by files beside one path, which the environment names.
//
// PATH.rank0, PATH.rank1... say which process each rank is. PATH.all.3 has what rank 0 spreads for channel 3,
// and PATH.0-2.5 what rank 0 spreads to rank 2 for messages of tag 5. PATH.left has the reason of the first
// rank that has left a call. A file appears as a whole, by a rename. Files of an earlier job are refused by
// the rank that would write them.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "rewire/integrations/collective/nccl/job.h"
#include "rewire/integrations/collective/nccl/lookout.h"
#include "rewire/integrations/collective/peers.h"
#include "rewire/integrations/collective/timeout.h"

namespace rewire::collective {

using kernel::RuntimeError;
using kernel::Status;
using kernel::ValueError;

namespace {

constexpr char kPath[] = "REWIRE_COLLECTIVE_FILE";
constexpr char kRank[] = "REWIRE_COLLECTIVE_RANK";
constexpr char kRanks[] = "REWIRE_COLLECTIVE_RANKS";
constexpr long kMostRanks = 65536;

Status ReadNumber(const char* name, long least, long most, int* number) {
  const char* const text = std::getenv(name);
  char* end = nullptr;
  const long given = text != nullptr ? std::strtol(text, &end, 10) : -1;
  if (text == nullptr || end == text || *end != '\0' || given < least || given > most) {
    return ValueError("the environment variable ", name, " is '", text != nullptr ? text : "",
                      "', expected a number of at least ", least, " and at most ", most, " beside ", kPath);
  }
  *number = static_cast<int>(given);
  return Status();
}

// False if there is no such file.
bool ReadFile(const std::string& path, std::string* content) {
  std::FILE* const file = std::fopen(path.c_str(), "rb");
  if (file == nullptr) return false;
  char part[512];
  content->clear();
  for (std::size_t bytes; (bytes = std::fread(part, 1, sizeof part, file)) > 0;) content->append(part, bytes);
  std::fclose(file);
  return true;
}

// The file appears as a whole, or was there before: then it is not touched, and *existed is set.
Status WriteFile(const std::string& path, const std::string& content, bool* existed) {
  const std::string unfinished = path + ".unfinished" + std::to_string(getpid());
  std::FILE* const file = std::fopen(unfinished.c_str(), "wbx");
  bool written = file != nullptr && std::fwrite(content.data(), 1, content.size(), file) == content.size();
  if (file != nullptr) written = std::fclose(file) == 0 && written;
  const bool linked = written && link(unfinished.c_str(), path.c_str()) == 0;
  const int error = errno;
  if (file != nullptr) unlink(unfinished.c_str());
  *existed = !linked && written && error == EEXIST;
  if (linked || *existed) return Status();
  return RuntimeError(path, " could not be written: ", std::strerror(error), "; ", kPath,
                      " names a path that all ranks may write beside");
}

class FileJob final : public Job {
 public:
  explicit FileJob(std::string path) : path_(std::move(path)) {}

  Status Open() {
    if (Status s = ReadTimeout(&timeout_); !s.ok()) return s;
    if (Status s = ReadNumber(kRanks, 1, kMostRanks, &ranks_); !s.ok()) return s;
    if (Status s = ReadNumber(kRank, 0, ranks_ - 1, &rank_); !s.ok()) return s;
    std::vector<Identity> identities(static_cast<std::size_t>(ranks_));
    const Identity own = OwnIdentity();
    if (Status s = Write(RankFile(rank_), std::string(reinterpret_cast<const char*>(&own), sizeof own));
        !s.ok())
      return s;
    for (int rank = 0; rank < ranks_; ++rank) {
      std::string content;
      if (Status s = Read(RankFile(rank), sizeof(Identity), &content); !s.ok()) return s;
      std::memcpy(&identities[static_cast<std::size_t>(rank)], content.data(), sizeof(Identity));
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    peers_.Watch(std::move(identities), rank_);
    return Status();
  }

  Status Spread(const Group& group, void* data, std::int64_t bytes) override {
    const auto size = static_cast<std::size_t>(bytes);
    const int first = group.of_all() ? 0 : std::min(rank_, group.peer);
    const std::string file =
        path_ +
        (group.of_all() ? ".all"
                        : '.' + std::to_string(first) + '-' + std::to_string(std::max(rank_, group.peer))) +
        '.' + std::to_string(group.number);
    if (rank_ == first) return Write(file, std::string(static_cast<const char*>(data), size));
    std::string content;
    if (Status s = Read(file, size, &content); !s.ok()) return s;
    std::memcpy(data, content.data(), size);
    return Status();
  }

  Status Notice() override {
    std::string reason;
    if (is_left_ || !ReadFile(path_ + ".left", &reason)) return Status();
    return RuntimeError(reason);
  }
  int FirstEnded() override {
    const std::lock_guard<std::mutex> lock(mutex_);
    return peers_.FirstEnded();
  }
  std::string Name(int rank) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    return peers_.Name(rank);
  }
  // Only the first reason stays.
  void Leave(const std::string& reason) override {
    bool existed = false;
    is_left_ = true;
    (void)WriteFile(path_ + ".left", Name(rank_) + " has left: " + reason, &existed);
  }

 private:
  std::string RankFile(int rank) const { return path_ + ".rank" + std::to_string(rank); }

  static Status Write(const std::string& file, const std::string& content) {
    bool existed = false;
    if (Status s = WriteFile(file, content, &existed); !s.ok()) return s;
    if (!existed) return Status();
    return RuntimeError(file,
                        " is there already: another process has this number, or it is of an earlier job; ",
                        kPath, " names another path for each job");
  }

  // Waits until the file is there.
  Status Read(const std::string& file, std::size_t bytes, std::string* content) {
    Lookout lookout(*this);
    while (!ReadFile(file, content)) {
      if (Status s = lookout.Look(); !s.ok()) return s;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    if (content->size() == bytes) return Status();
    return RuntimeError(file, " has ", content->size(), " bytes, expected ", bytes,
                        "; all ranks must run the same version of Rewire");
  }

  const std::string path_;
  std::atomic<bool> is_left_{false};
  std::mutex mutex_;  // of what follows
  Peers peers_;
};

}  // namespace

Status OpenFileJob(std::unique_ptr<Job>* job) {
  const char* const path = std::getenv(kPath);
  if (path == nullptr) return Status();
  auto made = std::make_unique<FileJob>(path);
  if (Status s = made->Open(); !s.ok()) return s;
  *job = std::move(made);
  return Status();
}

}  // namespace rewire::collective
