// The messages between a worker and its rank <-> their wire form (ToRank, FromRank), each both ways.
#pragma once

#include <optional>

#include "absl/status/statusor.h"
#include "common/session/session.h"
#include "proto/motley/v1/worker.pb.h"

namespace motley::wire {

// A StartCommand or ProfileCommand must hold exactly one assignment.
v1::ToRank ToProto(const RankCommand& command);
// INVALID_ARGUMENT names the field of an assignment, or says that the kind is not known.
absl::StatusOr<RankCommand> FromProto(const v1::ToRank& message);

v1::FromRank ToProto(const RankMessage& message);
// Null: a kind of message that this version does not know.
std::optional<RankMessage> FromProto(const v1::FromRank& message);

}  // namespace motley::wire
