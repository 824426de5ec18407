// A job as the coordinator knows it. The durable part is what the store keeps; proto/motley/v1/job.proto draws the states.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "common/checkpoint/checkpoint_owner.h"
#include "common/data/data_summary.h"
#include "common/job/job.h"
#include "common/session/step.h"

namespace motley::coordinator {

enum class JobPhase { kQueued, kWaiting, kProfiling, kPlanning, kStarting, kRunning, kReplanning, kSucceeded, kFailed, kStopped };
inline constexpr int kNumJobPhases = static_cast<int>(JobPhase::kStopped) + 1;

std::string_view JobPhaseName(JobPhase phase);  // "queued"
absl::StatusOr<JobPhase> ParseJobPhase(std::string_view name);
// Left only when a person resumes the job.
inline bool IsFinal(JobPhase phase) { return phase >= JobPhase::kSucceeded; }

// To which step people told the job to go back, and its newest generation then: what these saved behind it was given up.
struct GoBack {
  Epoch epoch;  // 0: nobody did
  int64_t step = 0;
  bool GaveUp(Epoch of, int64_t saved_step) const { return of <= epoch && saved_step > step; }
  friend bool operator==(const GoBack&, const GoBack&) = default;
};

// What changes while a job lives. Small: watchers are sent many of these, and none holds the job's configuration.
struct JobStatus {
  JobId id;
  JobUid uid;  // made at submit, and never changed
  JobPhase phase = JobPhase::kQueued;
  std::string reason;  // the sentence that the decision gave
  Epoch epoch;         // newest number handed out; durable before anything is sent under it
  int64_t step = 0;    // optimizer steps done
  int64_t submitted_unix_ms = 0, started_unix_ms = 0, finished_unix_ms = 0;
  StepStats last_step;
  std::string newest_checkpoint;
  std::string safe_checkpoint;  // of those on the nodes' disks: the newest that was safe (state/decide_copies)
  GoBack go_back;
  bool has_unnamed_checkpoints = false;  // its ranks wrote some without a uid: they were of a build from before
  std::string adopted;                   // CheckpointOwner::adopted: the file that says so is used up. Empty once it has saved
  // Of one whose uid is a job's of a store that was lost (submit --adopt): what generations below this one saved on the nodes'
  // disks counts with any mark. kFirstEpochNobodyGives until a generation of this store's begins; 0: it adopted nothing.
  Epoch adopted_below;
  double predicted_step_seconds = 0;
  bool stop_requested = false;
  int plannings_begun = 0;  // in a row that were not finished: the coordinator ended meanwhile
  // What the first storage check saw; a node that sees other data is left out. Without a digest: nobody has looked.
  DataSummary data;
  DataSummary validation;      // of data.validation_path; without a digest: the job has none
  std::string initial_digest;  // of a HuggingFace folder that the job begins with, likewise; empty: it is none
  absl::StatusCode error_code = absl::StatusCode::kOk;  // of a failed job, where it is known
  int64_t owner_uid = -1;                               // of the account that submitted it, where jobs have owners; -1: not known
  std::string owner;                                    // its name then
};

struct JobRecord : JobStatus {
  JobConfig config;  // changes only when an ended job is resumed; up to 1.25 MiB, so one record of a job is kept and no copies
  CheckpointOwner initial_of;  // the job that was given as checkpoint.initial, which has its folder; without an id: none was
};

// Of a pass over the data without its validation part; 0 while no node has looked.
int64_t TrainingTokens(const JobStatus& job, const JobConfig& config);

// Why a job has succeeded: "all 40 steps are done", and what is to be known of the weights all the same.
std::string AllStepsDone(const JobRecord& job);

// It has taken a lost job's uid, and has not gone on from what that one saved.
bool AwaitsAdopted(const JobStatus& job);
// The same, and no generation of this store's has begun.
bool AdoptsAll(const JobStatus& job);

// Whose checkpoints count as the job's.
CheckpointOwner OwnerOf(const JobStatus& job);
// What another job's file `adopt` holds, so that it goes on from this one's checkpoints, and from what this one adopted.
std::string AdoptText(const JobStatus& job);

// Where the job's checkpoints are: a folder of its own below the one that the user names. Another job of its id, of
// another cluster or from before, may have the same.
std::string CheckpointFolder(const JobRecord& job);
// What a checkpoint of the job is called in reports, events and JSON: its path there, or of one on the nodes' disks its name.
std::string CheckpointPath(const JobRecord& job, const std::string& name);

}  // namespace motley::coordinator
