#include "common/session/rendezvous_key.h"

#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace motley {

std::string RendezvousKey(std::string_view prefix, std::string_view what, int owner, std::string_view rest) {
  return absl::StrCat(std::string(prefix), std::string(what), "/", owner, rest.empty() ? "" : "/", std::string(rest));
}

std::optional<int> OwnerOfKey(std::string_view key) {
  constexpr size_t kRank = 3;  // RUN, EPOCH, WHAT, RANK
  const std::vector<std::string> parts = absl::StrSplit(std::string(key), absl::MaxSplits('/', kRank + 1));
  int owner = 0;
  if (parts.size() <= kRank || !absl::SimpleAtoi(parts[kRank], &owner) || owner < 0) return std::nullopt;
  return owner;
}

}  // namespace motley
