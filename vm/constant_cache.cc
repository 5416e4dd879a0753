// SPDX-License-Identifier: Apache-2.0
#include "vm/constant_cache.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "base/array.h"
#include "base/hash.h"
#include "base/mapped_file.h"
#include "vm/packed_function.h"
#include "vm/tensor.h"

namespace rewire {
namespace {

// What makes two constants the same, and what they become.
struct Entry {
  Entry() = default;
  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;
  ~Entry();

  // The key. `stored` is kept to be compared with.
  std::uint64_t hash = 0;
  std::uint32_t codec = kCodecNone;
  std::uint64_t raw_bytes = 0;
  std::uint64_t alignment = 1;
  const DeviceApi* api = nullptr;
  std::int32_t device_id = 0;
  std::string scope;
  SharedBytes stored;

  // Filled in under `mutex` by the first who asks.
  std::mutex mutex;
  bool ready = false;
  SharedBytes bytes;

  // The table's.
  bool listed = false;
  Entry* next = nullptr;
  std::weak_ptr<Entry> self;
};

bool SameContent(const SharedBytes& held, const SharedBytes& given) {
  const void* a = held.view.data();
  const void* b = given.view.data();
  if (a == b || given.view.empty()) return true;
  const bool same = std::memcmp(a, b, given.view.size()) == 0;
  if (same) ForgetPages(given);
  return same;
}

// All entries that somebody uses, by hash. It owns none: an entry takes itself out when it goes.
class Table {
 public:
  // Never destroyed: constants may be released while the process ends.
  static Table& Instance() {
    static Table& table = *new Table;
    return table;
  }

  // The entry equal to `wanted`, or `wanted` itself, now listed.
  std::shared_ptr<Entry> FindOrAdd(const std::shared_ptr<Entry>& wanted) {
    // Compared without the lock, which a thread may hold while it reads gigabytes.
    Array<std::shared_ptr<Entry>> different;
    for (;;) {
      std::shared_ptr<Entry> candidate;
      {
        const std::lock_guard<std::mutex> lock(mutex_);
        candidate = Next(*wanted, different);
        if (candidate == nullptr) {
          Add(wanted);
          return wanted;
        }
      }
      if (SameContent(candidate->stored, wanted->stored)) return candidate;
      different.push_back(std::move(candidate));
    }
  }

  void Remove(Entry* entry) {
    const std::lock_guard<std::mutex> lock(mutex_);
    Entry** link = &buckets_[entry->hash % buckets_.size()];
    while (*link != entry) link = &(*link)->next;
    *link = entry->next;
    --count_;
  }

 private:
  std::shared_ptr<Entry> Next(const Entry& wanted, const Array<std::shared_ptr<Entry>>& except) {
    for (Entry* entry = buckets_[wanted.hash % buckets_.size()]; entry != nullptr; entry = entry->next) {
      const bool alike = entry->hash == wanted.hash && entry->codec == wanted.codec &&
                         entry->raw_bytes == wanted.raw_bytes && entry->alignment >= wanted.alignment &&
                         entry->api == wanted.api && entry->device_id == wanted.device_id &&
                         entry->scope == wanted.scope &&
                         entry->stored.view.size() == wanted.stored.view.size() &&
                         (wanted.stored.mapped || !entry->stored.mapped);
      if (!alike) continue;
      std::shared_ptr<Entry> alive = entry->self.lock();
      if (alive != nullptr && std::find(except.begin(), except.end(), alive) == except.end()) return alive;
    }
    return nullptr;
  }

  void Add(const std::shared_ptr<Entry>& entry) {
    if (count_ == buckets_.size()) {
      Array<Entry*> grown(2 * buckets_.size());
      for (Entry* each : buckets_) {
        while (each != nullptr) Push(&grown, std::exchange(each, each->next));
      }
      buckets_ = std::move(grown);
    }
    entry->self = entry;
    entry->listed = true;
    Push(&buckets_, entry.get());
    ++count_;
  }

  static void Push(Array<Entry*>* buckets, Entry* entry) {
    Entry*& head = (*buckets)[entry->hash % buckets->size()];
    entry->next = head;
    head = entry;
  }

