// SPDX-License-Identifier: Apache-2.0
// Public header: <rewire/vm/kernel/packed.h>.
//
// CallPacked: makes packed functions of C++ callables with typed parameters. C++17, header only, nothing to
// link.
//
//   Status Scale(TensorView x, double factor, TensorView out);
//
// CallPacked(name, callable, args, num_args, result) checks the number and the types of the arguments against
// the callable's parameters. It then calls it, and translates its Status, value or exception for the ABI.
// These parameter types are allowed, by value or const reference:
//   TensorView                  a tensor, never null
//   std::optional<TensorView>   may be None or left out; left-out arguments are the last optional ones
//   TensorList                  any number of tensors; at most one such parameter, and no optional beside it
//   integers, bool              an int or a bool that fits
//   float, double               a float or an int
//   std::string_view            a string
//   ShapeView                   a Shape
//   const RewireFFIAny&         anything, unchecked
//   RewireFFIAny*               no argument: the function stores its owned result there
// The callable returns void, a Status, an integer, a float or a bool.
//
// Everything that an argument refers to is borrowed for the call. The template parameter `Errors` says where
// errors go: a class with `static void Set(const char* kind, const char* message)`. Kernel libraries use
// ApiErrors, which passes the error to the VM that loaded the library.
#pragma once

#include <cstdint>
#include <exception>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "rewire/vm/kernel/compiled.h"
#include "rewire/vm/kernel/kernel.h"
#include "rewire/vm/kernel/status.h"
#include "rewire/vm/kernel/tensor_view.h"

namespace rewire::kernel {

struct ApiErrors {
  static void Set(const char* kind, const char* message) { __rewire_kernel_api->set_error(kind, message); }
};

// A list of consecutive tensor arguments.
class TensorList {
 public:
  TensorList() = default;
  TensorList(const RewireFFIAny* args, int size) : args_(args), size_(size) {}

  int size() const { return size_; }
  TensorView operator[](int i) const { return TensorView(RewireTensorOf(&args_[i])); }
  TensorView back() const { return (*this)[size_ - 1]; }
  TensorList first(int count) const { return TensorList(args_, count); }
  TensorList from(int start) const { return TensorList(args_ + start, size_ - start); }

 private:
  const RewireFFIAny* args_ = nullptr;
  int size_ = 0;
};

// Names an argument's kind for messages: "int", "tensor", "None" and so on.
REWIRE_KERNEL_INLINE const char* TypeIndexName(std::int32_t type_index);

// Returns the text of a string argument of any form, or nullopt. The text is borrowed from the argument.
REWIRE_KERNEL_INLINE std::optional<std::string_view> StringOf(const RewireFFIAny& arg);

namespace internal {

// Reader<T>::Read converts one argument to a T. It returns false if type or value do not fit. kExpected
// describes T in the error message.
template <typename T, typename = void>
struct Reader;

template <>
struct Reader<TensorView> {
  static constexpr const char* kExpected = "a tensor";
  static bool Read(const RewireFFIAny& arg, TensorView* value) {
    const DLTensor* tensor = RewireTensorOf(&arg);
    *value = TensorView(tensor);
    return tensor != nullptr;
  }
};

template <typename T>
constexpr const char* IntName() {
  if (std::is_same_v<T, bool>) return "a bool";
  if (sizeof(T) == 8) return std::is_signed_v<T> ? "an int" : "an int of at least 0";
  if (sizeof(T) == 4) return std::is_signed_v<T> ? "an int of 32 bits" : "an int of 32 bits, at least 0";
  return "a small int";
}

template <typename T>
struct Reader<T, std::enable_if_t<std::is_integral_v<T>>> {
  static constexpr const char* kExpected = IntName<T>();
  static bool Read(const RewireFFIAny& arg, T* value) {
    if (arg.type_index != kRewireFFIInt && arg.type_index != kRewireFFIBool) return false;
    *value = static_cast<T>(arg.v_int64);
    const bool negative_as_unsigned = std::is_unsigned_v<T> && arg.v_int64 < 0;
    return !negative_as_unsigned && static_cast<std::int64_t>(*value) == arg.v_int64;
  }
};

template <typename T>
struct Reader<T, std::enable_if_t<std::is_floating_point_v<T>>> {
  static constexpr const char* kExpected = "a float";
  static bool Read(const RewireFFIAny& arg, T* value) {
    if (arg.type_index == kRewireFFIFloat) {
      *value = static_cast<T>(arg.v_float64);
      return true;
    }
    *value = static_cast<T>(arg.v_int64);
    return arg.type_index == kRewireFFIInt;
  }
};

template <>
struct Reader<std::string_view> {
  static constexpr const char* kExpected = "a string";
  static bool Read(const RewireFFIAny& arg, std::string_view* value) {
    const std::optional<std::string_view> text = StringOf(arg);
    if (text) *value = *text;
    return text.has_value();
  }
};

template <>
struct Reader<ShapeView> {
  static constexpr const char* kExpected = "a shape";
  static bool Read(const RewireFFIAny& arg, ShapeView* value) {
    if (arg.type_index != kRewireFFIShape) return false;
    const auto* cell = reinterpret_cast<const RewireFFIShapeCell*>(arg.v_obj + 1);
    *value = ShapeView(cell->data, cell->size);
    return true;
  }
};

template <typename T>
inline constexpr bool kIsOptional = false;
template <typename T>
inline constexpr bool kIsOptional<std::optional<T>> = true;

// Goes through the arguments and parameters together and keeps the first failure.
struct Cursor {
  const RewireFFIAny* args;
  RewireFFIAny* result;
  int next = 0;
  int optionals_given;  // number of optional parameters that have an argument
  int list_size;        // number of arguments of the TensorList parameter
  Status status;

