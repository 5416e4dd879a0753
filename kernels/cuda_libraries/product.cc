// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/cuda_libraries/product.h"

#include <algorithm>
#include <memory>

#include "rewire/kernels/cuda_libraries/context.h"
#include "rewire/kernels/cuda_libraries/session.h"
#include "rewire/kernels/device/call/device_call.h"

namespace rewire::kernel::cuda_libraries {
namespace {

// cuBLASLt's columns are our rows: it computes out, transposed, as b transposed times a transposed. So its A
// is b, and its rows are our columns.
struct ProductPlan {
  struct Key {
    Product product;
    bool half;
    std::uint32_t alignment;  // of the least aligned tensor, in bytes
    bool operator==(const Key&) const = default;
  };
  explicit ProductPlan(const Key& given) : key(given) {}
  ~ProductPlan() {
    const CublasFunctions& library = *Cublas();
    if (desc != nullptr) library.cublasLtMatmulDescDestroy(desc);
    for (void* layout : {left, right, addend, out}) {
      if (layout != nullptr) library.cublasLtMatrixLayoutDestroy(layout);
    }
  }
  ProductPlan(const ProductPlan&) = delete;
  ProductPlan& operator=(const ProductPlan&) = delete;

  Key key;
  bool usable = false;  // false: the product is not for cuBLASLt
  void *desc = nullptr, *left = nullptr, *right = nullptr, *addend = nullptr, *out = nullptr;
  MatmulHeuristic best{};
};

bool CublasOk(CublasStatus status) { return status == kCublasSuccess; }

// A matrix that lies in memory in rows of `columns` elements.
bool MakeLayout(const ProductPlan::Key& key, std::int64_t rows, std::int64_t columns, std::int64_t step,
                void** layout) {
  const CublasFunctions& library = *Cublas();
  const int type = key.half ? kReal16 : kReal32;
  if (!CublasOk(library.cublasLtMatrixLayoutCreate(layout, type, static_cast<std::uint64_t>(columns),
                                                   static_cast<std::uint64_t>(rows), columns)))
    return false;
  if (key.product.batch == 1) return true;
  const auto batch = static_cast<std::int32_t>(key.product.batch);
  return CublasOk(
             library.cublasLtMatrixLayoutSetAttribute(*layout, kLayoutBatchCount, &batch, sizeof(batch))) &&
         CublasOk(library.cublasLtMatrixLayoutSetAttribute(*layout, kLayoutBatchOffset, &step, sizeof(step)));
}

template <typename T>
bool SetInDesc(void* desc, int attribute, T value) {
  return CublasOk(Cublas()->cublasLtMatmulDescSetAttribute(desc, attribute, &value, sizeof(value)));
}

bool Describe(ProductPlan* plan, const void* bias) {
  const Product& product = plan->key.product;
  const std::int64_t size = std::int64_t{product.m} * product.n;
  const std::int64_t b_rows = product.b_transposed != 0 ? product.n : product.k;
  const std::int64_t b_columns = product.b_transposed != 0 ? product.k : product.n;
  const std::int64_t a_rows = product.a_transposed != 0 ? product.k : product.m;
  const std::int64_t a_columns = product.a_transposed != 0 ? product.m : product.k;
  if (!CublasOk(Cublas()->cublasLtMatmulDescCreate(&plan->desc, kCompute32, kReal32)) ||
      !MakeLayout(plan->key, b_rows, b_columns, product.b_step, &plan->left) ||
      !MakeLayout(plan->key, a_rows, a_columns, product.a_step, &plan->right) ||
      !MakeLayout(plan->key, product.m, product.n, size, &plan->addend) ||
      !MakeLayout(plan->key, product.m, product.n, size, &plan->out))
    return false;
  if (product.b_transposed != 0 && !SetInDesc(plan->desc, kMatmulTransA, std::int32_t{kOperationT}))
    return false;
  if (product.a_transposed != 0 && !SetInDesc(plan->desc, kMatmulTransB, std::int32_t{kOperationT}))
    return false;
  int epilogue = product.activation == Activation::kRelu   ? kEpilogueRelu
                 : product.activation == Activation::kGelu ? kEpilogueGelu
                                                           : kEpilogueNone;
  if (product.addend == Product::kRow) {
    epilogue = epilogue == kEpilogueNone ? kEpilogueBias : epilogue | kEpilogueBias;
    const std::int32_t type = plan->key.half ? kReal16 : kReal32;
    if (!SetInDesc(plan->desc, kMatmulBiasType, type) || !SetInDesc(plan->desc, kMatmulBiasPointer, bias))
      return false;
  }
  return epilogue == kEpilogueNone ||
         SetInDesc(plan->desc, kMatmulEpilogue, static_cast<std::uint32_t>(epilogue));
}

// Asks for the algorithm. False: there is none.
bool Choose(ProductPlan* plan, void* handle) {
  const CublasFunctions& library = *Cublas();
  void* preference = nullptr;
  if (!CublasOk(library.cublasLtMatmulPreferenceCreate(&preference))) return false;
  const std::uint64_t most = kWorkspaceBytes;
  bool set = CublasOk(
      library.cublasLtMatmulPreferenceSetAttribute(preference, kPreferenceWorkspace, &most, sizeof(most)));
  for (const int attribute :
       {kPreferenceAlignmentA, kPreferenceAlignmentB, kPreferenceAlignmentC, kPreferenceAlignmentD}) {
    const std::uint32_t alignment = plan->key.alignment;
    set = set && CublasOk(library.cublasLtMatmulPreferenceSetAttribute(preference, attribute, &alignment,
                                                                       sizeof(alignment)));
  }
  int found = 0;
  set = set && CublasOk(library.cublasLtMatmulAlgoGetHeuristic(handle, plan->desc, plan->left, plan->right,
                                                               plan->addend, plan->out, preference, 1,
                                                               &plan->best, &found));
  library.cublasLtMatmulPreferenceDestroy(preference);
  return set && found >= 1 && CublasOk(plan->best.state) && plan->best.workspace_bytes <= kWorkspaceBytes;
}

std::uint32_t AlignmentOf(std::initializer_list<const void*> addresses) {
  constexpr std::uintptr_t kMost = 256;  // more is of no use
  std::uintptr_t all = kMost;
  for (const void* address : addresses) all |= reinterpret_cast<std::uintptr_t>(address);
  return static_cast<std::uint32_t>(all & -all);
}

}  // namespace

Status Multiply(const Product& product, TensorView a, TensorView b, const std::optional<TensorView>& c,
                TensorView out, bool* done) {
  const CublasFunctions* library = Cublas();
  if (library == nullptr || product.m == 0 || product.n == 0 || product.k == 0) return Status();
  const RewireDeviceApi* api = nullptr;
  void* stream = nullptr;
  if (__rewire_kernel_api->device(out.device(), &api, &stream) != 0) return Status::AlreadySet();
  auto* session = Session<ProductPlan>::OfThisKernel();
  const EnteredContext context(out.device().device_id);
  if (session == nullptr || !context) return Status();
  Handles& handles = session->Enter(out.device().device_id, stream);
  const std::lock_guard<std::mutex> lock(handles.mutex());
  void* handle = handles.cublas();
  if (handle == nullptr) return Status();
  const void* addend = c ? c->raw_data() : out.raw_data();
  const ProductPlan::Key key{product, out.dtype().bits == 16,
                             AlignmentOf({a.raw_data(), b.raw_data(), addend, out.raw_data()})};
  ProductPlan* plan = session->Find(key);
  if (plan == nullptr) {
    auto made = std::make_unique<ProductPlan>(key);
    made->usable = Describe(made.get(), addend) && Choose(made.get(), handle);
    plan = session->Keep(std::move(made));
  }
  if (!plan->usable) return Status();
  if (product.addend == Product::kRow && !SetInDesc(plan->desc, kMatmulBiasPointer, addend)) return Status();
  device::Scratch workspace;
  const std::size_t bytes = plan->best.workspace_bytes;
  if (bytes != 0) {
    if (Status s = workspace.Make(out, DTypeOf<std::uint8_t>(), kWorkspaceBytes); !s.ok()) return s;
  }
  const float alpha = product.alpha;
  const float beta = product.addend == Product::kMatrix ? product.beta : 0;
  const CublasStatus status = library->cublasLtMatmul(
      handle, plan->desc, &alpha, b.raw_data(), plan->left, a.raw_data(), plan->right, &beta,
      product.addend == Product::kMatrix ? addend : out.raw_data(), plan->addend, out.raw_data(), plan->out,
      &plan->best.algorithm, bytes != 0 ? workspace.view().raw_data() : nullptr, bytes, stream);
  if (!CublasOk(status)) return RuntimeError("cublasLtMatmul fails with status ", status);
  *done = true;
  return Status();
}

}  // namespace rewire::kernel::cuda_libraries
