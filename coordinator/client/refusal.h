// What a coordinator that holds as many connections as it may says to one that it does not take.
#pragma once

#include <optional>
#include <string>

#include "absl/time/time.h"

namespace motley::client {

// Its sentence, as a connection to `address` (HOST:PORT or unix:PATH) is told it at once. Nothing: none comes in this time, it
// takes the connection, or who listens there is no coordinator. gRPC does not hand on what it reads instead of an answer.
std::optional<std::string> AskRefusal(const std::string& address, absl::Duration patience);

}  // namespace motley::client
