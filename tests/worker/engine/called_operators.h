// Records what is called of PyTorch.
#pragma once

#include <ATen/record_function.h>

#include <memory>
#include <set>
#include <string>
#include <utility>

#include "absl/synchronization/mutex.h"

namespace motley::engine {

// The operators that any thread has called, while it lives.
class CalledOperators {
 public:
  CalledOperators() {
    seen_.clear();
    handle_ = at::addGlobalCallback(at::RecordFunctionCallback(&CalledOperators::Note).scopes({at::RecordScope::FUNCTION}));
  }
  ~CalledOperators() { at::removeCallback(handle_); }
  // Those since the last call.
  std::set<std::string> Take() {
    absl::MutexLock lock(&mutex_);
    return std::exchange(seen_, {});
  }

 private:
  static std::unique_ptr<at::ObserverContext> Note(const at::RecordFunction& function) {
    absl::MutexLock lock(&mutex_);
    seen_.insert(function.name());
    return nullptr;
  }
  static inline absl::Mutex mutex_;
  static inline std::set<std::string> seen_;
  at::CallbackHandle handle_ = at::INVALID_CALLBACK_HANDLE;
};

}  // namespace motley::engine
