#include "worker/daemon/profile_schedule.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"

namespace motley::worker {

ProfileSchedule::ProfileSchedule(const v1::ProfileRequest& request) {
  result_.set_job_id(request.job_id());
  result_.set_epoch(request.epoch());
  const std::set<std::string> compute(request.compute_device_ids().begin(), request.compute_device_ids().end());
  for (const v1::RankAssignment& assignment : request.ranks()) {
    Rank rank;
    rank.assignment = assignment;
    rank.compute_left = compute.contains(assignment.device().id());
    rank.collectives_left = request.collectives();
    rank.on_host = assignment.device().kind() != "emulated";
    ranks_.push_back(std::move(rank));
  }
}

v1::ProfileRequest ProfileSchedule::RequestFor(const Rank& rank, bool compute) const {
  v1::ProfileRequest request;
  request.set_job_id(result_.job_id());
  request.set_epoch(result_.epoch());
  *request.add_ranks() = rank.assignment;
  request.set_compute(compute);
  if (compute) request.add_compute_device_ids(rank.assignment.device().id());
  request.set_collectives(!compute);
  return request;
}

std::vector<std::pair<size_t, v1::ProfileRequest>> ProfileSchedule::Next() {
  std::vector<std::pair<size_t, v1::ProfileRequest>> requests;
  if (!result_.error().empty()) return requests;
  bool host_in_use = std::any_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return rank.busy && rank.on_host; });
  for (size_t i = 0; i < ranks_.size(); ++i) {
    Rank& rank = ranks_[i];
    if (!rank.compute_left || rank.busy || (rank.on_host && host_in_use)) continue;
    host_in_use |= rank.on_host;
    rank.busy = true;
    requests.emplace_back(i, RequestFor(rank, /*compute=*/true));
  }
  const bool computing = std::any_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return rank.compute_left; });
  if (computing) return requests;
  for (size_t i = 0; i < ranks_.size(); ++i) {
    Rank& rank = ranks_[i];
    if (!rank.collectives_left || rank.busy) continue;
    rank.busy = true;
    requests.emplace_back(i, RequestFor(rank, /*compute=*/false));
  }
  return requests;
}

void ProfileSchedule::Done(size_t index, const v1::ProfileResult& result) {
  Rank& rank = ranks_[index];
  if (!rank.busy) return;
  if (!result.error().empty()) return Fail(index, result.error());
  rank.busy = false;
  (rank.compute_left ? rank.compute_left : rank.collectives_left) = false;
  result_.mutable_compute()->MergeFrom(result.compute());
  if (result.has_collectives()) *result_.mutable_collectives() = result.collectives();
}

void ProfileSchedule::Fail(size_t index, const std::string& error) {
  if (result_.error().empty()) result_.set_error(absl::StrCat(ranks_[index].assignment.device().id(), ": ", error));
}

bool ProfileSchedule::finished() const {
  return !result_.error().empty() ||
         std::all_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return !rank.compute_left && !rank.collectives_left; });
}

}  // namespace motley::worker
