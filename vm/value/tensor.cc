// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/tensor.h"

#include <cstring>
#include <new>

#include "rewire/vm/kernel/dlpack_versioned.h"
#include "rewire/vm/memory/block_pool.h"
#include "rewire/vm/value/memory_range.h"
#include "rewire/vm/value/objects.h"
#include "rewire/vm/value/shape.h"

namespace rewire {

TensorView::TensorView(void* data, DLDataType dtype, Span<const std::int64_t> shape, DLDevice device,
                       Span<const std::int64_t> strides, std::uint64_t byte_offset) {
  tensor_.data = data;
  tensor_.device = device;
  tensor_.dtype = dtype;
  tensor_.byte_offset = byte_offset;
  TakeDims(shape.data(), strides.size() == shape.size() ? strides.data() : nullptr,
           static_cast<std::int32_t>(shape.size()));
}

TensorView::TensorView(const DLTensor& tensor) : tensor_(tensor) {
  if (tensor.ndim < 0 || (tensor.ndim > 0 && tensor.shape == nullptr)) {
    Clear();
    return;
  }
  TakeDims(tensor.shape, tensor.strides, tensor.ndim);
}

TensorView::TensorView(const TensorView& other) : tensor_(other.tensor_), read_only_(other.read_only_) {
  TakeDims(other.tensor_.shape, other.tensor_.strides, other.tensor_.ndim);
}

TensorView::TensorView(TensorView&& other) noexcept
    : tensor_(other.tensor_), read_only_(other.read_only_), more_dims_(std::move(other.more_dims_)) {
  if (tensor_.ndim <= kInlineRank) TakeDims(tensor_.shape, tensor_.strides, tensor_.ndim);
  other.Clear();
}

TensorView& TensorView::operator=(const TensorView& other) {
  if (this == &other) return *this;
  tensor_ = other.tensor_;
  read_only_ = other.read_only_;
  TakeDims(other.tensor_.shape, other.tensor_.strides, other.tensor_.ndim);
  return *this;
}

void TensorView::Clear() {
  tensor_ = {};
  read_only_ = false;
}

void TensorView::TakeDims(const std::int64_t* shape, const std::int64_t* strides, std::int32_t rank) {
  std::int64_t* dims = inline_dims_;
  if (rank > kInlineRank) {
    more_dims_.resize(2 * static_cast<std::size_t>(rank));
    dims = more_dims_.data();
  }
  for (std::int32_t i = 0; i < rank; ++i) dims[i] = shape[i];
  std::int64_t* own_strides = dims + (rank > kInlineRank ? rank : kInlineRank);
  std::int64_t stride = 1;
  for (std::int32_t i = rank; i-- > 0;) {
    own_strides[i] = strides != nullptr ? strides[i] : stride;
    // A shape whose product overflows is refused where the view is used. Here its behavior must only be
    // defined.
    stride =
        static_cast<std::int64_t>(static_cast<std::uint64_t>(stride) * static_cast<std::uint64_t>(shape[i]));
  }
  tensor_.ndim = rank;
  tensor_.shape = dims;
  tensor_.strides = own_strides;
}

bool TensorView::IsContiguous() const { return rewire::IsContiguous(tensor_); }

std::int64_t TensorView::size() const { return CountElements(shape()).value_or(0); }

std::uint64_t TensorView::bytes() const { return static_cast<std::uint64_t>(size()) * ElementBytes(dtype()); }

namespace {

Status CheckShape(DLDataType dtype, Span<const std::int64_t> shape) {
  if (!IsValidDType(dtype))
    return Fail(StatusCode::kInvalidArgument, "tensor: unknown element type {}", DTypeName(dtype));
  if (shape.size() > static_cast<std::size_t>(kMaxRank)) {
    return Fail(StatusCode::kInvalidArgument, "tensor: rank {} given, at most {} is supported", shape.size(),
                kMaxRank);
  }
  if (!TensorBytes(dtype, shape)) {
    return Fail(StatusCode::kInvalidArgument,
                "tensor: a dimension of shape {} is negative, or its size overflows", ShapeText(shape));
  }
  return {};
}

// The same of memory that somebody describes, and that it can be there.
Status CheckDescription(const DLTensor& dl) {
  if (dl.ndim > 0 && dl.shape == nullptr) {
    return Fail(StatusCode::kInvalidArgument, "tensor: rank {} given without a shape", dl.ndim);
  }
  if (Status ok = CheckShape(dl.dtype, {dl.shape, static_cast<std::size_t>(dl.ndim)}); !ok) return ok;
  MemoryRange range;
  if (!FindRange(dl, &range)) {
    return Fail(StatusCode::kInvalidArgument, "tensor: {} reaches beyond the address space", TensorText(dl));
  }
  if (dl.data != nullptr || range.empty()) return {};
  return Fail(StatusCode::kInvalidArgument, "tensor: {} has no data", TensorText(dl));
}

Status NoMemory() { return Fail(StatusCode::kOutOfMemory, "tensor: no memory"); }

// An object over memory that `storage` keeps (its reference passes), shaped like `like`.
Result<TensorObject*> MakeObject(const DLTensor& like, StorageObject* storage) {
  TensorObject* object = NewSharedTensor(static_cast<std::uint32_t>(like.ndim));
  if (object == nullptr) {
    DropStrong(storage);
    return NoMemory();
  }
  SetContiguousDims(object, like.dtype, like.shape, static_cast<std::uint32_t>(like.ndim));
  if (like.strides != nullptr) {
    std::memcpy(object->tensor.strides, like.strides,
                static_cast<std::size_t>(like.ndim) * sizeof(std::int64_t));
  }
  // A driver's handle is no address. It stays as it is, until a VM takes the tensor.
  const bool handle = DeviceTypeOf(like.device) == kDLOpenCL;
  object->tensor.data = handle ? like.data : static_cast<char*>(like.data) + like.byte_offset;
  object->tensor.byte_offset = handle ? like.byte_offset : 0;
  // Memory of the host that CUDA pins is memory of the host.
  object->tensor.device = DeviceTypeOf(like.device) == kDLCUDAHost ? kHost : like.device;
  object->storage = storage;
  return object;
}

template <typename Managed>
Result<TensorObject*> TakeOverDLPack(Managed* managed) {
  auto release = [](void* context) {
    auto* tensor = static_cast<Managed*>(context);
    if (tensor->deleter != nullptr) tensor->deleter(tensor);
  };
  const DLTensor& dl = managed->dl_tensor;
  if (Status ok = CheckDescription(dl); !ok) {
    release(managed);
    return Forward(ok);
  }
  StorageObject* storage = NewSharedStorage();
  if (storage == nullptr) {
    release(managed);
    return NoMemory();
  }
  storage->data = dl.data;
  storage->device = dl.device;
  storage->release = release;
  storage->release_context = managed;
  return MakeObject(dl, storage);
}

// The owner that a managed tensor that we hand out keeps alive.
template <typename Managed>
Managed* Export(TensorObject* object) {
  auto* managed = new (std::nothrow) Managed{};
  if (managed == nullptr) return nullptr;
  object->AddStrong();
  managed->dl_tensor = object->tensor;
  const DeviceApi* api = object->storage != nullptr ? object->storage->device_api : nullptr;
  if (api != nullptr && (api->flags & REWIRE_DEVICE_HANDLES) != 0) {
    DLTensor& dl = managed->dl_tensor;
    std::uint64_t offset = 0;
    if (api->find_handle(api->context, dl.device, dl.data, &dl.data, &offset) == REWIRE_DEVICE_OK) {
      dl.byte_offset = offset;
    }
  }
  managed->manager_ctx = object;
  managed->deleter = [](Managed* self) {
    DropStrong(static_cast<TensorObject*>(self->manager_ctx));
    delete self;
  };
  return managed;
}

}  // namespace

Result<Tensor> Tensor::Make(DLDataType dtype, Span<const std::int64_t> shape) {
  if (Status ok = CheckShape(dtype, shape); !ok) return Forward(ok);
  TensorObject* object = NewSharedHostTensor(dtype, shape, MemoryAccount::Host());
  if (object == nullptr) return NoMemory();
  return Tensor(object);
}

Result<Tensor> Tensor::CopyOf(const TensorView& view) {
  if (!IsHostDevice(view.device())) {
    return Fail(StatusCode::kInvalidArgument, "tensor: only host memory can be copied here");
  }
  if (Status ok = CheckDescription(view.dl()); !ok) return Forward(ok);
  Result<Tensor> copy = Make(view.dtype(), view.shape());
  if (copy) CopyElements(view.dl(), copy->dl().data);
  return copy;
}

Result<Tensor> Tensor::FromDLPack(DLManagedTensor* managed) {
  if (managed == nullptr) return Fail(StatusCode::kInvalidArgument, "tensor: no DLPack tensor given");
  Result<TensorObject*> object = TakeOverDLPack(managed);
  if (!object) return Forward(object);
  return Tensor(*object);
}

Result<Tensor> Tensor::FromDLPack(DLManagedTensorVersioned* managed) {
  if (managed == nullptr) return Fail(StatusCode::kInvalidArgument, "tensor: no DLPack tensor given");
  if (managed->version.major != kDLPackMajor) {
    const std::string version = Format("{}.{}", managed->version.major, managed->version.minor);
    if (managed->deleter != nullptr) managed->deleter(managed);
    return Fail(StatusCode::kUnsupported, "tensor: DLPack version {} given, 1.x expected", version);
  }
  Result<TensorObject*> object = TakeOverDLPack(managed);
  if (!object) return Forward(object);
  if ((managed->flags & kDLPackReadOnly) != 0) (*object)->flags |= TensorObject::kImmutable;
  return Tensor(*object);
}

Result<Tensor> Tensor::Wrap(const TensorView& view, std::shared_ptr<const void> owner) {
  if (Status ok = CheckDescription(view.dl()); !ok) return Forward(ok);
  StorageObject* storage = NewOwnerStorage(view.data(), view.bytes(), view.device(), std::move(owner));
  if (storage == nullptr) return NoMemory();
  Result<TensorObject*> object = MakeObject(view.dl(), storage);
  if (!object) return Forward(object);
  if (view.read_only()) (*object)->flags |= TensorObject::kImmutable;
  return Tensor(*object);
}

Tensor::Tensor(const Tensor& other) : object_(other.object_) {
  if (object_ != nullptr) object_->AddStrong();
}

Tensor::~Tensor() {
  if (object_ != nullptr) DropStrong(object_);
}

const DLTensor& Tensor::dl() const {
  static const DLTensor kNoTensor{};
  return object_ == nullptr ? kNoTensor : object_->tensor;
}

Status Tensor::CheckDType(DLDataType wanted) const {
  if (object_ == nullptr) {
    return Fail(StatusCode::kInvalidArgument, "tensor: {} elements asked for, there is no tensor",
                DTypeName(wanted));
  }
  if (dtype() == wanted) return {};
  return Fail(StatusCode::kInvalidArgument, "tensor: {} elements asked for, it is {}", DTypeName(wanted),
              TensorText(dl()));
}

TensorView Tensor::view() const {
  TensorView view(dl());
  view.read_only_ = object_ != nullptr && (object_->flags & TensorObject::kImmutable) != 0;
  return view;
}

DLManagedTensor* Tensor::ToDLPack() const {
  return object_ == nullptr ? nullptr : Export<DLManagedTensor>(object_);
}

DLManagedTensorVersioned* Tensor::ToDLPackVersioned() const {
  if (object_ == nullptr) return nullptr;
  auto* managed = Export<DLManagedTensorVersioned>(object_);
  if (managed == nullptr) return nullptr;
  managed->version = {kDLPackMajor, 0};
  managed->flags = (object_->flags & TensorObject::kImmutable) != 0 ? kDLPackReadOnly : 0;
  return managed;
}

}  // namespace rewire
