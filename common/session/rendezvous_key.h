// The keys under which ranks find each other: RUN/EPOCH/WHAT/RANK, or RUN/EPOCH/WHAT/RANK/REST. The rank in it is the one that
// says the value; nobody else's word for it counts.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace motley {

// `prefix` is "train/7/" or "profile/7/", with the epoch; `what` is "peer" (where the rank listens) or "nccl".
std::string RendezvousKey(std::string_view prefix, std::string_view what, int owner, std::string_view rest = "");
// The rank that may set this key; empty: it is none of ours.
std::optional<int> OwnerOfKey(std::string_view key);

}  // namespace motley
