#include "worker/engine/transport/link_rates.h"

#include <algorithm>

namespace motley::engine {
namespace {

// 0 is as fast as it gets.
double Slower(double one, double other) {
  if (one <= 0 || other <= 0) return std::max({one, other, 0.0});
  return std::min(one, other);
}

}  // namespace

double SlowestOnPath(const std::vector<DeviceId>& devices, const std::vector<LinkRates>& rates, int from, int to) {
  const LinkRates &out = rates[from], &in = rates[to];
  const double own = Slower(out.device_bytes_per_second, in.device_bytes_per_second);
  if (NodeOf(devices[from]) == NodeOf(devices[to])) return own;
  return Slower(own, Slower(out.node_bytes_per_second, in.node_bytes_per_second));
}

double SlowestInRing(const std::vector<DeviceId>& devices, const std::vector<LinkRates>& rates, const std::vector<int>& members) {
  double slowest = 0;
  for (size_t i = 0; i < members.size(); ++i) {
    slowest = Slower(slowest, SlowestOnPath(devices, rates, members[i], members[(i + 1) % members.size()]));
  }
  return slowest;
}

}  // namespace motley::engine
