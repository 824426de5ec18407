// What one rank is told to do in one epoch, as the engine sees it. proto RankAssignment is its wire form.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "common/base/ids.h"
#include "common/device/device.h"
#include "common/job/job.h"
#include "common/model/model.h"
#include "common/model/model_slice.h"
#include "common/program/ownership.h"
#include "common/program/program.h"
#include "common/program/step_spans.h"

namespace motley {

// Restoring and meeting takes a loaded host a while; a rank that moves nothing for longer before its first step counts as hung. A
// rank that waits for its peers says so before: who is killed for that says nothing.
inline constexpr double kFirstProgressSeconds = 60;

// The planner's answer for the device is in its program (blocks that it computes, its microbatches, what it recomputes) and in
// the ownership (its share of the training state). Profiling has neither.
struct RankAssignment {
  JobId job;
  JobUid job_uid;  // stands in the manifests and names of its checkpoints; empty: of a coordinator from before uids
  Epoch epoch;
  int rank = 0;
  std::vector<DeviceId> devices;            // by rank
  std::vector<std::string> data_addresses;  // by rank: interface address of the data plane
  Ownership ownership;
  Program program;              // of a training step
  Program evaluation;           // of a validation pass over config.data.validation_samples
  std::string programs_digest;  // of all ranks' programs: they agree on it before the first step
  double predicted_step_seconds = 0;
  LaneSeconds predicted_lanes;  // of a step
  int pipeline = 0, stage = 0;  // of the plan, of the pipeline
  int64_t start_step = 0;
  std::string resume_from;  // checkpoint folder or empty
  ModelShape model;
  ModelSlice slice;  // of the model: what the rank computes with and has in its program's buffers
  JobConfig config;
  std::string data_digest;
  std::string validation_digest;  // of data.validation_path; empty: there is none, or it was not said
  DeviceDescription device;
  int64_t planned_context_bytes = 0;  // of the device, beside tensors: of the plan's memory; 0: not known
  int64_t planned_host_bytes = 0;     // of the host's memory, for what waits there; 0: nothing does
  int64_t planned_bytes = 0;          // of the device, the plan's peak for the rank; 0: not known
  double first_progress_seconds = kFirstProgressSeconds;
  std::vector<std::string> spared_checkpoints;  // folders of later steps that one reader alone found damaged: not to be deleted
  bool owns_unnamed_checkpoints = false;        // what has no uid in the job's folder is its own (CheckpointOwner)
  std::vector<std::pair<int, int>> link_pairs;  // for profiling: ranks of one node; empty: of each node the first two

  int world() const { return static_cast<int>(devices.size()); }
};

// Samples of the global batch that the rank computes in a step; 0 when profiling.
int64_t BatchSize(const RankAssignment& assignment);
// What the rank owns of the blocks that it owns parts of, 0..1: its share of its stage's training state. 0 when profiling.
double OwnedShare(const RankAssignment& assignment);

}  // namespace motley
