// What moves the bytes of one group of a job's ranks, or of the hand-overs from one rank to another: as its ranks found it, or as
// it was planned.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/device/transport_choice.h"

namespace motley {

// How NCCL moves the bytes of one communicator, as its first member's log says.
struct NcclLinks {
  std::vector<std::string> kinds;       // "NVLink", "PCIe", "shared memory", "sockets", "RoCE", "InfiniBand", a plugin's name
  std::vector<std::string> interfaces;  // of its network: "eth0", "mlx5_0"
  int channels = 0;                     // 0: not known
  friend bool operator==(const NcclLinks&, const NcclLinks&) = default;
};

struct TransportUse {
  std::optional<int> group;       // its number in the programs; none: hand-overs from devices[0] to devices[1]
  std::vector<DeviceId> devices;  // of a group in the order of its ring
  Transport transport = Transport::kNone;
  std::string why_not_nccl;                            // as TransportChoice's
  std::optional<Transport> planned;                    // where the plan foresaw one: it does where the job has a card
  std::optional<NcclLinks> nccl_links = std::nullopt;  // none: it is not NCCL, or nobody knows
  friend bool operator==(const TransportUse&, const TransportUse&) = default;
};

}  // namespace motley
