// What moves a job's bytes, for people: a few lines for any number of ranks. `-o json` has every group and pair.
#pragma once

#include <string>
#include <vector>

#include "common/session/transport_use.h"

namespace motley::client {

// "nccl: groups 0, 1, hand-overs of 8 pairs", "tcp: group 2 (n1/cpu0 has no NCCL)"; the word alone where one serves all. Empty:
// nothing moves.
// What ranks have found says of NCCL how it moves them ("nccl over NVLink and RoCE (mlx5_0), 8 channels"), or that nobody knows.
enum class TransportsAre { kPlanned, kFound };
std::vector<std::string> TransportLines(const std::vector<TransportUse>& uses, TransportsAre are);

// "not as planned: group 0: tcp instead of nccl"; empty: all is as planned, or nothing was.
std::string TransportSurprise(const std::vector<TransportUse>& uses);

}  // namespace motley::client
