// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/link/init_sharing.h"

#include <algorithm>
#include <cstring>
#include <ctime>
#include <mutex>
#include <optional>
#include <utility>

#include "rewire/base/hash.h"
#include "rewire/base/mapped_file.h"
#include "rewire/executable_format/instruction.h"
#include "rewire/vm/link/program_rep.h"
#include "rewire/vm/prepare/init_memory.h"
#include "rewire/vm/tensor.h"
#include "rewire/vm/value/shape.h"

namespace rewire {
namespace {

// The coarsest clock of a file system has steps of so many seconds.
constexpr std::int64_t kFileClock = 2;
// The version of memory that is never written again.
constexpr std::uint64_t kImmutable = ~std::uint64_t{0};
// Bytes at each end of a tensor that are looked at before all of it is.
constexpr std::size_t kSample = 256;
// So many candidates are compared byte by byte: hashes of different tensors differ unless somebody has forged
// them.
constexpr int kMostCompared = 4;

// Numbers places of a table in the order in which they are asked for.
class Numbering {
 public:
  explicit Numbering(std::size_t size) : numbers_(size, kNone) {}
  // Returns the number, and true if it is new.
  std::pair<std::uint32_t, bool> Of(std::uint32_t place) {
    const bool is_new = numbers_[place] == kNone;
    if (is_new) {
      numbers_[place] = static_cast<std::uint32_t>(order_.size());
      order_.push_back(place);
    }
    return {numbers_[place], is_new};
  }
  const Array<std::uint32_t>& order() const { return order_; }

 private:
  Array<std::uint32_t> numbers_;
  Array<std::uint32_t> order_;
};

// The function `__init` of linked code, and all that it may call.
struct InitCode {
  Array<std::uint32_t> constants;  // those it may load, in the order in which the code names them
  Array<std::uint32_t> kernels;    // the imports that it may call, likewise
  // The instructions. Operands that are places in tables of the module are replaced by what stands there, or
  // by numbers in the order in which they appear.
  std::string text;
  std::uint64_t hash = 0;  // of `text`
  // Every kernel declares by a row that equal arguments give equal results, so results may be shared.
  bool repeatable = false;
};

// A constant that `__init` loads, as it was when the Program was linked.
struct LoadedContent {
  // Memory that no Program changes: the place and this number say what it holds. 0: the host may change it.
  std::uint64_t version = 0;
  // The hash of the elements; 0: not computed yet. Linking computes it for memory that the host may change.
  mutable std::uint64_t hash = 0;
};

// A Program's InitSharing note.
struct InitNote {
  InitNote() = default;
  InitNote(const InitNote&) = delete;
  InitNote& operator=(const InitNote&) = delete;
  ~InitNote();

  std::shared_ptr<const InitCode> code;
  Array<LoadedContent> loaded;  // by InitCode::constants
  bool offered = false;         // others may find the Program
};

const InitNote& NoteOf(const ProgramRep& rep) { return *static_cast<const InitNote*>(rep.init_note.get()); }
const InitCode& InitOf(const ProgramRep& rep) { return *NoteOf(rep).code; }

class InitWriter {
 public:
  explicit InitWriter(const LinkedCode& code)
      : code_(code),
        module_(code.module()),
        functions_(module_.functions.size()),
        constants_(module_.constants.size()),
        kernels_(module_.kernels.size()) {}

  InitCode Write(std::uint32_t init) {
    functions_.Of(init);
    for (std::size_t i = 0; i < functions_.order().size(); ++i) {
      const Function& function = module_.functions[functions_.order()[i]];
      Words(&function.register_count, 1);
      for (std::uint32_t pc = 0; pc < function.code.size(); pc += WordsOf(function.code[pc]))
        Instruction(function.code.data() + pc);
    }
    InitCode made;
    made.repeatable = true;
    for (const std::uint32_t kernel : kernels_.order()) {
      const RewireKernelRow* row = code_.kernels[kernel].function.row;
      made.repeatable = made.repeatable && row != nullptr && (row->traits & REWIRE_KERNEL_IMPURE) == 0;
    }
    made.constants = constants_.order();
    made.kernels = kernels_.order();
    made.hash = Hash64({reinterpret_cast<const std::byte*>(text_.data()), text_.size()});
    made.text = std::move(text_);
    return made;
  }

