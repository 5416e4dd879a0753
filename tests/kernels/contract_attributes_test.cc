// SPDX-License-Identifier: Apache-2.0
// The attributes that a kernel reads by its struct in kernels/contract are those that its row shows, with the
// same defaults, for the CPU and for devices.
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rewire/kernels/contract/convolution.h"
#include "rewire/kernels/contract/elementwise_attributes.h"
#include "rewire/kernels/contract/indexing_attributes.h"
#include "rewire/kernels/contract/movement_attributes.h"
#include "rewire/kernels/contract/normalization.h"
#include "rewire/kernels/contract/product_attributes.h"
#include "rewire/kernels/contract/quantization.h"
#include "rewire/kernels/contract/reduction_attributes.h"
#include "rewire/vm/kernel_set.h"

namespace rewire {
namespace {

// Keeps what a struct asks for: each name with its default, if that is a number.
class Asked {
 public:
  std::int64_t Int(const char* name, std::int64_t otherwise, std::int64_t /*least*/ = 0,
                   std::int64_t /*most*/ = 0) {
    return static_cast<std::int64_t>(Float(name, static_cast<double>(otherwise)));
  }
  double Float(const char* name, double otherwise) {
    if (!defaults.contains(name)) defaults[name] = otherwise;
    return otherwise;
  }
  bool Bool(const char* name, bool otherwise) { return Int(name, otherwise ? 1 : 0) != 0; }
  int Choice(const char* name, std::initializer_list<std::string_view> /*choices*/, int otherwise) {
    defaults[name] = std::nullopt;
    return otherwise;
  }
  std::vector<std::int64_t> Ints(const char* name, const std::vector<std::int64_t>& otherwise) {
    defaults[name] = std::nullopt;
    return otherwise;
  }
  void Require(const char* name) { defaults[name] = std::nullopt; }

  std::map<std::string, std::optional<double>> defaults;
};

// Returns where the attribute is shown in a row's text, behind its name; null if it is not.
const char* ShownIn(const char* text, const std::string& name) {
  const std::string_view all = text;
  for (std::size_t at = all.find(name); at != std::string_view::npos; at = all.find(name, at + 1)) {
    const bool begins = at == 0 || all[at - 1] == ' ';
    const char next = at + name.size() < all.size() ? all[at + name.size()] : ' ';
    if (begins && (next == ' ' || next == ',' || next == ';')) return text + at + name.size();
  }
  return nullptr;
}

class Libraries {
 public:
  Libraries() {
    for (const char* library : {"librewire_kernels_cpu.so", "librewire_kernels_device.so"})
      static_cast<void>(set_.AddLibrary(library));  // not every build has each
  }

  void Check(const Asked& asked, const std::string& kernel) {
    const std::string on_device = "rewire.device." + kernel.substr(std::strlen("rewire."));
    for (const std::string& name : {kernel, on_device}) {
      for (const auto& source : set_.sources()) {
        const PackedFunction function = source->Find(name).function;
        if (function.row == nullptr) continue;
        ++rows;
        CheckRow(asked, name, function.row->attributes);
      }
    }
  }

  std::size_t rows = 0;

 private:
  static void CheckRow(const Asked& asked, const std::string& kernel, const char* text) {
    REQUIRE(text != nullptr);
    for (const auto& [name, otherwise] : asked.defaults) {
      INFO(kernel << " reads " << name << ", and its row has '" << text << "'");
      const char* shown = ShownIn(text, name);
      REQUIRE(shown != nullptr);
      if (!otherwise) continue;
      REQUIRE(std::string_view(shown).substr(0, 3) == " = ");
      char* end = nullptr;
      const double number = std::strtod(shown + 3, &end);
      REQUIRE(end != shown + 3);
      CHECK(number == Approx(*otherwise).epsilon(1e-4));  // as many digits as the page shows
    }
  }

  KernelSet set_;
};

template <typename Given>
void CheckAll(Libraries* libraries, std::initializer_list<const char*> kernels) {
  Asked asked;
  Given().Read(asked);
  for (const char* kernel : kernels) {
    const std::size_t before = libraries->rows;
    libraries->Check(asked, kernel);
    INFO(kernel);
    CHECK(libraries->rows > before);
  }
}

TEST_CASE("rows show the attributes and the defaults that kernels read") {
  using namespace contract;
  Libraries libraries;
  CheckAll<SoftmaxAttributes>(&libraries, {"rewire.softmax", "rewire.log_softmax"});
  CheckAll<RowNormAttributes>(&libraries, {"rewire.layer_norm", "rewire.rms_norm"});
  CheckAll<GroupNormAttributes>(&libraries, {"rewire.group_norm"});
  CheckAll<BatchNormAttributes>(&libraries, {"rewire.batch_norm"});
  CheckAll<GatherAttributes>(&libraries, {"rewire.gather", "rewire.shape.gather", "rewire.gather_elements",
                                          "rewire.scatter_elements"});
  CheckAll<GatherNdAttributes>(&libraries, {"rewire.gather_nd", "rewire.shape.gather_nd"});
  CheckAll<OneHotAttributes>(&libraries, {"rewire.one_hot", "rewire.shape.one_hot"});
  CheckAll<TopKAttributes>(&libraries, {"rewire.top_k"});
  CheckAll<ConcatAttributes>(&libraries, {"rewire.concat", "rewire.shape.concat"});
  CheckAll<SplitAttributes>(&libraries, {"rewire.split", "rewire.shape.split"});
  CheckAll<TransposeAttributes>(&libraries, {"rewire.transpose"});
  CheckAll<SliceAttributes>(&libraries, {"rewire.slice"});
  CheckAll<TriluAttributes>(&libraries, {"rewire.trilu"});
  CheckAll<PadAttributes>(&libraries, {"rewire.pad"});
  CheckAll<GemmAttributes>(&libraries, {"rewire.gemm"});
  CheckAll<ReduceAttributes>(
      &libraries, {"rewire.reduce_sum", "rewire.reduce_mean", "rewire.reduce_max", "rewire.reduce_min"});
  CheckAll<ArgReduceAttributes>(&libraries, {"rewire.argmax", "rewire.argmin"});
  CheckAll<RunningAttributes>(&libraries, {"rewire.cumsum", "rewire.cumprod"});
  CheckAll<QuantizeAttributes>(&libraries, {"rewire.quantize_linear"});
  CheckAll<ScaleAttributes>(&libraries, {"rewire.dequantize_linear"});
  CheckAll<RequantizeAttributes>(&libraries, {"rewire.requantize"});
  CheckAll<MaxPoolAttributes>(&libraries, {"rewire.max_pool"});
  CheckAll<AveragePoolAttributes>(&libraries, {"rewire.avg_pool"});
  CheckAll<LpPoolAttributes>(&libraries, {"rewire.lp_pool"});
  CheckAll<GeluAttributes>(&libraries, {"rewire.gelu"});
  CheckAll<IsInfAttributes>(&libraries, {"rewire.isinf"});
  for (const NumberedKernel& kernel : kNumberedKernels) {
    Asked asked;
    for (const NumberAttribute& number : kernel.numbers) {
      if (number.name != nullptr && number.otherwise != kUnlimited && number.otherwise != -kUnlimited)
        number.Read(asked);
    }
    libraries.Check(asked, kernel.kernel);
  }
  CHECK(libraries.rows > 40);
}

}  // namespace
}  // namespace rewire
