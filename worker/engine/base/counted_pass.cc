#include "worker/engine/base/counted_pass.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace motley::engine {
namespace {

thread_local CountedPass* thread_pass = nullptr;

constexpr bool IsOfPasses(MemoryPurpose purpose) {
  return purpose == MemoryPurpose::kBoundaries || purpose == MemoryPurpose::kSaved || purpose == MemoryPurpose::kWorkspace;
}

}  // namespace

CountedPass::CountedPass() : before_(std::exchange(thread_pass, this)), account_(ThreadsAccount()) {}

CountedPass::~CountedPass() {
  thread_pass = before_;
  const auto sum = [](const ByPurpose& bytes) { return std::accumulate(bytes.begin(), bytes.end(), int64_t{0}); };
  const auto count = [this](const ByPurpose& bytes, int sign) {
    for (size_t i = 0; i < kNumMemoryPurposes; ++i) account_->CountFor(kMemoryPurposes[i].purpose, sign * bytes[i]);
  };
  const int64_t left = bytes_ + sum(freed_) - sum(kept_) - sum(in_place_);  // that nobody said to keep
  const int64_t workspace = std::max(most_bytes_ - made_kept_, left);
  count(kept_, 1);
  account_->CountFor(MemoryPurpose::kWorkspace, workspace);
  count(freed_, -1);
  account_->CountFor(MemoryPurpose::kWorkspace, left - workspace);
  count(in_place_, 1);
}

void CountedPass::Keep(const at::Tensor& tensor, MemoryPurpose purpose, ByPurpose& kept) {
  CountedBlock* const block = tensor.defined() ? CountedBlockOf(tensor.storage().data_ptr()) : nullptr;
  if (block == nullptr || block->account != account_ || block->purpose == purpose || !IsOfPasses(block->purpose)) return;
  if (block->purpose != MemoryPurpose::kWorkspace) {
    freed_[static_cast<size_t>(block->purpose)] += block->bytes;
  } else if (&kept == &kept_) {
    made_kept_ += block->bytes;
  }
  kept[static_cast<size_t>(purpose)] += block->bytes;
  block->purpose = purpose;
}

bool CountedPass::Made(CountedBlock& block) {
  CountedPass* const pass = thread_pass;
  if (pass == nullptr || block.account != pass->account_) return false;
  block.purpose = MemoryPurpose::kWorkspace;
  pass->bytes_ += block.bytes;
  pass->most_bytes_ = std::max(pass->most_bytes_, pass->bytes_);
  return true;
}

bool CountedPass::Freed(const CountedBlock& block) {
  CountedPass* const pass = thread_pass;
  if (pass == nullptr || block.account != pass->account_) return false;
  pass->bytes_ -= block.bytes;
  if (block.purpose != MemoryPurpose::kWorkspace) pass->freed_[static_cast<size_t>(block.purpose)] += block.bytes;
  return true;
}

}  // namespace motley::engine
