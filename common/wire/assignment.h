// RankAssignment <-> its wire form: programs travel as text, the model as HuggingFace config.json text.
#pragma once

#include "absl/status/statusor.h"
#include "common/session/assignment.h"
#include "proto/motley/v1/worker.pb.h"

namespace motley::wire {

// A program without instructions (profiling) becomes an empty text.
v1::RankAssignment ToProto(const RankAssignment& assignment);
// INVALID_ARGUMENT names the field: a program or model that does not parse, a rank outside the devices, addresses that
// do not match the devices, bounds of another length than devices + 1.
absl::StatusOr<RankAssignment> FromProto(const v1::RankAssignment& proto);

}  // namespace motley::wire
