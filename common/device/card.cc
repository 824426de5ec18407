#include "common/device/card.h"

#include <array>
#include <cstddef>

namespace motley {
namespace {

// Of a lane, by generation from 1: GT/s less the line code (8b/10b, 128b/130b, then FLITs).
constexpr std::array<double, 6> kLaneBytesPerSecond = {0.25e9, 0.5e9, 0.984375e9, 1.96875e9, 3.9375e9, 7.5625e9};

}  // namespace

double HostLinkBytesPerSecond(const CardDescription& card) {
  if (card.pcie_generation < 1 || card.pcie_lanes < 1) return 0;
  const size_t generation = static_cast<size_t>(card.pcie_generation);
  return kLaneBytesPerSecond[generation <= kLaneBytesPerSecond.size() ? generation - 1 : kLaneBytesPerSecond.size() - 1] *
         card.pcie_lanes;
}

}  // namespace motley
