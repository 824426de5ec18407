// Which transport serves whom. Pure: every rank comes to the same answer from what all have said in their introductions.
#pragma once

#include <string>
#include <vector>

#include "common/base/ids.h"
#include "worker/engine/transport/communicator.h"
#include "worker/engine/transport/introduction.h"

namespace motley::engine {

struct TransportChoice {
  Transport transport = Transport::kNone;
  // Why these members cannot use NCCL together, with what each of them has: "NCCL 2.21.5 on n1/gpu0, 2.28.9 on n2/gpu0: ...".
  // Empty: they can, or none of them has NCCL.
  std::string why_not_nccl;
};

// `devices`, `all`: by rank.
TransportChoice ChooseTransport(const std::vector<int>& members, const std::vector<DeviceId>& devices,
                                const std::vector<Introduction>& all);

// "a, b, c, d and 3 more": a list of a thousand ranks helps nobody.
std::string SomeNames(const std::vector<std::string>& names);

}  // namespace motley::engine