 private:
  void Instruction(const std::uint32_t* at) {
    Words(at, 1);
    ForEachOperand(at, [&](const OperandInfo& operand, const std::uint32_t* words, std::uint32_t count) {
      const OperandTraits& traits = TraitsOf(operand.kind);
      if (IsList(operand.kind)) Words(&count, 1);
      if (traits.table == ModuleTable::kNone || *words == kNone) {
        Words(words, std::size_t{count} * traits.words);
      } else {
        Place(traits.table, *words);
      }
    });
  }

  void Place(ModuleTable table, std::uint32_t place) {
    switch (table) {
      case ModuleTable::kFunctions:
        return Number(functions_.Of(place).first);
      case ModuleTable::kConstants:
        return Number(constants_.Of(place).first);
      case ModuleTable::kKernels:
        return Number(kernels_.Of(place).first);
      case ModuleTable::kStrings:
        return Text(module_.strings[place]);
      case ModuleTable::kDevices: {
        const LinkedDevice& device = code_.devices[place];
        Append(&device.api, sizeof(device.api));
        Append(&device.device, sizeof(device.device));
        return Text(module_.devices[place].memory_scope);
      }
      case ModuleTable::kNone:
        return;
    }
  }

  void Append(const void* data, std::size_t bytes) { text_.append(static_cast<const char*>(data), bytes); }
  void Words(const std::uint32_t* words, std::size_t count) { Append(words, count * sizeof(*words)); }
  void Number(std::uint32_t number) { Words(&number, 1); }
  void Text(const std::string& text) {
    Number(static_cast<std::uint32_t>(text.size()));
    text_ += text;
  }

  const LinkedCode& code_;
  const Module& module_;
  Numbering functions_, constants_, kernels_;
  std::string text_;
};

// Factories make an object for each Program. The row says that it does what the attributes say.
bool SameKernel(const LinkedKernel& a, const LinkedKernel& b) {
  const KernelImport &import = *a.import, &other = *b.import;
  return a.function.row == b.function.row && a.function.call == b.function.call &&
         (a.function.handle == b.function.handle || !import.attributes.empty()) &&
         import.name == other.name && import.attributes == other.attributes && import.flags == other.flags &&
         import.alignment == other.alignment && import.also_written == other.also_written;
}

bool SameCode(const ProgramRep& a, const ProgramRep& b) {
  const InitCode &one = InitOf(a), &other = InitOf(b);
  if (&one == &other) return true;
  if (one.text != other.text || one.kernels.size() != other.kernels.size()) return false;
  for (std::size_t i = 0; i < one.kernels.size(); ++i) {
    if (!SameKernel(a.kernels[one.kernels[i]], b.kernels[other.kernels[i]])) return false;
  }
  return true;
}

const DLTensor& Loaded(const ProgramRep& rep, std::size_t i) {
  return TensorOf(rep.constants[InitOf(rep).constants[i]])->tensor;
}

Span<const std::byte> BytesOf(const DLTensor& tensor) {
  const TensorView view(tensor);
  return {static_cast<const std::byte*>(view.data()), static_cast<std::size_t>(view.bytes())};
}

std::uint64_t HashOf(const ProgramRep& rep, std::size_t i) {
  std::uint64_t& kept = NoteOf(rep).loaded[i].hash;
  std::uint64_t hash = __atomic_load_n(&kept, __ATOMIC_RELAXED);
  if (hash != 0) return hash;
  hash = Hash64(BytesOf(Loaded(rep, i)));
  __atomic_store_n(&kept, hash, __ATOMIC_RELAXED);
  return hash;
}

// The version of memory that no Program changes, and 0 for other memory. A mapped file's is the time of its
// last change, unless another change could have the same time.
std::uint64_t VersionOf(Span<const std::byte> bytes, ConstantKind kind) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  const std::int64_t changed = MappedFileChanged(bytes);
  if (changed == kNotMapped) return kind == ConstantKind::kData ? kImmutable : 0;
  const bool settled = std::time(nullptr) > changed / kSecond + kFileClock;
  return settled ? static_cast<std::uint64_t>(changed) : 0;
}

// Fills in what `__init` loads. False if some of it is not in memory of the host, or has gaps.
bool NoteLoaded(const ProgramRep& rep, InitNote* note) {
  note->loaded.resize(note->code->constants.size());
  for (std::size_t i = 0; i < note->loaded.size(); ++i) {
    const DLTensor& tensor = Loaded(rep, i);
    if (!IsHostDevice(tensor.device) || !TensorView(tensor).IsContiguous()) return false;
    const ConstantKind kind = rep.module().constants[note->code->constants[i]].kind;
    note->loaded[i].version = VersionOf(BytesOf(tensor), kind);
    if (note->loaded[i].version == 0) HashOf(rep, i);
  }
  return true;
}

bool SameEnds(Span<const std::byte> a, Span<const std::byte> b) {
  const std::size_t length = std::min(a.size(), kSample);
  const std::size_t last = a.size() - length;
  return length == 0 || (std::memcmp(a.data(), b.data(), length) == 0 &&
                         std::memcmp(a.data() + last, b.data() + last, length) == 0);
}

// Compares what two Programs load, the quick questions first.
class LoadedComparison {
 public:
  LoadedComparison(const ProgramRep& known, const ProgramRep& rep) : known_(known), rep_(rep) {}

