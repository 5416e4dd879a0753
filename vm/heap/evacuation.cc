// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/heap/evacuation.h"

#include "rewire/vm/value/shape.h"

namespace rewire {
namespace {

class Evacuation {
 public:
  Evacuation(ObjectHeap* heap, MemoryAccount* home, GrowingArray<MovedObject>* table)
      : heap_(*heap), home_(home), table_(*table) {}

  bool Run(const RewireFFIAny& value, RewireFFIAny* copy) {
    bool ok = Forward(value, copy);
    for (std::uint32_t i = 0; ok && i < table_.size(); ++i) {
      if (!IsTupleKind(table_[i].from->type_index)) continue;
      const auto* from = static_cast<const TupleObject*>(table_[i].from);
      auto* to = static_cast<TupleObject*>(table_[i].to);
      for (std::uint32_t field = 0; ok && field < from->count; ++field) {
        ok = Forward(from->fields()[field], &to->fields()[field]);
      }
    }
    for (std::uint32_t i = 0; i < table_.size(); ++i) table_[i].from->local = table_[i].local;
    for (std::uint32_t i = 0; i < table_.size(); ++i) DropStrong(table_[i].to);
    if (!ok && IsObjectKind(copy->type_index)) DropStrong(ObjectOf(*copy));
    return ok;
  }

 private:
  // A strong reference to what stands for the value outside.
  bool Forward(const RewireFFIAny& value, RewireFFIAny* to) {
    *to = value;
    if (!IsObjectKind(value.type_index)) return true;
    Object* object = ObjectOf(value);
    if (object->local < table_.size() && table_[object->local].from == object) {
      to->v_ptr = table_[object->local].to;
      ObjectOf(*to)->AddStrong();
      return true;
    }
    if (object->local >= kShared || object->type_index == kStorageKind) {
      heap_.Share(value);
      if (object->local == kShared) object->AddStrong();  // Share has counted a constant already
      return true;
    }
    *to = {};
    Object* copy = IsTupleKind(object->type_index) ? CopyTuple(static_cast<const TupleObject*>(object))
                                                   : CopyTensor(static_cast<TensorObject*>(object));
    if (copy == nullptr) return false;
    if (!table_.Push({object, copy, object->local})) {
      DropStrong(copy);
      return false;
    }
    object->local = table_.size() - 1;  // where its copy is found; put back at the end
    copy->AddStrong();
    *to = MakeAny(value.type_index, copy);
    return true;
  }

  Object* CopyTuple(const TupleObject* tuple) {
    TupleObject* copy = NewSharedTuple(tuple->type_index, tuple->tag, tuple->count, home_);
    if (copy != nullptr) copy->program = tuple->program;
    return copy;
  }

  Object* CopyTensor(TensorObject* tensor) {
    const DLTensor& dl = tensor->tensor;
    const Span<const std::int64_t> shape(dl.shape, static_cast<std::size_t>(dl.ndim));
    StorageObject* storage = tensor->storage;
    const bool moves = storage != nullptr && storage->account == heap_.account() &&
                       (storage->block != nullptr || storage->has_own_memory()) &&
                       storage->device_api == nullptr;
    TensorObject* copy = moves ? NewSharedHostTensor(dl.dtype, shape, home_)
                               : NewSharedTensor(static_cast<std::uint32_t>(dl.ndim), home_);
    if (copy == nullptr) return nullptr;
    copy->flags |= tensor->flags & (TensorObject::kImmutable | TensorObject::kForCall);
    if (moves) {
      CopyElements(dl, copy->tensor.data);
      return copy;
    }
    SetContiguousDims(copy, dl.dtype, dl.shape, static_cast<std::uint32_t>(dl.ndim));
    copy->tensor.data = dl.data;
    copy->tensor.byte_offset = dl.byte_offset;
    copy->tensor.device = dl.device;
    copy->storage = storage;
    if (storage == nullptr) return copy;
    heap_.Share(MakeAny(kStorageKind, storage));
    storage->AddStrong();
    return copy;
  }

  ObjectHeap& heap_;
  MemoryAccount* home_;
  GrowingArray<MovedObject>& table_;
};

}  // namespace

bool Evacuate(ObjectHeap* heap, MemoryAccount* home, GrowingArray<MovedObject>* table, RewireFFIAny* value) {
  // A constant stays where it is. Who keeps the value counts it, as any other result.
  if (ObjectHeap::IsUncounted(*value)) return true;
  RewireFFIAny copy{};
  const bool ok = Evacuation(heap, home, table).Run(*value, &copy);
  table->Release();
  if (!ok) return false;
  heap->Release(*value);
  *value = copy;
  return true;
}

}  // namespace rewire