  [[gnu::cold]] void Refuse(int position, const char* expected);
};

// Holds the value for a parameter of type T between reading the arguments and calling the function.
template <typename T>
struct Parameter {
  T value{};
  explicit Parameter(Cursor& cursor) {
    const int position = cursor.next++;
    if (!Reader<T>::Read(cursor.args[position], &value)) cursor.Refuse(position, Reader<T>::kExpected);
  }
  T& get() { return value; }
};

template <typename T>
struct Parameter<std::optional<T>> {
  std::optional<T> value;
  explicit Parameter(Cursor& cursor) {
    if (cursor.optionals_given == 0) return;
    --cursor.optionals_given;
    const int position = cursor.next++;
    if (cursor.args[position].type_index == kRewireFFINone) return;
    value.emplace();
    if (!Reader<T>::Read(cursor.args[position], &*value)) cursor.Refuse(position, Reader<T>::kExpected);
  }
  std::optional<T>& get() { return value; }
};

template <>
struct Parameter<TensorList> {
  TensorList value;
  explicit Parameter(Cursor& cursor) : value(cursor.args + cursor.next, cursor.list_size) {
    for (int i = 0; i < cursor.list_size; ++i, ++cursor.next) {
      if (RewireTensorOf(&cursor.args[cursor.next]) == nullptr) cursor.Refuse(cursor.next, "a tensor");
    }
  }
  TensorList& get() { return value; }
};

template <>
struct Parameter<RewireFFIAny> {
  const RewireFFIAny* value;
  explicit Parameter(Cursor& cursor) : value(&cursor.args[cursor.next++]) {}
  const RewireFFIAny& get() { return *value; }
};

template <>
struct Parameter<RewireFFIAny*> {
  RewireFFIAny* value;
  explicit Parameter(Cursor& cursor) : value(cursor.result) {}
  RewireFFIAny*& get() { return value; }
};

// The parameters of a function, a function pointer, or an object with exactly one operator().
template <typename F>
struct Signature : Signature<decltype(&F::operator())> {};
template <typename R, typename... Ps>
struct Signature<R (*)(Ps...)> {
  using Parameters = std::tuple<Parameter<std::decay_t<Ps>>...>;
  static constexpr int kTotal = sizeof...(Ps) - (0 + ... + int{std::is_same_v<Ps, RewireFFIAny*>});
  static constexpr int kOptional = (0 + ... + int{kIsOptional<std::decay_t<Ps>>});
  static constexpr int kLists = (0 + ... + int{std::is_same_v<std::decay_t<Ps>, TensorList>});
  static constexpr int kRequired = kTotal - kOptional - kLists;
  static_assert(kLists == 0 || (kLists == 1 && kOptional == 0), "one TensorList, and no optional beside it");
};
template <typename R, typename... Ps>
struct Signature<R(Ps...)> : Signature<R (*)(Ps...)> {};
template <typename R, typename C, typename... Ps>
struct Signature<R (C::*)(Ps...)> : Signature<R (*)(Ps...)> {};
template <typename R, typename C, typename... Ps>
struct Signature<R (C::*)(Ps...) const> : Signature<R (*)(Ps...)> {};

inline void SetResult(RewireFFIAny* result, bool value) {
  result->type_index = kRewireFFIBool;
  result->v_int64 = value ? 1 : 0;
}
template <typename T, typename = std::enable_if_t<std::is_arithmetic_v<T>>>
void SetResult(RewireFFIAny* result, T value) {
  if constexpr (std::is_floating_point_v<T>) {
    result->type_index = kRewireFFIFloat;
    result->v_float64 = static_cast<double>(value);
  } else {
    result->type_index = kRewireFFIInt;
    result->v_int64 = static_cast<std::int64_t>(value);
  }
}

[[gnu::cold]] REWIRE_KERNEL_INLINE Status WrongCount(int given, int required, int optional, bool has_list);

// Uses braces, because they guarantee that the parameters are read in order.
template <typename... Each>
[[gnu::always_inline]] inline std::tuple<Each...> ReadAll(Cursor& cursor, const std::tuple<Each...>*) {
  return std::tuple<Each...>{Each(cursor)...};
}

template <typename F>
Status CheckAndCall(F& function, const RewireFFIAny* args, std::int32_t num_args, RewireFFIAny* result) {
  using S = Signature<std::remove_pointer_t<std::decay_t<F>>>;
  const int extra = num_args - S::kRequired;
  if (extra < 0 || (S::kLists == 0 && extra > S::kOptional)) {
    return WrongCount(num_args, S::kRequired, S::kOptional, S::kLists != 0);
  }
  Cursor cursor{args, result, 0, extra, extra, Status()};
  auto parameters = ReadAll(cursor, static_cast<const typename S::Parameters*>(nullptr));
  if (!cursor.status.ok()) return std::move(cursor.status);
  return std::apply(
      [&](auto&... each) -> Status {
        using R = decltype(function(each.get()...));
        if constexpr (std::is_void_v<R>) {
          function(each.get()...);
          return Status();
        } else if constexpr (std::is_same_v<R, Status>) {
          return function(each.get()...);
        } else {
          SetResult(result, function(each.get()...));
          return Status();
        }
      },
      parameters);
}

}  // namespace internal

// Reports a failure as "name: message", or as the message alone if `name` is null. Returns -1.
template <typename Errors>
[[gnu::cold]] int Raise(const char* name, Status failure) {
  if (failure.kind() == nullptr) return -1;
  if (name != nullptr) failure = std::move(failure).WithContext(name);
  Errors::Set(failure.kind(), failure.message().c_str());
  return -1;
}

#if defined(__cpp_exceptions)
// Reports the exception that is being handled. Returns -1.
template <typename Errors>
[[gnu::cold]] int RaiseCaught(const char* name) {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    Errors::Set("MemoryError", "out of memory");
  } catch (const std::exception& thrown) {
    return Raise<Errors>(name, RuntimeError(thrown.what()));
  } catch (...) {
    return Raise<Errors>(name, RuntimeError("an exception that is no std::exception"));
  }
  return -1;
}
#endif

