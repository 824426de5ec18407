// A rank's place in one ring of ranks. Plain arithmetic.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

namespace motley::engine {

struct RingPlace {
  std::vector<int> members;  // ranks in the order of the ring
  int index = 0;             // of this rank among them

  int size() const { return static_cast<int>(members.size()); }
  int LeftIndex() const { return (index + size() - 1) % size(); }
  int left() const { return members[LeftIndex()]; }
  int right() const { return members[(index + 1) % size()]; }
};

// None: the rank is not a member.
inline std::optional<RingPlace> PlaceOf(int rank, const std::vector<int>& members) {
  const auto found = std::find(members.begin(), members.end(), rank);
  if (found == members.end()) return std::nullopt;
  return RingPlace{members, static_cast<int>(found - members.begin())};
}

}  // namespace motley::engine
