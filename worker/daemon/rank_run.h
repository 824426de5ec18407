// The ranks of one node in one epoch of a job: plain state of the supervisor's thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/session/session.h"
#include "worker/daemon/process_signs.h"
#include "worker/daemon/profile_schedule.h"
#include "worker/daemon/rank_process.h"
#include "worker/daemon/spawn.h"
#include "worker/daemon/watchdog.h"

namespace motley::worker {

struct Rank {
  // kRunning -> kEnded (it said how it ended and is about to exit) | kHung, kKilled (SIGKILL was sent) -> gone.
  enum class Phase { kRunning, kEnded, kHung, kKilled, kGone };

  int number = 0;
  DeviceId device;
  std::unique_ptr<RankProcess> process;
  WatchState watch;
  ProcessSigns signs;  // newest, until its first word
  Phase phase = Phase::kRunning;
  absl::Duration kill_at = absl::InfiniteDuration();
  // What it does outside of its program, and since when; empty and null while it runs instructions.
  std::string doing_beside;
  std::optional<absl::Duration> beside_since;
  std::string reason;                     // why it was killed
  std::vector<WorkerReport> questions;    // KvSet, and unanswered KvGet and Publish: asked again of a new session
  bool ready = false;                     // it said so
  std::optional<StepReport> newest_step;  // of rank 0: said again to a new session, whose coordinator may not know it
};

struct RankRun {
  JobId job;
  Epoch epoch;
  std::vector<Rank> ranks;
  std::unique_ptr<ProfileSchedule> profile;          // null: training
  std::string brought;                               // folder that was made for its ranks to go on from, until all have read it
  bool profile_ended = false, profile_sent = false;  // its ranks are told to end; its answer is given

  // Measures a node that no job uses yet: it speaks through its ProfileReport alone.
  bool is_probe() const { return profile != nullptr && !profile->report().check_id.empty(); }
};

}  // namespace motley::worker
