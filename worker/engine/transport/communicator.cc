#include "worker/engine/transport/communicator.h"

namespace motley::engine {

Owners OwnersOf(const std::vector<int64_t>& bounds) {
  Owners owners(bounds.empty() ? 0 : bounds.size() - 1);
  for (size_t i = 0; i < owners.size(); ++i) {
    if (bounds[i] < bounds[i + 1]) owners[i].push_back({bounds[i], bounds[i + 1]});
  }
  return owners;
}

Owners EvenOwners(int64_t elements, int members) {
  std::vector<int64_t> bounds;
  for (int64_t m = 0; m <= members; ++m) bounds.push_back(elements * m / members);
  return OwnersOf(bounds);
}

int64_t ElementsOf(const Owners& owners) {
  int64_t elements = 0;
  for (const std::vector<ElementRange>& of_member : owners) {
    for (const ElementRange& range : of_member) elements += range.size();
  }
  return elements;
}

}  // namespace motley::engine
