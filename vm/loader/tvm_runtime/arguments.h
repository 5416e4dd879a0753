// SPDX-License-Identifier: Apache-2.0
//
// How a function of TVM's runtime reads what compiled code passes to it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "rewire/base/message.h"
#include "rewire/vm/loader/tvm_runtime/classic_abi.h"

namespace rewire::tvm_runtime {

// Sets the error of the calling thread. Gives what a failed function of the classic ABI returns.
int Fail(const Message& message);
// Fails if the run was cancelled or is late.
int CheckCancelled();

// The arguments of a call. A reader that finds something else keeps the first error and gives a default.
class Arguments {
 public:
  Arguments(const char* function, const ClassicValue* values, const int* codes, int count)
      : function_(function), values_(values), codes_(codes), count_(count) {}

  // A tensor of the host without gaps, or null.
  const DLTensor* TensorAt(int i);
  std::int64_t IntegerAt(int i);
  std::string_view TextAt(int i);
  std::nullptr_t Refuse(int i, const char* expected);

  // Empty if everything that was read is as it should be.
  const std::string& error() const { return error_; }
  const char* function() const { return function_; }
  int count() const { return count_; }

 private:
  const char* function_;
  const ClassicValue* values_;
  const int* codes_;
  int count_;
  std::string error_;
};

inline char* DataOf(const DLTensor& tensor) { return static_cast<char*>(tensor.data) + tensor.byte_offset; }

// Elements may lie at any address.
template <typename T>
T Load(const char* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}
template <typename T>
void Store(char* at, T value) {
  std::memcpy(at, &value, sizeof(T));
}

}  // namespace rewire::tvm_runtime
