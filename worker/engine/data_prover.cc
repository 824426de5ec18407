#include "worker/engine/data_prover.h"

#include <sys/resource.h>
#include <unistd.h>

#include <functional>
#include <numeric>
#include <utility>

#include "common/base/ids.h"
#include "common/base/status_macros.h"
#include "worker/engine/base/monotonic.h"
#include "worker/engine/base/this_node.h"

namespace motley::engine {
namespace {

constexpr int kLeastUrgent = 19;
constexpr absl::Duration kTellingTime = absl::Seconds(1);  // what was read in less says little of the pace

}  // namespace

bool ProvesData(const RankAssignment& assignment) {
  const NodeName node = NodeOf(assignment.devices[static_cast<size_t>(assignment.rank)]);
  for (int rank = 0; rank < assignment.rank; ++rank) {
    if (NodeOf(assignment.devices[static_cast<size_t>(rank)]) == node) return false;
  }
  return true;
}

DataProver::DataProver(std::vector<const Dataset*> data, KnownParts* known, std::function<void()> before)
    : data_(std::move(data)),
      all_bytes_(std::transform_reduce(data_.begin(), data_.end(), int64_t{0}, std::plus<>(),
                                       [](const Dataset* set) { return set->BytesToProve(); })),
      begin_ns_(MonotonicNs()),
      before_(std::move(before)),
      proof_{.known = known},
      thread_([this] { Run(); }) {}

DataProver::~DataProver() {
  proof_.stop = true;
  thread_.join();
}

absl::Status DataProver::Compare() {
  for (const Dataset* set : data_) MOTLEY_RETURN_IF_ERROR(OfThisNode(set->Prove(proof_)));
  return absl::OkStatus();
}

void DataProver::Run() {
  (void)::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), kLeastUrgent);  // of this thread alone
  if (before_) before_();
  absl::Status status = Compare();
  absl::MutexLock lock(&mutex_);
  over_ = true;
  if (!absl::IsCancelled(status)) found_ = std::move(status);
  changed_.NotifyAll();
}

absl::Status DataProver::Found() const {
  absl::MutexLock lock(&mutex_);
  return found_;
}

bool DataProver::IsOverWithin(absl::Duration patience) {
  absl::MutexLock lock(&mutex_);
  return changed_.WaitFor(mutex_, patience, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return over_; });
}

absl::Duration DataProver::Left() const {
  const int64_t bytes = proof_.bytes, read = bytes - proof_.not_read;
  const absl::Duration taken = absl::Nanoseconds(MonotonicNs() - begin_ns_);
  if (taken < kTellingTime || bytes >= all_bytes_) return absl::ZeroDuration();
  if (read <= 0) return absl::InfiniteDuration();
  return taken * (static_cast<double>(all_bytes_ - bytes) / static_cast<double>(read));
}

}  // namespace motley::engine
