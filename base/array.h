// SPDX-License-Identifier: Apache-2.0
// Public header: <rewire/base/array.h>.
//
// Array: a growable array with the interface of std::vector, in 16 bytes and with less machine code.
//
// Sizes are stored as 32-bit numbers, so size() needs no division as std::vector's does. Code that does not
// depend on the element type, such as growing, is compiled once and not once for each type.
// docs/decisions/0006-arrays-of-our-own.md has the figures. Files and constants' data may be larger than 32
// bits can count, so they are not held in Arrays.
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

#include "rewire/base/assert.h"
#include "rewire/base/export.h"

namespace rewire {

namespace array_internal {

// The part of an Array that does not know its element type. `element` is the size of one element in bytes.
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

  // Moves `count` elements to uninitialized memory. nullptr: the elements are copied byte by byte.
  using Move = void (*)(void* to, void* from, std::uint32_t count);

  // Makes room for at least `wanted` elements. Throws std::bad_alloc when memory runs out or 32 bits cannot
  // count the elements; the array is then unchanged. Without exceptions the program ends, as it does when
  // operator new fails.
  REWIRE_API void Grow(std::uint64_t wanted, std::size_t element, Move move);
  // Adds one element and returns the address where the caller must construct it. Fails as Grow does.
  REWIRE_API void* Add(std::size_t element, Move move);
  // For trivially copyable elements: makes the array `wanted` long. New elements are zero.
  REWIRE_API void Resize(std::uint64_t wanted, std::size_t element);
  // For trivially copyable elements: appends `count` of them. They may lie in this array.
  REWIRE_API void Append(const void* elements, std::uint64_t count, std::size_t element);
};

}  // namespace array_internal

// A growable sequence of T in one block of memory.
//
// Growing moves the elements, so pointers to them are valid only until the array grows. Several threads may
// read one Array at once. Trivially copyable elements are copied as bytes, and new ones are zero. Other
// elements must have a move constructor that does not throw. An index of an element that the array does not
// have is a bug of the caller, which assertions find (base/assert.h).
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

  // The other constructors delegate to this one. So if constructing an element throws, the destructor runs
  // and releases what was made before.
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
  // Copies the elements of another container, for example of a std::vector<T>.
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
  T& operator[](std::size_t i) {
    CheckIndex(i);
    return data()[i];
  }
  const T& operator[](std::size_t i) const {
    CheckIndex(i);
    return data()[i];
  }
  T& front() { return (*this)[0]; }
  const T& front() const { return (*this)[0]; }
  T& back() { return (*this)[size() - 1]; }
  const T& back() const { return (*this)[size() - 1]; }

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

  // Takes the value by copy, since it may be an element of this array.
  T& push_back(T value) { return *new (bytes_.Add(sizeof(T), kMove)) T(std::move(value)); }
  template <typename... Args>
  T& emplace_back(Args&&... args) {
    return push_back(T(std::forward<Args>(args)...));
  }
  void pop_back() {
    back().~T();
    --bytes_.size;
  }

  // Appends the elements of [first, last), in order.
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
  // Inserts `value` before the element at `place` and returns its address. Takes time proportional to the
  // number of elements behind `place`.
  T* insert(const T* place, T value) {
    const std::size_t index = place - begin();
    REWIRE_ASSERT(index <= size(), "an insertion at {} of an array of {} elements", index, size());
    push_back(std::move(value));
    for (std::size_t i = size() - 1; i > index; --i) std::swap((*this)[i], (*this)[i - 1]);
    return data() + index;
  }
  void erase(const T* first, const T* last) {
    if (first == last) return;
    REWIRE_ASSERT(begin() <= first && first < last && last <= end(),
                  "{} elements from {} on of an array of {}", last - first, first - begin(), size());
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
  void CheckIndex(std::size_t i) const {
    REWIRE_ASSERT(i < size(), "index {} of an array of {} elements", i, size());
  }
  // Makes an array that has no memory yet a copy of these elements.
  void Copy(const T* elements, std::size_t size) {
    Begin(size);
    if constexpr (kPlain) {
      bytes_.Append(elements, size, sizeof(T));
    } else {
      for (; bytes_.size < size; ++bytes_.size) new (end()) T(elements[bytes_.size]);
    }
  }
  // Adds elements until the array is `size` long. The memory must already be reserved.
  template <typename... Value>
  void Fill(std::size_t size, const Value&... value) {
    if constexpr (kZero && sizeof...(Value) == 0) return bytes_.Resize(size, sizeof(T));
    for (; bytes_.size < size; ++bytes_.size) new (end()) T(value...);
  }
  // Reserves memory for `size` elements in an array that has none yet. It moves nothing, so it does not
  // instantiate the code that moves elements.
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
