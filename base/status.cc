// SPDX-License-Identifier: Apache-2.0
#include "base/status.h"

#include <atomic>
#include <cstddef>
#include <mutex>
#include <new>
#include <optional>
#include <utility>

namespace rewire {

const char* StatusCodeName(StatusCode code) {
  switch (code) {
    case StatusCode::kOk:
      return "ok";
    case StatusCode::kInvalidArgument:
      return "invalid argument";
    case StatusCode::kNotFound:
      return "not found";
    case StatusCode::kIo:
      return "input/output error";
    case StatusCode::kInvalidFile:
      return "invalid file";
    case StatusCode::kUnsupported:
      return "unsupported";
    case StatusCode::kVerificationFailed:
      return "verification failed";
    case StatusCode::kLinkFailed:
      return "link failed";
    case StatusCode::kRuntimeFailed:
      return "run-time error";
    case StatusCode::kKernelFailed:
      return "kernel failed";
    case StatusCode::kDepthLimit:
      return "depth limit";
    case StatusCode::kStepLimit:
      return "step limit";
    case StatusCode::kMemoryLimit:
      return "memory limit";
    case StatusCode::kDeadlineExceeded:
      return "deadline exceeded";
    case StatusCode::kCancelled:
      return "cancelled";
    case StatusCode::kOutOfMemory:
      return "out of memory";
    case StatusCode::kBusy:
      return "busy";
    case StatusCode::kInternal:
      return "internal error";
  }
  return "unknown status code";
}

// What is said when there is no memory to say more: a std::string holds it without allocating.
constexpr char kOutOfMemory[] = "out of memory";

struct Error::Rep {
  std::atomic<std::uint32_t> references;
  StatusCode code;
  std::string message;

  void Retain() { references.fetch_add(1, std::memory_order_relaxed); }
  void Release() {
    if (references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }
};

Error::Error(StatusCode code, std::string message) noexcept
    : rep_(new (std::nothrow) Rep{1, code, std::move(message)}) {
  if (rep_ != nullptr) return;
  // One that is always there, and never released for good.
  alignas(Rep) static std::byte place[sizeof(Rep)];
  static Rep* const kShared = new (place) Rep{1, StatusCode::kOutOfMemory, kOutOfMemory};
  rep_ = kShared;
  rep_->Retain();
}
Error::Error(const Error& other) noexcept : rep_(other.rep_) { rep_->Retain(); }
// What was moved from stays an error, which its code and message may be asked of.
Error::Error(Error&& other) noexcept : rep_(other.rep_) { rep_->Retain(); }
Error& Error::operator=(const Error& other) noexcept {
  if (this == &other) return *this;
  other.rep_->Retain();
  if (rep_ != nullptr) rep_->Release();
  rep_ = other.rep_;
  return *this;
}
Error& Error::operator=(Error&& other) noexcept { return *this = other; }
Error::~Error() {
  if (rep_ != nullptr) rep_->Release();
}

StatusCode Error::code() const noexcept { return rep_->code; }
const std::string& Error::message() const noexcept { return rep_->message; }
const char* Error::what() const noexcept { return rep_->message.c_str(); }

Error& Error::AddContext(const Message& context) {
  return *this = Error(code(), Format("{}: {}", context, message()));
}

namespace {

constexpr std::size_t kKept = 64;
constexpr std::size_t kRings = 1024;  // those of later threads, while so many live, are one

// The errors of a thread's last failures; number n is in place n % kKept. A ring is never destroyed: when its
// thread ends, it keeps what it has and is the next new thread's.
struct Ring {
  explicit constexpr Ring(std::uint32_t place) : index(place) {}

  const std::uint32_t index;
  Ring* next_free = nullptr;
  std::mutex mutex;
  std::uint64_t last = 0;
  std::optional<Error> kept[kKept];
};

// All rings. The first is there before any other code runs, and for threads that get none of their own.
struct Rings {
  std::mutex mutex;
  Ring shared{0};
  std::uint32_t count = 1;
  Ring* free = nullptr;
  std::atomic<Ring*> all[kRings] = {&shared};

  Ring* Take() noexcept {
    const std::lock_guard lock(mutex);
    if (free != nullptr) return std::exchange(free, free->next_free);
    if (count == kRings) return &shared;
    Ring* const made = new (std::nothrow) Ring(count);
    if (made == nullptr) return &shared;
    all[count++].store(made, std::memory_order_release);
    return made;
  }
  void GiveBack(Ring* ring) noexcept {
    if (ring == &shared) return;
    const std::lock_guard lock(mutex);
    ring->next_free = std::exchange(free, ring);
  }
};

// Not destroyed either: threads may fail, and be asked why, while the program ends.
Rings& AllRings() {
  alignas(Rings) static std::byte place[sizeof(Rings)];
  static Rings* const kAll = new (place) Rings;
  return *kAll;
}

// This thread's. What fails while the thread's other objects are destroyed goes to the shared one.
Ring& OwnRing() {
  struct Lease {
    Ring* ring = AllRings().Take();
    ~Lease() { AllRings().GiveBack(std::exchange(ring, &AllRings().shared)); }
  };
  static thread_local Lease lease;
  return *lease.ring;
}

// What there is no memory for says so.
Error NewError(StatusCode code, const Message& message) noexcept {
#if defined(__cpp_exceptions)
  try {
    return Error(code, message.Text());
  } catch (const std::bad_alloc&) {
    return Error(StatusCode::kOutOfMemory, std::string(kOutOfMemory));
  }
#else
  return Error(code, message.Text());
#endif
}

}  // namespace

Status::Status(const Error& error) noexcept {
  Ring& ring = OwnRing();
  const std::lock_guard lock(ring.mutex);
  ring.kept[++ring.last % kKept] = error;
  bits_ = (ring.last << kRingBits | ring.index) << kCodeBits | static_cast<std::uint64_t>(error.code());
}

Error Status::error() const noexcept {
  const std::uint64_t place = bits_ >> kCodeBits;
  const std::uint64_t number = place >> kRingBits;
  if (Ring* const ring = AllRings().all[place & kRingMask].load(std::memory_order_acquire); ring != nullptr) {
    const std::lock_guard lock(ring->mutex);
    if (ring->last - number < kKept) return *ring->kept[number % kKept];
  }
  return NewError(code(), "the words of this failure were not kept: many others followed it");
}

Status Fail(StatusCode code, std::string text) noexcept { return Error(code, std::move(text)); }
Status Fail(StatusCode code, const char* text) noexcept { return Fail(code, Message(text)); }
Status Fail(StatusCode code, const Message& message) noexcept { return NewError(code, message); }

Status Forward(Status failed, const Message& context) { return failed.error().AddContext(context); }

}  // namespace rewire
