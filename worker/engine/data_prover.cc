#include "worker/engine/data_prover.h"

#include <sys/resource.h>
#include <unistd.h>

#include <utility>

#include "common/base/fault.h"
#include "common/base/ids.h"

namespace motley::engine {
namespace {

constexpr int kLeastUrgent = 19;

}  // namespace

bool ProvesData(const RankAssignment& assignment) {
  const NodeName node = NodeOf(assignment.devices[static_cast<size_t>(assignment.rank)]);
  for (int rank = 0; rank < assignment.rank; ++rank) {
    if (NodeOf(assignment.devices[static_cast<size_t>(rank)]) == node) return false;
  }
  return true;
}

DataProver::DataProver(std::vector<const Dataset*> data) : thread_([this, data = std::move(data)] { Run(data); }) {}

DataProver::~DataProver() {
  stop_ = true;
  if (thread_.joinable()) thread_.join();
}

void DataProver::Run(const std::vector<const Dataset*>& data) {
  (void)::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), kLeastUrgent);  // of this thread alone
  for (const Dataset* set : data) {
    absl::Status status = set->Prove(stop_);
    if (status.ok()) continue;
    if (FaultOf(status) != Fault::kStorage) status = WithFault(std::move(status), Fault::kNode);
    absl::MutexLock lock(&mutex_);
    if (!absl::IsCancelled(status)) found_ = std::move(status);
    return;
  }
}

absl::Status DataProver::Found() const {
  absl::MutexLock lock(&mutex_);
  return found_;
}

absl::Status DataProver::Await() {
  if (thread_.joinable()) thread_.join();
  return Found();
}

}  // namespace motley::engine
