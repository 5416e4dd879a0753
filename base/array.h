// SPDX-License-Identifier: Apache-2.0
// Array: what std::vector is to a program's tables, in 16 bytes and a fraction of the code.
//
// Sizes are 32-bit numbers that are kept as such, so that asking for one divides nothing, and what needs no
// type, as growing, is compiled once and not for each. docs/decisions/0006-arrays-of-our-own.md has the
// figures. Files and data of constants, which may be larger, are not held in Arrays.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include "base/export.h"

namespace rewire {

namespace array_internal {

// An Array without its type. `element` is the size of one in bytes.
struct Bytes {
  void* data = nullptr;
  std::uint32_t size = 0;
  std::uint32_t capacity = 0;

  Bytes() = default;
  Bytes(Bytes&& other) noexcept : Bytes() { Swap(other); }
  Bytes& operator=(Bytes&&) = delete;
  ~Bytes() { ::operator delete(data); }
  void Swap(Bytes& other) noexcept {
    std::swap(data, other.data);
    std::swap(size, other.size);
    std::swap(capacity, other.capacity);
  }

  // Moves `count` elements to memory that holds none; nullptr stands for copying their bytes.
  using Move = void (*)(void* to, void* from, std::uint32_t count);

  // Room for at least `wanted` elements. Throws std::bad_alloc, also where 32 bits cannot count them; nothing
  // has changed then. Without exceptions the program ends, as it does when operator new fails.
  REWIRE_API void Grow(std::uint64_t wanted, std::size_t element, Move move);
  // The place of one more element, which is counted; the rest as Grow.
  REWIRE_API void* Add(std::size_t element, Move move);
  // Of elements whose bytes are all there is to them: makes the array `wanted` long, what is new is zero.
  REWIRE_API void Resize(std::uint64_t wanted, std::size_t element);
  // Of such elements: `count` of them after the last one. They may be the array's own.
  REWIRE_API void Append(const void* elements, std::uint64_t count, std::size_t element);
};

}  // namespace array_internal

// A sequence of T in one block of memory, which moves when it grows: pointers into it hold until then.
// Threads may read one at once. Elements that are only their bytes are copied as such and zero when they are
// new; others must move without throwing.
template <typename T>
class Array {
  static constexpr bool kPlain = std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>;
  static constexpr bool kZero = kPlain && std::is_trivially_default_constructible_v<T>;

  template <typename Iterator>
  using IfIterator = typename std::iterator_traits<Iterator>::iterator_category;

 public:
  using value_type = T;
  using reference = T&;
  using const_reference = const T&;
  using size_type = std::size_t;
  using iterator = T*;
  using const_iterator = const T*;

  // The others begin with this one, so that the destructor takes back what they have when an element throws.
  Array() = default;
  explicit Array(std::size_t size) : Array() {
    Begin(size);
    Fill(size);
  }
  Array(std::size_t size, const T& value) : Array() {
    Begin(size);
    Fill(size, value);
  }
  Array(std::initializer_list<T> elements) : Array() { Copy(elements.begin(), elements.size()); }
  template <typename Iterator, typename = IfIterator<Iterator>>
  Array(Iterator first, Iterator last) : Array() {
    append(first, last);
  }
  // A copy of what another container holds, as a std::vector<T>.
  template <typename Container, typename = decltype(std::declval<const Container&>().size()),
            typename =
                std::enable_if_t<std::is_same_v<decltype(std::declval<const Container&>().data()), const T*>>>
  Array(const Container& elements)  // NOLINT(google-explicit-constructor): as std::vector converts to a span
      : Array() {
    Copy(elements.data(), elements.size());
  }
  Array(const Array& other) : Array() { Copy(other.begin(), other.size()); }
  Array(Array&& other) noexcept = default;
  Array& operator=(Array other) noexcept {
    bytes_.Swap(other.bytes_);
    return *this;
  }
  ~Array() { std::destroy(begin(), end()); }

  T* data() { return static_cast<T*>(bytes_.data); }
  const T* data() const { return static_cast<const T*>(bytes_.data); }
  std::size_t size() const { return bytes_.size; }
  bool empty() const { return bytes_.size == 0; }
  std::size_t capacity() const { return bytes_.capacity; }
  T* begin() { return data(); }
  T* end() { return data() + bytes_.size; }
  const T* begin() const { return data(); }
  const T* end() const { return data() + bytes_.size; }
  T& operator[](std::size_t i) { return data()[i]; }
  const T& operator[](std::size_t i) const { return data()[i]; }
  T& front() { return data()[0]; }
  const T& front() const { return data()[0]; }
  T& back() { return data()[bytes_.size - 1]; }
  const T& back() const { return data()[bytes_.size - 1]; }

