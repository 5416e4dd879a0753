// SPDX-License-Identifier: Apache-2.0
//
// Tensors of strings as kernels see them: three tensors. `x` has the tensor's shape, and its elements are
// positions in a list. Of the list, `offsets` [count + 1] says where each string begins and where the last
// one ends in `bytes`.
#pragma once

#include <cstdint>
#include <string_view>

#include "rewire/kernels/cpu/support/checks.h"
#include "rewire/kernels/cpu/support/pace.h"
#include "rewire/kernels/cpu/support/types.h"

namespace rewire::kernel::cpu {

class TextList {
 public:
  // `what` is the name of the argument with the offsets. The strings themselves are checked as they are read.
  Status Open(const char* what, TensorView offsets, TensorView bytes) {
    Checks checks;
    checks.Dense(what, offsets).Rank(what, offsets, 1).Dense("bytes", bytes).Rank("bytes", bytes, 1);
    if (Status s = checks.Take(); !s.ok()) return s;
    if (!offsets.Is<std::int64_t>()) return WrongDType(Types<std::int64_t>(), what, offsets);
    if (!bytes.Is<std::uint8_t>()) return WrongDType(Types<std::uint8_t>(), "bytes", bytes);
    if (offsets.dim(0) == 0) return ValueError(what, " has no elements, expected one more than strings");
    what_ = what;
    offsets_ = offsets.data<std::int64_t>();
    count_ = offsets.dim(0) - 1;
    bytes_ = bytes.data<char>();
    length_ = bytes.dim(0);
    return Status();
  }

  std::int64_t count() const { return count_; }
  std::int64_t length() const { return length_; }
  const std::int64_t* offsets() const { return offsets_; }

  // The string at a position, which any tensor may hold.
  Status At(std::int64_t position, std::string_view* text) const {
    if (position < 0 || position >= count_) [[unlikely]]
      return ValueError("a position is ", position, ", the list has ", count_, " strings");
    const std::int64_t begin = offsets_[position], end = offsets_[position + 1];
    if (begin < 0 || end < begin || end > length_) [[unlikely]] {
      return ValueError("string ", position, " of ", what_, " lies from ", begin, " to ", end, " of ",
                        length_, " bytes");
    }
    *text = std::string_view(bytes_ + begin, static_cast<std::size_t>(end - begin));
    return Status();
  }

 private:
  const char* what_ = "";
  const std::int64_t* offsets_ = nullptr;
  const char* bytes_ = nullptr;
  std::int64_t count_ = 0, length_ = 0;
};

// A tensor of strings.
class Texts {
 public:
  Status Open(const char* what, TensorView x, TensorView offsets, TensorView bytes) {
    if (Status s = CheckDense(what, x); !s.ok()) return s;
    if (!x.Is<std::int64_t>()) return WrongDType(Types<std::int64_t>(), what, x);
    x_ = x;
    return list_.Open("offsets", offsets, bytes);
  }

  TensorView positions() const { return x_; }
  std::int64_t size() const { return x_.size(); }
  const TextList& list() const { return list_; }
  Status At(std::int64_t i, std::string_view* text) const {
    return list_.At(x_.data<std::int64_t>()[i], text);
  }

  // Calls body(i, text) for each string, in order, until it fails. `pace` is asked for the bytes of each.
  template <typename Body>
  Status ForEach(Pace& pace, const Body& body) const {
    const std::int64_t count = size();
    for (std::int64_t i = 0; i < count; ++i) {
      std::string_view text;
      if (Status s = At(i, &text); !s.ok()) return s;
      if (!pace.Spend(4 + static_cast<std::int64_t>(text.size()))) return Stopped();
      if (Status s = body(i, text); !s.ok()) return s;
    }
    return Status();
  }

 private:
  TensorView x_;
  TextList list_;
};

// The sink of a new list's strings: their bytes go to a tensor, or nowhere, to learn how long they are.
class TextSink {
 public:
  TextSink(char* to, std::int64_t room) : to_(to), room_(room) {}

  std::int64_t length() const { return length_; }
  // Returns false if told to stop. What has no room is only counted.
  [[nodiscard]] bool Append(Pace& pace, std::string_view text) {
    const auto size = static_cast<std::int64_t>(text.size());
    const std::int64_t begin = length_;
    length_ = Plus(length_, size);
    if (to_ == nullptr || length_ > room_) return pace.Spend(1);
    return pace.Copy(to_ + begin, text.data(), size);
  }

 private:
  char* to_;
  std::int64_t room_, length_ = 0;
};

// A kernel that makes new strings comes as two. Both are given `make(emit)`, which makes the strings of the
// list in order: it appends parts of one to a sink by way of emit.sink and ends it by emit.End().
class TextOffsets {
 public:
  TextOffsets(TensorView out, std::int64_t count) : out_(out), count_(count) {}

  // out has an offset more than there are strings.
  Status Check() const {
    Checks checks;
    const std::int64_t expected = Plus(count_, 1);
    checks.Dense("out", out_).Shape("out", out_, ShapeView(&expected, 1));
    if (Status s = checks.Take(); !s.ok()) return s;
    if (!out_.Is<std::int64_t>()) return WrongDType(Types<std::int64_t>(), "out", out_);
    out_.data<std::int64_t>()[0] = 0;
    return Status();
  }
  TextSink sink{nullptr, 0};
  void End() {
    if (ended_ < count_) out_.data<std::int64_t>()[++ended_] = sink.length();
  }
  // A string that was not made is empty.
  Status Finish(Pace& pace) {
    while (ended_ < count_) {
      if (!pace.Spend(1)) return Stopped();
      End();
    }
    return Status();
  }

 private:
  TensorView out_;
  std::int64_t count_, ended_ = 0;
};

class TextBytes {
 public:
  explicit TextBytes(TensorView out) : out_(out) {}

  Status Check() {
    Checks checks;
    if (Status s = checks.Dense("out", out_).Rank("out", out_, 1).Take(); !s.ok()) return s;
    if (!out_.Is<std::uint8_t>()) return WrongDType(Types<std::uint8_t>(), "out", out_);
    sink = TextSink(out_.data<char>(), out_.dim(0));
    return Status();
  }
  TextSink sink{nullptr, 0};
  void End() {}
  Status Finish(Pace& /*pace*/) const {
    const std::int64_t length = sink.length();
    return CheckShape("out", out_, ShapeView(&length, 1));
  }

 private:
  TensorView out_;
};

// Checks the output, makes the strings, and checks that they filled it.
template <typename Emit, typename Make>
Status EmitTexts(Emit emit, const Make& make) {
  if (Status s = emit.Check(); !s.ok()) return s;
  Pace pace;
  if (Status s = make(emit, pace); !s.ok()) return s;
  return emit.Finish(pace);
}

}  // namespace rewire::kernel::cpu
