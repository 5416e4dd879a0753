// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/link/constant_cache.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "rewire/base/array.h"
#include "rewire/base/mapped_file.h"
#include "rewire/vm/link/stored_constants.h"
#include "rewire/vm/packed_function.h"
#include "rewire/vm/tensor.h"

namespace rewire {
namespace {

// The key of a constant: all that makes two constants the same, and what they become.
struct CachedConstant {
  CachedConstant() = default;
  CachedConstant(const CachedConstant&) = delete;
  CachedConstant& operator=(const CachedConstant&) = delete;
  ~CachedConstant();

  // The key. `stored` is kept to be compared with.
  std::uint64_t hash = 0;
  std::uint32_t codec = kCodecNone;
  std::uint64_t raw_bytes = 0;
  std::uint64_t alignment = 1;
  const void* memory = nullptr;  // the device's functions, or the allocator's context
  std::int32_t device_id = 0;
  std::string scope;
  SharedBytes stored;

  // The place to look at in the table: what makes most constants different, mixed.
  std::uint64_t Place() const;

  // Filled in under `mutex` by the first who asks.
  std::mutex mutex;
  bool ready = false;
  SharedBytes bytes;

  // The table's.
  bool listed = false;
  CachedConstant* next = nullptr;
  std::weak_ptr<CachedConstant> self;
};

bool SameContent(const SharedBytes& held, const SharedBytes& given) {
  const void* a = held.view.data();
  const void* b = given.view.data();
  if (a == b || given.view.empty()) return true;
  const bool same = std::memcmp(a, b, given.view.size()) == 0;
  if (same) ForgetPages(given);
  return same;
}

// All entries in use, by hash. The table owns none; an entry removes itself when it is destroyed.
class Table {
 public:
  // Never destroyed: constants may be released while the process ends.
  static Table& Instance() {
    static Table& table = *new Table;
    return table;
  }

  // Returns the entry equal to `wanted`, or `wanted` itself. `wanted` is added to the list, unless too many
  // files state the same checksum for different bytes.
  std::shared_ptr<CachedConstant> FindOrAdd(const std::shared_ptr<CachedConstant>& wanted) {
    // Compared without the lock, which a thread may hold while it reads gigabytes.
    Array<std::shared_ptr<CachedConstant>> different;
    for (;;) {
      std::shared_ptr<CachedConstant> candidate;
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
      // Checksums of different bytes differ unless somebody has forged them. In that case nothing is shared.
      if (different.size() == kMostCompared) return wanted;
    }
  }

  void Remove(CachedConstant* entry) {
    const std::lock_guard<std::mutex> lock(mutex_);
    CachedConstant** link = &Bucket(&buckets_, *entry);
    while (*link != entry) link = &(*link)->next;
    *link = entry->next;
    --count_;
  }

 private:
  static constexpr std::size_t kMostCompared = 4;

  std::shared_ptr<CachedConstant> Next(const CachedConstant& wanted,
                                       const Array<std::shared_ptr<CachedConstant>>& except) {
    for (CachedConstant* entry = Bucket(&buckets_, wanted); entry != nullptr; entry = entry->next) {
      const bool alike = entry->hash == wanted.hash && entry->codec == wanted.codec &&
                         entry->raw_bytes == wanted.raw_bytes && entry->alignment >= wanted.alignment &&
                         entry->memory == wanted.memory && entry->device_id == wanted.device_id &&
                         entry->scope == wanted.scope &&
                         entry->stored.view.size() == wanted.stored.view.size() &&
                         (wanted.stored.mapped || !entry->stored.mapped);
      if (!alike) continue;
      std::shared_ptr<CachedConstant> alive = entry->self.lock();
      if (alive != nullptr && std::find(except.begin(), except.end(), alive) == except.end()) return alive;
    }
    return nullptr;
  }

  void Add(const std::shared_ptr<CachedConstant>& entry) {
    if (count_ == buckets_.size()) {
      Array<CachedConstant*> grown(2 * buckets_.size());
      for (CachedConstant* each : buckets_) {
        while (each != nullptr) Push(&grown, std::exchange(each, each->next));
      }
      buckets_ = std::move(grown);
    }
    entry->self = entry;
    entry->listed = true;
    Push(&buckets_, entry.get());
    ++count_;
  }

  static CachedConstant*& Bucket(Array<CachedConstant*>* buckets, const CachedConstant& entry) {
    return (*buckets)[entry.Place() >> 32 & (buckets->size() - 1)];
  }

  static void Push(Array<CachedConstant*>* buckets, CachedConstant* entry) {
    CachedConstant*& head = Bucket(buckets, *entry);
    entry->next = head;
    head = entry;
  }