#ifdef REWIRE_KERNEL_COMPILED
// A library compiles once what its kernels report to.
extern template int Raise<ApiErrors>(const char* name, Status failure);
#if defined(__cpp_exceptions)
extern template int RaiseCaught<ApiErrors>(const char* name);
#endif
#endif

// Calls `body`, which returns a Status, and converts the outcome for the ABI. No exception escapes.
template <typename Errors, typename Body>
int Guard(const char* name, const Body& body) {
#if defined(__cpp_exceptions)
  try {
    Status status = body();
    return status.ok() ? 0 : Raise<Errors>(name, std::move(status));
  } catch (...) {
    return RaiseCaught<Errors>(name);
  }
#else
  Status status = body();
  return status.ok() ? 0 : Raise<Errors>(name, std::move(status));
#endif
}

// Described at the top of this file. Returns 0, or -1 with the error set. `name` is put in front of messages;
// it may be null.
template <typename Errors = ApiErrors, typename F>
int CallPacked(const char* name, F& function, const RewireFFIAny* args, std::int32_t num_args,
               RewireFFIAny* result) {
  return Guard<Errors>(name, [&] { return internal::CheckAndCall(function, args, num_args, result); });
}

// A packed function made of a C++ function: `Packed<&Scale>`. Its messages do not name the kernel, because
// the VM's messages do.
template <auto kFunction, typename Errors = ApiErrors>
int Packed(void* /*handle*/, const RewireFFIAny* args, std::int32_t num_args, RewireFFIAny* result) {
  constexpr auto kPointer = kFunction;
  return CallPacked<Errors>(nullptr, kPointer, args, num_args, result);
}

