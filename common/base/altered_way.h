// How a rank says that what a peer sent it is not what came: a connection's bytes were altered on the way. The coordinator counts
// by these words which nodes that happens between.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace motley {

// Devices of ranks.
struct AlteredWay {
  std::string sender, receiver;
  friend bool operator==(const AlteredWay&, const AlteredWay&) = default;
};

// "what b/gpu0 sent to a/gpu0 was altered on the way".
std::string AlteredOnTheWay(const AlteredWay& way);
// Of a message that holds these words; empty: it does not.
std::optional<AlteredWay> SaysAltered(std::string_view message);

}  // namespace motley
