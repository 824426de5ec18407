// Counts by the table what a card would launch for what one thread calls of PyTorch.
#pragma once

#include <ATen/record_function.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "tests/worker/engine/model/kernel_table.h"

namespace motley::engine {

// What the thread that made it has called, while it lives; one at a time.
class CountedKernels {
 public:
  CountedKernels() {
    TORCH_CHECK(std::exchange(current_, this) == nullptr, "kernels of this thread are counted already");
    handle_ = at::addThreadLocalCallback(at::RecordFunctionCallback(&CountedKernels::Note).scopes({at::RecordScope::FUNCTION}));
  }
  ~CountedKernels() {
    at::removeCallback(handle_);
    current_ = nullptr;
  }
  CountedKernels(const CountedKernels&) = delete;
  CountedKernels& operator=(const CountedKernels&) = delete;

  int total() const {
    int sum = 0;
    for (const auto& [op, kernels] : launched_) sum += kernels;
    return sum;
  }
  const std::map<std::string, int>& launched() const { return launched_; }  // kernels by operator
  const std::set<std::string>& unknown() const { return unknown_; }         // operators without a row

 private:
  // An operator with kernels is under way: what it calls is its own affair.
  struct Inside : at::ObserverContext {
    explicit Inside(int& depth) : depth(depth) { ++depth; }
    ~Inside() override { --depth; }
    int& depth;
  };

  static std::unique_ptr<at::ObserverContext> Note(const at::RecordFunction& function) {
    return current_->Count(function.name());
  }
  std::unique_ptr<at::ObserverContext> Count(const std::string& op) {
    if (depth_ > 0) return nullptr;
    const std::optional<int> kernels = KernelsOf(op);
    if (!kernels) unknown_.insert(op);
    if (kernels.value_or(0) == 0) return nullptr;
    launched_[op] += *kernels;
    return std::make_unique<Inside>(depth_);
  }

  static inline thread_local CountedKernels* current_ = nullptr;
  at::CallbackHandle handle_ = at::INVALID_CALLBACK_HANDLE;
  int depth_ = 0;
  std::map<std::string, int> launched_;
  std::set<std::string> unknown_;
};

}  // namespace motley::engine
