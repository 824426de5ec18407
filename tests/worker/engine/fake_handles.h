// What cuBLAS keeps for each thread: a handle, made in the thread's first product. To make one may wait for the whole card, which
// in a step may have a transfer that waits for a peer.
#pragma once

#include <ATen/record_function.h>

#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "tests/worker/engine/lanes/fake_streams.h"

namespace motley::engine {

// Of one card. Must outlive the threads of its streams.
class FakeHandles {
 public:
  // The caller is a stream's thread: products that it runs take the handle of the thread that launched them.
  void Watch() {
    watched_by_ = this;
    at::addThreadLocalCallback(at::RecordFunctionCallback(&FakeHandles::Note).scopes({at::RecordScope::FUNCTION}));
  }
  // From here on nobody may want a new one.
  void BeginSteps() {
    std::lock_guard<std::mutex> lock(mutex_);
    in_steps_ = true;
  }
  // The products of steps for which one was made.
  std::set<std::string> MadeInSteps() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return made_in_steps_;
  }

 private:
  static std::unique_ptr<at::ObserverContext> Note(const at::RecordFunction& function) {
    static const std::set<std::string> kProducts = {"aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm"};
    const std::string name = function.name();
    if (kProducts.contains(name)) watched_by_->Use(name);
    return nullptr;
  }
  void Use(const std::string& product) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (owners_.insert(FakeStream::Launcher()).second && in_steps_) made_in_steps_.insert(product);
  }

  static inline thread_local FakeHandles* watched_by_ = nullptr;
  mutable std::mutex mutex_;
  // Guarded by mutex_:
  bool in_steps_ = false;
  std::set<std::thread::id> owners_;
  std::set<std::string> made_in_steps_;
};

}  // namespace motley::engine