  bool MayBeSame() {
    for (std::size_t i = 0; i < NoteOf(rep_).loaded.size(); ++i) {
      const DLTensor &a = Loaded(known_, i), &b = Loaded(rep_, i);
      if (!SameForm(a, b)) return false;
      const std::uint64_t version = NoteOf(known_).loaded[i].version;
      if (a.data == b.data && version != 0 && version == NoteOf(rep_).loaded[i].version) continue;
      const bool same_place = a.data == b.data;
      if (!same_place && !SameEnds(BytesOf(a), BytesOf(b))) return false;
      unsure_.push_back(i);
    }
    return true;
  }

  bool HaveSameHashes(WorkMeter* meter) const {
    for (const std::size_t i : unsure_) {
      if (!meter->Check() || !IsAsItWas(known_, i) || HashOf(known_, i) != HashOf(rep_, i)) return false;
    }
    return true;
  }

  bool HaveSameBytes(WorkMeter* meter) const {
    for (const std::size_t i : unsure_) {
      const Span<const std::byte> a = BytesOf(Loaded(known_, i)), b = BytesOf(Loaded(rep_, i));
      if (!meter->Check()) return false;
      if (a.data() != b.data() && !a.empty() && std::memcmp(a.data(), b.data(), a.size()) != 0) return false;
    }
    return true;
  }

 private:
  // A mapped file may have been changed since. Of other memory the hash tells.
  static bool IsAsItWas(const ProgramRep& rep, std::size_t i) {
    const std::uint64_t version = NoteOf(rep).loaded[i].version;
    return version == 0 || version == kImmutable ||
           MappedFileChanged(BytesOf(Loaded(rep, i))) == static_cast<std::int64_t>(version);
  }

  const ProgramRep& known_;
  const ProgramRep& rep_;
  Array<std::size_t> unsure_;
};

// The Programs whose results may be taken.
class Offers {
 public:
  // Never destroyed: Programs may be released while the process ends.
  static Offers& Instance() {
    static Offers& offers = *new Offers;
    return offers;
  }

  void Add(InitNote* note, const std::shared_ptr<const ProgramRep>& rep) {
    const std::lock_guard<std::mutex> lock(mutex_);
    all_.push_back({note->code->hash, note, rep});
    note->offered = true;
  }

  void Remove(const InitNote* note) {
    const std::lock_guard<std::mutex> lock(mutex_);
    all_.erase(
        std::find_if(all_.begin(), all_.end(), [&](const Offer& offer) { return offer.note == note; }));
  }

  // Returns those with this hash, the youngest first.
  Array<std::shared_ptr<const ProgramRep>> WithHash(std::uint64_t hash) {
    Array<std::shared_ptr<const ProgramRep>> found;
    const std::lock_guard<std::mutex> lock(mutex_);
    for (std::size_t i = all_.size(); i-- > 0;) {
      if (all_[i].hash != hash) continue;
      if (std::shared_ptr<const ProgramRep> alive = all_[i].rep.lock()) found.push_back(std::move(alive));
    }
    return found;
  }

