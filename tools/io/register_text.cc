// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/io/register_text.h"

#include <fmt/format.h>

#include "rewire/tools/io/units.h"
#include "rewire/vm/kernel/kernel.h"
#include "rewire/vm/value/objects.h"
#include "rewire/vm/value/shape.h"

namespace rewire::tools {

std::string RegisterText(const RewireFFIAny& value) {
  if (const DLTensor* tensor = RewireTensorOf(&value)) return rewire::TensorText(*tensor);
  switch (value.type_index) {
    case kRewireFFINone:
      return "nothing";
    case kInt32Kind:
    case kInt64Kind:
      return std::to_string(value.v_int64);
    case kAdtKind:
      return fmt::format("adt {} ({} fields)", TupleOf(value)->tag, TupleOf(value)->count);
    case kClosureKind:
      return "closure";
    case kStorageKind:
      return fmt::format("storage ({})", BytesText(StorageOf(value)->size));
    default:
      return fmt::format("object of kind {}", value.type_index);
  }
}

Value ShareRegister(const RewireFFIAny& any) {
  Value lent = Value::Adopt(any);
  Value shared = lent;
  lent.Release();
  return shared;
}

}  // namespace rewire::tools
