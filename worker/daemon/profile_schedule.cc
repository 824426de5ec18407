#include "worker/daemon/profile_schedule.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/device/device_kinds.h"

namespace motley::worker {

ProfileSchedule::ProfileSchedule(const ProfileCommand& command)
    : is_trial_(command.trial), report_{command.job, command.epoch, "", {}, {}, command.check_id} {
  const std::vector<DeviceId>& compute = command.compute_devices;
  for (const RankAssignment& assignment : command.ranks) {
    Rank rank;
    rank.assignment = assignment;
    rank.compute_left = std::find(compute.begin(), compute.end(), assignment.device.id) != compute.end() || is_trial_;
    rank.collectives_left = command.collectives;
    rank.on_host = RowOf(assignment.device.kind).on_host;
    ranks_.push_back(std::move(rank));
  }
}

ProfileCommand ProfileSchedule::CommandFor(const Rank& rank, bool compute) const {
  ProfileCommand command{report_.job, report_.epoch, {rank.assignment}, {}, !compute, report_.check_id};
  command.trial = is_trial_;
  if (compute && !is_trial_) command.compute_devices.push_back(rank.assignment.device.id);
  return command;
}

std::vector<std::pair<size_t, ProfileCommand>> ProfileSchedule::Next() {
  std::vector<std::pair<size_t, ProfileCommand>> commands;
  if (!report_.error.empty()) return commands;
  bool host_in_use = std::any_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return rank.busy && rank.on_host; });
  for (size_t i = 0; i < ranks_.size(); ++i) {
    Rank& rank = ranks_[i];
    if (!rank.compute_left || rank.busy || (rank.on_host && host_in_use)) continue;
    host_in_use |= rank.on_host;
    rank.busy = true;
    commands.emplace_back(i, CommandFor(rank, /*compute=*/true));
  }
  const bool computing = std::any_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return rank.compute_left; });
  if (computing) return commands;
  for (size_t i = 0; i < ranks_.size(); ++i) {
    Rank& rank = ranks_[i];
    if (!rank.collectives_left || rank.busy) continue;
    rank.busy = true;
    commands.emplace_back(i, CommandFor(rank, /*compute=*/false));
  }
  return commands;
}

void ProfileSchedule::Done(size_t index, const ProfileReport& report) {
  Rank& rank = ranks_[index];
  if (!rank.busy) return;
  if (!report.error.empty()) return Fail(index, report.error, report.fault);
  rank.busy = false;
  (rank.compute_left ? rank.compute_left : rank.collectives_left) = false;
  report_.compute.insert(report_.compute.end(), report.compute.begin(), report.compute.end());
  if (!report.collectives.points.empty()) report_.collectives = report.collectives;
  if (report.trial) report_.trial = report.trial;
}

void ProfileSchedule::Fail(size_t index, const std::string& error, Fault fault) {
  if (!report_.error.empty()) return;
  report_.error = absl::StrCat(ranks_[index].assignment.device.id.value(), ": ", error);
  report_.fault = fault;
}

bool ProfileSchedule::finished() const {
  return !report_.error.empty() ||
         std::all_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return !rank.compute_left && !rank.collectives_left; });
}

}  // namespace motley::worker
