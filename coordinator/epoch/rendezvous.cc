#include "coordinator/epoch/rendezvous.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "common/base/logging.h"
#include "common/session/rendezvous_key.h"

namespace motley::coordinator {
namespace {

// Addresses of a few hundred ranks are some hundred kilobytes.
constexpr int64_t kMaxKvBytes = 64 << 20;
constexpr size_t kMaxWaiters = 100000;

}  // namespace

void OnKvSet(Core& core, const KvSetReport& report) {
  JobRun& run = *core.state.run;
  const auto bytes = static_cast<int64_t>(report.key.size() + report.value.size());
  if (run.kv_bytes + bytes > kMaxKvBytes) {
    LogWarning(absl::StrCat("rendezvous of job ", report.job.value(), " holds more than ", kMaxKvBytes,
                            " bytes; key dropped: ", report.key));
    return;
  }
  run.kv_bytes += bytes;
  run.kv[report.key] = report.value;
  const std::optional<int> owner = OwnerOfKey(report.key);
  const bool is_known = run.ranks_in_order && owner && static_cast<size_t>(*owner) < run.ranks.size();
  if (is_known && !run.ranks[*owner].met) run.ranks[*owner].met = core.clock.Now();
  auto waiters = run.kv_waiters.extract(report.key);
  if (waiters.empty()) return;
  for (const JobRun::KvWaiter& waiter : waiters.mapped()) {
    core.Send(waiter.node, KvValueCommand{report.job, report.epoch, report.key, report.value, waiter.rank});
  }
}

void OnKvGet(Core& core, const NodeName& node, const KvGetReport& report) {
  JobRun& run = *core.state.run;
  auto it = run.kv.find(report.key);
  if (it != run.kv.end()) {
    core.Send(node, KvValueCommand{report.job, report.epoch, report.key, it->second, report.rank});
  } else if (run.kv_waiters.size() < kMaxWaiters) {
    // A worker asks again after its session was broken.
    std::vector<JobRun::KvWaiter>& waiters = run.kv_waiters[report.key];
    const bool known = std::any_of(waiters.begin(), waiters.end(),
                                   [&](const JobRun::KvWaiter& w) { return w.node == node && w.rank == report.rank; });
    if (!known) waiters.push_back({node, report.rank});
  }
}

}  // namespace motley::coordinator
