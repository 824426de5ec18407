// A pass over a unit in its account. Plans count what is kept from pass to pass by what it is, and one number for what a pass
// takes beside that while it runs (its workspace). An allocation cannot know which of the two it is: that shows when the pass is
// over.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>

#include "worker/engine/base/memory.h"

namespace motley::engine {

// What lies before each block of the counting allocator.
struct CountedBlock {
  int64_t bytes = 0;
  MemoryAccountPtr account;
  MemoryPurpose purpose = MemoryPurpose::kWorkspace;
};
// Null: it is another allocator's.
CountedBlock* CountedBlockOf(const c10::DataPtr& data);

// From here to the end of this, on one thread. At its end counts for its purpose what the pass was told to keep, beside all that
// it found; what it found and freed is gone then. Its workspace is what it took at most, without what it keeps.
class CountedPass {
 public:
  CountedPass();
  ~CountedPass();
  CountedPass(const CountedPass&) = delete;
  CountedPass& operator=(const CountedPass&) = delete;

  // The tensor's block is for `purpose` from now on, if it was of a pass: state, buffers and slots stay what they are. May be
  // undefined.
  void Keep(const at::Tensor& tensor, MemoryPurpose purpose) { Keep(tensor, purpose, kept_); }
  // In place of what the pass uses up: until its end a part of its workspace.
  void KeepInPlace(const at::Tensor& tensor, MemoryPurpose purpose) { Keep(tensor, purpose, in_place_); }

  // The allocator's, of the calling thread's pass. False: it has none, or of another account.
  static bool Made(CountedBlock& block);
  static bool Freed(const CountedBlock& block);

 private:
  using ByPurpose = std::array<int64_t, kNumMemoryPurposes>;
  void Keep(const at::Tensor& tensor, MemoryPurpose purpose, ByPurpose& kept);

  CountedPass* const before_;
  const MemoryAccountPtr account_;
  int64_t bytes_ = 0, most_bytes_ = 0;       // beside what it found
  int64_t made_kept_ = 0;                    // of kept_ what it made
  ByPurpose kept_{}, in_place_{}, freed_{};  // freed: of what it found
};

}  // namespace motley::engine