 private:
  struct Offer {
    std::uint64_t hash;
    const InitNote* note;
    std::weak_ptr<const ProgramRep> rep;
  };
  std::mutex mutex_;
  Array<Offer> all_;
};

InitNote::~InitNote() {
  if (offered) Offers::Instance().Remove(this);
}

Array<std::uint32_t> ComputedOf(const ProgramRep& rep) {
  const Array<Constant>& constants = rep.module().constants;
  Array<std::uint32_t> computed;
  for (std::uint32_t i = 0; i < constants.size(); ++i) {
    if (constants[i].kind == ConstantKind::kComputed) computed.push_back(i);
  }
  return computed;
}

// True if the type says all of the tensor's dtype and shape, and that it lies in memory of the host.
bool IsTypeOf(const TypeNode& type, const DLTensor& tensor) {
  return type.dtype == tensor.dtype && type.rank == tensor.ndim && type.device == kHostDevice &&
         std::equal(type.dims.begin(), type.dims.end(), tensor.shape, tensor.shape + tensor.ndim);
}

bool SameAllocator(const Allocator& a, const Allocator& b) {
  return a.context == b.context && a.allocate == b.allocate && a.deallocate == b.deallocate;
}

// Whether the known Program's results have the types and the alignment of this one's constants, and memory of
// its allocator: a host may end another Program's allocator once that Program and its VMs are released.
bool ResultsFit(const ProgramRep& known, const ProgramRep& rep) {
  const bool is_aligned = known.output_alignment >= rep.output_alignment;
  if (!is_aligned || !SameAllocator(known.allocator, rep.allocator)) return false;
  const Array<std::uint32_t> theirs = ComputedOf(known), own = ComputedOf(rep);
  if (theirs.size() != own.size()) return false;
  for (std::size_t i = 0; i < own.size(); ++i) {
    const DLTensor& result = TensorOf(known.constants[theirs[i]])->tensor;
    const TypeNode& type = rep.module().constants[own[i]].type;
    if (!IsHostDevice(result.device) || !IsTypeOf(type, result)) return false;
  }
  return true;
}

// Null if none has the same.
std::shared_ptr<const ProgramRep> FindSame(const ProgramRep& rep, WorkMeter* meter) {
  int compared = 0;
  for (std::shared_ptr<const ProgramRep>& known : Offers::Instance().WithHash(InitOf(rep).hash)) {
    if (!SameCode(*known, rep) || !ResultsFit(*known, rep)) continue;
    LoadedComparison comparison(*known, rep);
    if (!comparison.MayBeSame() || !comparison.HaveSameHashes(meter)) continue;
    if (comparison.HaveSameBytes(meter)) return std::move(known);
    if (++compared == kMostCompared) break;
  }
  return nullptr;
}

bool TakeInit(ProgramRep* rep, const ProgramRep* donor, WorkMeter* meter) {
  auto note = std::make_shared<InitNote>();
  if (donor != nullptr) {
    if (donor->init_note == nullptr) return false;
    note->code = NoteOf(*donor).code;
    note->loaded.resize(NoteOf(*donor).loaded.size());
    for (std::size_t i = 0; i < note->loaded.size(); ++i) {
      const LoadedContent& known = NoteOf(*donor).loaded[i];
      note->loaded[i].version = known.version;
      note->loaded[i].hash = __atomic_load_n(&known.hash, __ATOMIC_RELAXED);
    }
    rep->init_note = std::move(note);
    rep->init_bytes = donor->init_bytes;
    return false;
  }
  const std::optional<std::uint32_t> init = rep->executable.FindFunction(kInitFunction);
  note->code = std::make_shared<const InitCode>(InitWriter(*rep->code).Write(*init));
  if (!note->code->repeatable) return false;
  rep->init_note = note;
  if (!NoteLoaded(*rep, note.get())) {
    rep->init_note = nullptr;
    return false;
  }
  const std::shared_ptr<const ProgramRep> known = FindSame(*rep, meter);
  if (known == nullptr || known->init_bytes > meter->bytes_left()) return false;
  rep->init_bytes = known->init_bytes;
  const Array<std::uint32_t> theirs = ComputedOf(*known), own = ComputedOf(*rep);
  for (std::size_t i = 0; i < own.size(); ++i) {
    const RewireFFIAny& result = known->constants[theirs[i]];
    ObjectOf(result)->AddStrong();
    rep->constants[own[i]] = result;
  }
  return true;
}

void OfferInit(const std::shared_ptr<ProgramRep>& rep) {
  Offers::Instance().Add(static_cast<InitNote*>(rep->init_note.get()), rep);
}

}  // namespace

const InitSharing* ShareInitResults() {
  static constexpr InitSharing kSharing = {&TakeInit, &OfferInit, &MemoryForInit, &MoveInitResults};
  return &kSharing;
}

}  // namespace rewire
