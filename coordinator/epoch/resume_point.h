// What an epoch of a job goes on from: looked for in its folder of checkpoints, off the loop. docs/use/checkpoints.md
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <set>
#include <string>

#include "common/checkpoint/checkpoint.h"
#include "common/checkpoint/checkpoint_folders.h"
#include "common/checkpoint/checkpoint_owner.h"
#include "coordinator/state/holdings.h"
#include "coordinator/state/run.h"
#include "planner/live/live_inputs.h"

namespace motley::coordinator {

// Epochs stand above those of all names in the folder. From here on a name counts only with what it promises under it: whoever
// may make a folder there would otherwise use up the numbers.
inline constexpr int64_t kFirstEpochToProve = kFirstEpochNobodyGives / 2;

struct CheckpointWish {
  std::string folder;  // of the job; empty: none
  CheckpointOwner owner;
  std::string published;  // the newest checkpoint that a rank reported, or that the job went on from; or empty
  std::string data_digest;
  std::set<std::string> damaged;
  bool is_new = false;              // it has never started a rank
  CheckpointOwner initial_of = {};  // the job that was given as checkpoint.initial; without an id: a folder was
  std::shared_ptr<std::atomic<bool>> at_initial = nullptr;  // if any: set before config.checkpoint.initial is looked into
  // Of config.checkpoint.initial, where the nodes found a folder of HuggingFace's there: this machine may not see it.
  std::string initial_digest = {};
  bool awaits_published = false;  // nodes may still be coming back: nothing older than `published` is gone on from
  // Of a job whose checkpoints lie on its nodes' disks:
  Holdings held = {}, held_of_initial = {};
  std::string safe = {};  // the newest that was safe: nothing older is gone on from; empty: none was
  GoBack go_back = {};
  bool adopts = false;      // AwaitsAdopted: it goes on from what a lost job of its uid saved, or waits
  bool adopts_all = false;  // AdoptsAll: absent disks may have generations that nobody has seen
};

// All of Prepared but what is the planner's. The newest checkpoint of the job's own; where it has none, the newest one of another
// job that the file `adopt` in the folder names, or that owner.adopted does; else config.checkpoint.initial, or nothing. A new
// job whose folder holds nothing but other jobs' is refused: status FAILED_PRECONDITION. `epoch` is input.epoch or above, so that
// it meets no name that is there.
Prepared FindResumePoint(const planner::PlannerInput& input, const CheckpointWish& wish);

// The job begins: with config.checkpoint.initial, where that is given.
absl::Status PrepareInitial(const planner::PlannerInput& input, const CheckpointWish& wish, Prepared* prepared);
// That it is of the job's model, data and seed. One of another was put there by hand: training on would be wrong.
absl::Status CheckFits(const CheckpointManifest& manifest, const planner::PlannerInput& input, const std::string& digest,
                       const std::string& folder);
// Readers would not take what is published under a number that nobody gives.
absl::Status CheckGiven(Epoch epoch, const JobId& job);

}  // namespace motley::coordinator
