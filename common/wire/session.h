// The worker session's messages <-> their wire form, each both ways.
#pragma once

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "common/session/session.h"
#include "proto/motley/v1/worker.pb.h"

namespace motley::wire {

v1::Hello ToProto(const NodeDescription& node);
// INVALID_ARGUMENT names the field, or the device with a number that none has (device_ranges.h).
absl::StatusOr<NodeDescription> FromProto(const v1::Hello& hello);

v1::StoreMark ToProto(const StoreMark& mark);
StoreMark FromProto(const v1::StoreMark& mark);

v1::CoordinatorMessage ToProto(const CoordinatorCommand& command);
// INVALID_ARGUMENT names the field of an assignment. Null: a welcome, or a kind of message that this version does not know.
absl::StatusOr<std::optional<CoordinatorCommand>> FromProto(const v1::CoordinatorMessage& message);
// What a worker answers to a message that FromProto refused: nobody waits for ranks that cannot be started.
std::vector<WorkerReport> Refusals(const v1::CoordinatorMessage& message, const absl::Status& why);

v1::WorkerMessage ToProto(const WorkerReport& report);
// Null: a hello, or a kind of message that this version does not know.
std::optional<WorkerReport> FromProto(const v1::WorkerMessage& message);

}  // namespace motley::wire