  void reserve(std::size_t capacity) {
    if (capacity > bytes_.capacity) bytes_.Grow(capacity, sizeof(T), kMove);
  }
  void resize(std::size_t size) {
    if constexpr (kZero) {
      bytes_.Resize(size, sizeof(T));
    } else {
      Cut(size);
      reserve(size);
      Fill(size);
    }
  }
  void resize(std::size_t size, const T& value) {
    Cut(size);
    reserve(size);
    Fill(size, value);
  }
  void assign(std::size_t size, const T& value) {
    clear();
    resize(size, value);
  }
  template <typename Iterator, typename = IfIterator<Iterator>>
  void assign(Iterator first, Iterator last) {
    clear();
    append(first, last);
  }
  void clear() { Cut(0); }

  // By value: what is pushed may be an element of this array.
  T& push_back(T value) { return *new (bytes_.Add(sizeof(T), kMove)) T(std::move(value)); }
  template <typename... Args>
  T& emplace_back(Args&&... args) {
    return push_back(T(std::forward<Args>(args)...));
  }
  void pop_back() {
    back().~T();
    --bytes_.size;
  }

  // After the last element: the elements of [first, last), in order.
  template <typename Iterator, typename = IfIterator<Iterator>>
  void append(Iterator first, Iterator last) {
    if constexpr (kPlain && std::is_pointer_v<Iterator> &&
                  std::is_same_v<std::remove_cv_t<std::remove_pointer_t<Iterator>>, T>) {
      bytes_.Append(first, static_cast<std::uint64_t>(last - first), sizeof(T));
    } else {
      for (; first != last; ++first) emplace_back(*first);
    }
  }
  void append(std::initializer_list<T> elements) { append(elements.begin(), elements.end()); }
  // Before the element at `place`, in as many moves as there are elements behind it. Returns its place.
  T* insert(const T* place, T value) {
    const std::size_t index = place - begin();
    push_back(std::move(value));
    for (std::size_t i = size() - 1; i > index; --i) std::swap((*this)[i], (*this)[i - 1]);
    return data() + index;
  }
  void erase(const T* first, const T* last) {
    if (first == last) return;
    T* to = data() + (first - begin());
    for (T* from = data() + (last - begin()); from != end(); ++from) *to++ = std::move(*from);
    Cut(to - begin());
  }
  void erase(const T* place) { erase(place, place + 1); }

  friend bool operator==(const Array& a, const Array& b) {
    return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin());
  }
  friend bool operator!=(const Array& a, const Array& b) { return !(a == b); }
  friend bool operator<(const Array& a, const Array& b) {
    return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  // Of an array without memory: makes it a copy of these elements.
  void Copy(const T* elements, std::size_t size) {
    Begin(size);
    if constexpr (kPlain) {
      bytes_.Append(elements, size, sizeof(T));
    } else {
      for (; bytes_.size < size; ++bytes_.size) new (end()) T(elements[bytes_.size]);
    }
  }
  // Makes the array `size` long where there is room for that.
  template <typename... Value>
  void Fill(std::size_t size, const Value&... value) {
    if constexpr (kZero && sizeof...(Value) == 0) return bytes_.Resize(size, sizeof(T));
    for (; bytes_.size < size; ++bytes_.size) new (end()) T(value...);
  }
  // Of an array without memory: takes what `size` elements need. That moves none, so it needs no code for it.
  void Begin(std::size_t size) {
    if (size > 0) bytes_.Grow(size, sizeof(T), nullptr);
  }
  static void MoveElements(void* to, void* from, std::uint32_t count) {
    static_assert(std::is_nothrow_move_constructible_v<T> && alignof(T) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__);
    std::uninitialized_move_n(static_cast<T*>(from), count, static_cast<T*>(to));
    std::destroy_n(static_cast<T*>(from), count);
  }
  static constexpr array_internal::Bytes::Move kMove = kPlain ? nullptr : &MoveElements;
  void Cut(std::size_t size) {
    if constexpr (kPlain) {
      if (bytes_.size > size) bytes_.size = static_cast<std::uint32_t>(size);
    } else {
      while (bytes_.size > size) pop_back();
    }
  }

  array_internal::Bytes bytes_;
};

}  // namespace rewire