#ifdef REWIRE_KERNEL_DEFINITIONS
REWIRE_KERNEL_INLINE const char* TypeIndexName(std::int32_t type_index) {
  switch (type_index) {
    case kRewireFFINone:
      return "None";
    case kRewireFFIInt:
      return "int";
    case kRewireFFIBool:
      return "bool";
    case kRewireFFIFloat:
      return "float";
    case kRewireFFIOpaquePtr:
      return "pointer";
    case kRewireFFIDataType:
      return "dtype";
    case kRewireFFIDevice:
      return "device";
    case kRewireFFIDLTensorPtr:
    case kRewireFFITensor:
      return "tensor";
    case kRewireFFIRawStr:
    case kRewireFFISmallStr:
    case kRewireFFIStr:
      return "string";
    case kRewireFFIByteArrayPtr:
    case kRewireFFISmallBytes:
    case kRewireFFIBytes:
      return "bytes";
    case kRewireFFIError:
      return "error";
    case kRewireFFIFunction:
      return "function";
    case kRewireFFIShape:
      return "shape";
    case kRewireFFIArray:
      return "array";
    case kRewireFFIMap:
      return "map";
    case kRewireFFIModule:
      return "module";
    default:
      return "object";
  }
}

REWIRE_KERNEL_INLINE std::optional<std::string_view> StringOf(const RewireFFIAny& arg) {
  if (arg.type_index == kRewireFFIRawStr) return std::string_view(arg.v_c_str);
  if (arg.type_index == kRewireFFISmallStr) return std::string_view(arg.v_bytes, arg.small_str_len);
  if (arg.type_index == kRewireFFIStr) {
    const auto* cell = reinterpret_cast<const RewireFFIByteArray*>(arg.v_obj + 1);
    return std::string_view(cell->data, cell->size);
  }
  return std::nullopt;
}

REWIRE_KERNEL_INLINE void internal::Cursor::Refuse(int position, const char* expected) {
  if (!status.ok()) return;
  status = TypeError("argument ", position, ": expected ", expected, ", got ",
                     TypeIndexName(args[position].type_index),
                     args[position].type_index == kRewireFFIInt ? Text(" ", args[position].v_int64) : "");
}

REWIRE_KERNEL_INLINE Status internal::WrongCount(int given, int required, int optional, bool has_list) {
  const std::string most = optional == 0 ? "" : " to " + std::to_string(required + optional);
  return TypeError("expected ", has_list ? "at least " : "", required, most, " arguments, got ", given);
}

#ifdef REWIRE_KERNEL_COMPILED
template int Raise<ApiErrors>(const char* name, Status failure);
#if defined(__cpp_exceptions)
template int RaiseCaught<ApiErrors>(const char* name);
#endif
#endif
#endif

}  // namespace rewire::kernel
