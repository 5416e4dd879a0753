// SPDX-License-Identifier: Apache-2.0
// Several observers behind the one that a VM has.
#pragma once

#include <utility>
#include <vector>

#include "rewire/vm/observer.h"

namespace rewire::tools {

class Observers : public Observer {
 public:
  explicit Observers(std::vector<Observer*> observers) : observers_(std::move(observers)) {}

  bool wants_instructions() const override {
    for (const Observer* observer : observers_) {
      if (observer->wants_instructions()) return true;
    }
    return false;
  }
  bool wants_kernels() const override {
    for (const Observer* observer : observers_) {
      if (observer->wants_kernels()) return true;
    }
    return false;
  }
  void OnInstruction(const Instruction& instruction) override {
    for (Observer* observer : observers_) observer->OnInstruction(instruction);
  }
  void OnKernel(const KernelCall& call) override {
    for (Observer* observer : observers_) observer->OnKernel(call);
  }
  void OnWait(const Wait& wait) override {
    for (Observer* observer : observers_) observer->OnWait(wait);
  }

 private:
  std::vector<Observer*> observers_;
};

}  // namespace rewire::tools
