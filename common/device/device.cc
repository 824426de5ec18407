#include "common/device/device.h"

namespace motley {

bool IsSameToPlan(const DeviceDescription& a, const DeviceDescription& b) {
  DeviceDescription as_b = a;
  as_b.card.used_by_others_bytes = b.card.used_by_others_bytes;
  as_b.card.health = b.card.health;
  return as_b == b;
}

}  // namespace motley
