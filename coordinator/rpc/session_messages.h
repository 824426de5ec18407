// The worker session's messages, proto <-> plain.
#pragma once

#include <optional>

#include "absl/status/statusor.h"
#include "coordinator/state/messages.h"
#include "coordinator/state/node.h"
#include "proto/motley/v1/worker.pb.h"

namespace motley::coordinator {

v1::CoordinatorMessage ToProto(const WorkerCommand& command);
// INVALID_ARGUMENT names the field.
absl::StatusOr<NodeDescription> FromProto(const v1::Hello& hello);
// Null: a kind of message that this version does not know, or a second Hello.
std::optional<WorkerReport> FromProto(const v1::WorkerMessage& message);

}  // namespace motley::coordinator
