// A small, valid assignment for one rank.
#pragma once

#include <string>

#include "common/session/session.h"

namespace motley::worker {

inline RankAssignment TestAssignment(const std::string& behaviour, int64_t epoch = 1, int rank = 0, int64_t steps = 3) {
  RankAssignment assignment;
  assignment.job = JobId("job");
  assignment.epoch = Epoch(epoch);
  assignment.rank = rank;
  assignment.devices = {DeviceId("n1/gpu0"), DeviceId("n1/gpu1")};
  assignment.data_addresses = {"127.0.0.1", "127.0.0.1"};
  assignment.model = *ModelFlavor("gpt2", "debug");
  assignment.config.name = behaviour;
  assignment.config.training.steps = steps;
  assignment.device.id = assignment.devices[rank];
  assignment.device.kind = DeviceKind::kEmulated;
  assignment.predicted_step_seconds = 0.01;
  assignment.first_progress_seconds = 30;
  return assignment;
}

}  // namespace motley::worker
