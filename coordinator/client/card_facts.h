// What the coordinator knows of a job and its checkpoints do not say: for the card of an export.
#pragma once

#include <string>

#include "absl/time/time.h"
#include "common/checkpoint/model_card.h"
#include "coordinator/client/connection.h"

namespace motley::client {

// The name of the model in a folder: its last part, or OWNER/NAME of a download of the hub (models--OWNER--NAME). Empty: the path
// names a job, or a folder that can be looked at here and holds no weights of HuggingFace's.
std::string BaseModelName(const std::string& initial);

// Asks for the steps that the coordinator keeps; without an answer those it said already count.
CardFacts CardFactsOf(Connection& connection, const v1::Job& job, absl::Time now);
// Of checkpoints alone.
CardFacts CardFactsOf(absl::Time now);

}  // namespace motley::client