  std::mutex mutex_;
  Array<Entry*> buckets_ = Array<Entry*>(64);
  std::size_t count_ = 0;
};

Entry::~Entry() {
  if (listed) Table::Instance().Remove(this);
}

std::uint64_t AlignmentOf(DLDataType dtype) {
  const std::uint64_t element = ElementBytes({dtype.code, dtype.bits, 1});
  return element & (~element + 1);
}

Result<SharedBytes> DecodeOnHost(const Constant& constant, const ConstantCodecs& codecs,
                                 std::uint64_t alignment) {
  if (constant.codec == kCodecNone) {
    if (IsAligned(constant.stored.view, alignment)) return constant.stored;
    return AlignedCopy(constant.stored.view, alignment);
  }
  Result<Tensor> decoded = Tensor::Make(constant.type.dtype, constant.type.dims);
  if (!decoded) return Forward(decoded);
  auto* raw = static_cast<std::byte*>(decoded->dl().data);
  if (Status ok = DecodeConstant(constant, codecs, {raw, constant.raw_bytes}); !ok) return Forward(ok);
  const SharedBytes bytes{{raw, constant.raw_bytes}, std::make_shared<Tensor>(*std::move(decoded))};
  return IsAligned(bytes.view, alignment) ? bytes : AlignedCopy(bytes.view, alignment);
}

// A reference to what the entry holds, which keeps the entry.
SharedBytes ContentOf(const std::shared_ptr<Entry>& entry) { return {entry->bytes.view, entry}; }

}  // namespace

Result<SharedBytes> CopyToDevice(const SharedBytes& bytes, const LinkedDevice& device) {
  const DeviceApi* api = device.api;
  void* block = api->allocate(api->context, device.device, bytes.view.size(), 256, device.scope);
  if (block == nullptr) return Fail(StatusCode::kOutOfMemory, "no memory on the device");
  const DLDevice where = device.device;
  std::shared_ptr<const void> owner(
      block, [api, where](void* memory) { api->deallocate(api->context, where, memory); });
  if (api->copy(api->context, block, where, bytes.view.data(), kHost, bytes.view.size(), nullptr) != 0 ||
      api->synchronize(api->context, where, nullptr) != 0) {
    return Fail(StatusCode::kLinkFailed, "the copy to the device failed: {}", TakeKernelError().message);
  }
  return SharedBytes{{static_cast<const std::byte*>(block), bytes.view.size()}, std::move(owner)};
}

Result<SharedBytes> SharedConstantBytes(const Constant& constant, const ConstantCodecs& codecs,
                                        const LinkedDevice& device, std::uint64_t alignment) {
  auto wanted = std::make_shared<Entry>();
  wanted->hash = constant.checksum;
  wanted->codec = constant.codec;
  wanted->alignment = std::max(AlignmentOf(constant.type.dtype), alignment);
  wanted->raw_bytes = constant.raw_bytes;
  wanted->api = device.api;
  wanted->device_id = device.device.device_id;
  wanted->scope = device.scope;
  wanted->stored = constant.stored;
  const std::shared_ptr<Entry> entry = Table::Instance().FindOrAdd(wanted);
  const std::lock_guard<std::mutex> lock(entry->mutex);
  if (!entry->ready) {
    Result<SharedBytes> bytes = DecodeOnHost(constant, codecs, wanted->alignment);
    if (bytes && device.api != nullptr) bytes = CopyToDevice(*bytes, device);
    if (!bytes) return Forward(bytes);
    entry->bytes = *std::move(bytes);
    entry->ready = true;
  }
  return ContentOf(entry);
}

SharedBytes SharedComputedBytes(const SharedBytes& bytes, std::uint64_t alignment) {
  auto wanted = std::make_shared<Entry>();
  wanted->hash = Hash64(bytes.view);
  wanted->raw_bytes = bytes.view.size();
  wanted->alignment = alignment;
  wanted->stored = bytes;
  wanted->bytes = bytes;
  wanted->ready = true;
  const std::shared_ptr<Entry> entry = Table::Instance().FindOrAdd(wanted);
  const std::lock_guard<std::mutex> lock(entry->mutex);
  return ContentOf(entry);
}

}  // namespace rewire