  std::mutex mutex_;
  Array<CachedConstant*> buckets_ = Array<CachedConstant*>(64);
  std::size_t count_ = 0;
};

// Multiplied by a secret number, because a file chooses its checksums and must not be able to put all of them
// into one bucket.
std::uint64_t CachedConstant::Place() const {
  static const std::uint64_t kSecret =
      (static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count()) ^
       reinterpret_cast<std::uintptr_t>(&Table::Instance())) *
          0x9E3779B97F4A7C15u |
      1;
  std::uint64_t place = 0;
  for (const std::uint64_t part :
       {hash, std::uint64_t{stored.view.size()}, std::uint64_t{reinterpret_cast<std::uintptr_t>(memory)}}) {
    place = (place ^ part) * kSecret;
    place ^= place >> 32;
  }
  return place * kSecret;
}

CachedConstant::~CachedConstant() {
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
    // A constant that is read anyway is checked as well, as compressed constants are.
    if (Status ok = CheckStored(constant); !ok) return Forward(ok);
    return AlignedCopy(constant.stored.view, alignment);
  }
  if (Status sized = CheckStoredSize(constant); !sized) return Forward(sized);
  Result<Tensor> decoded = Tensor::Make(constant.type.dtype, constant.type.dims);
  if (!decoded) return Forward(decoded);
  auto* raw = static_cast<std::byte*>(decoded->dl().data);
  if (Status ok = DecodeStored(constant, codecs, {raw, constant.raw_bytes}); !ok) return Forward(ok);
  const SharedBytes bytes{{raw, constant.raw_bytes}, std::make_shared<Tensor>(*std::move(decoded))};
  return IsAligned(bytes.view, alignment) ? bytes : AlignedCopy(bytes.view, alignment);
}

// A reference to what the entry holds, which keeps the entry.
SharedBytes ContentOf(const std::shared_ptr<CachedConstant>& entry) { return {entry->bytes.view, entry}; }

}  // namespace

namespace {
constexpr std::uint64_t kBlockAlignment = 256;  // of constants on devices, in bytes
constexpr std::size_t kSampledBytes = 64;       // of a computed constant, from all of it
}  // namespace

Result<SharedBytes> CopyToDevice(const SharedBytes& bytes, const LinkedDevice& device) {
  const DeviceApi* api = device.api;
  const DLDevice where = device.device;
  const std::uint64_t size = bytes.view.size();
  void* block = nullptr;
  int code = api->allocate(api->context, where, size, kBlockAlignment, device.scope, nullptr, &block);
  if (code != REWIRE_DEVICE_OK) return Forward(DeviceFailure(*api, where, code));
  std::shared_ptr<const void> owner = OwnerOf(*api, where, Held::kBlock, block);
  code = api->copy(api->context, block, where, bytes.view.data(), kHost, size, nullptr);
  if (code == REWIRE_DEVICE_OK) code = api->synchronize(api->context, where, nullptr);
  if (code != REWIRE_DEVICE_OK) return Forward(DeviceFailure(*api, where, code), "the copy to the device");
  return SharedBytes{{static_cast<const std::byte*>(block), bytes.view.size()}, std::move(owner)};
}

std::uint64_t DecodedBytes(const Constant& constant, const LinkedDevice& device, std::uint64_t alignment) {
  const bool as_it_lies =
      constant.codec == kCodecNone && device.api == nullptr &&
      IsAligned(constant.stored.view, std::max(AlignmentOf(constant.type.dtype), alignment));
  return as_it_lies ? 0 : constant.raw_bytes;
}

Result<SharedBytes> SharedConstantBytes(const Constant& constant, const ConstantCodecs& codecs,
                                        const LinkedDevice& device, std::uint64_t alignment) {
  auto wanted = std::make_shared<CachedConstant>();
  wanted->hash = constant.checksum;
  wanted->codec = constant.codec;
  wanted->alignment = std::max(AlignmentOf(constant.type.dtype), alignment);
  wanted->raw_bytes = constant.raw_bytes;
  wanted->memory = device.api;
  wanted->device_id = device.device.device_id;
  wanted->scope = device.scope;
  wanted->stored = constant.stored;
  const std::shared_ptr<CachedConstant> entry = Table::Instance().FindOrAdd(wanted);
  const std::lock_guard<std::mutex> lock(entry->mutex);
  if (!entry->ready) {
    Result<SharedBytes> bytes = DecodeOnHost(constant, codecs, wanted->alignment);
    if (bytes && device.api != nullptr) {
      const bool unread = bytes->view.data() == constant.stored.view.data();
      if (Status ok = unread ? CheckStored(constant) : Status(); !ok) return Forward(ok);
      bytes = CopyToDevice(*bytes, device);
    }
    if (!bytes) return Forward(bytes);
    entry->bytes = *std::move(bytes);
    entry->ready = true;
  }
  return ContentOf(entry);
}

SharedBytes SharedComputedBytes(const SharedBytes& bytes, std::uint64_t alignment,
                                const void* allocator_context) {
  auto wanted = std::make_shared<CachedConstant>();
  // It only finds candidates, and what is equal is read in full anyway. The hash of files would be the only
  // reason for xxHash in a program whose executables are linked in.
  const std::size_t step = bytes.view.size() / kSampledBytes + 1;
  for (std::size_t i = 0; i < bytes.view.size(); i += step) {
    wanted->hash = wanted->hash * 31 + std::to_integer<std::uint64_t>(bytes.view[i]);
  }
  wanted->raw_bytes = bytes.view.size();
  wanted->alignment = alignment;
  wanted->memory = allocator_context;
  wanted->stored = bytes;
  wanted->bytes = bytes;
  wanted->ready = true;
  const std::shared_ptr<CachedConstant> entry = Table::Instance().FindOrAdd(wanted);
  const std::lock_guard<std::mutex> lock(entry->mutex);
  return ContentOf(entry);
}

}  // namespace rewire
