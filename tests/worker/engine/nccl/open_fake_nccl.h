// The fake NCCL of this process, opened as the real one is, and a card's memory on the host. A test's CMake target links
// motley_fake_nccl.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string>

#include "tests/common/base/folders.h"
#include "tests/worker/engine/nccl/fake_nccl.h"
#include "worker/engine/nccl/nccl_library.h"
#include "worker/engine/transport/device_memory.h"

namespace motley::engine {

inline constexpr char kFakeNccl[] = "/tests/libfake_nccl.so";  // of BuildFolder()

// What fake_nccl.h declares, found in the library.
struct FakeNccl {
  NcclLibrary library;
  decltype(&fakeNcclBehave) Behave;
  decltype(&fakeNcclFail) Fail;
  decltype(&fakeNcclDieInNextCall) DieInNextCall;
  decltype(&fakeNcclLiveComms) LiveComms;
  decltype(&fakeNcclMostCtas) MostCtas;
  decltype(&fakeNcclCalls) Calls;
  decltype(&fakeNcclReset) Reset;
};

inline const FakeNccl& TheFakeNccl() {
  static const FakeNccl fake = [] {
    const auto opened = OpenNccl(BuildFolder() + kFakeNccl);
    EXPECT_TRUE(opened.ok()) << opened.status();
    if (!opened.ok()) std::abort();
    FakeNccl found{.library = *opened};
    void* const library = dlopen((BuildFolder() + kFakeNccl).c_str(), RTLD_NOW);
    const auto find = [library](const char* name, auto& function) {
      function = reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(library, name));
    };
    find("fakeNcclBehave", found.Behave);
    find("fakeNcclFail", found.Fail);
    find("fakeNcclDieInNextCall", found.DieInNextCall);
    find("fakeNcclLiveComms", found.LiveComms);
    find("fakeNcclMostCtas", found.MostCtas);
    find("fakeNcclCalls", found.Calls);
    find("fakeNcclReset", found.Reset);
    find("fakeNcclAwaitEnqueued", found.library.api.await_enqueued);
    return found;
  }();
  return fake;
}

// Work on it is done when it was called: the fake's calls, which block, and copies run on the caller's thread.
class HostMemory : public DeviceMemory {
 public:
  absl::StatusOr<void*> Allocate(int64_t bytes, void*) override {
    ++live_;
    return std::malloc(static_cast<size_t>(bytes));
  }
  void Free(void* room) override {
    --live_;
    std::free(room);
  }
  absl::StatusOr<void*> AllocateHost(int64_t bytes) override { return Allocate(bytes, nullptr); }
  void FreeHost(void* room) override { Free(room); }
  absl::Status CopyAsync(void* to, const void* from, int64_t bytes, void*) override {
    std::memcpy(to, from, static_cast<size_t>(bytes));
    return absl::OkStatus();
  }
  absl::StatusOr<bool> IsDone(void*) override {
    ++asked_;
    return true;
  }

  int live() const { return live_; }    // pieces of room that nobody has given back
  int asked() const { return asked_; }  // how often a stream was waited for

 private:
  std::atomic<int> live_{0}, asked_{0};
};

}  // namespace motley::engine
