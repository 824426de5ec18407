#include "worker/engine/reserve_transfers.h"

#include <algorithm>
#include <array>
#include <type_traits>
#include <variant>
#include <vector>

#include "common/base/status_macros.h"
#include "common/model/parameters.h"
#include "worker/engine/group_owners.h"

namespace motley::engine {

absl::Status ReserveTransfers(const RankAssignment& assignment, const Program& program, Precision precision,
                              Communicator& communicator) {
  const std::vector<UnitSpec> layout = ParameterLayout(assignment.model);
  const int64_t sample_bytes =
      assignment.config.training.seq_len * assignment.model.hidden_size * SizeOfBytes(precision.compute);  // handed over
  std::array<int64_t, kNumEngineLanes> through_host{};  // the largest array of each lane
  const auto note = [&](Lane lane, int64_t bytes) {
    through_host[static_cast<size_t>(lane)] = std::max(through_host[static_cast<size_t>(lane)], bytes);
  };
  const auto reserve = [&](const auto& op) -> absl::Status {
    using Op = std::decay_t<decltype(op)>;
    constexpr Lane kLane = Op::kTraits.lane;
    if constexpr (std::is_same_v<Op, Gather> || std::is_same_v<Op, ReduceScatter>) {
      const DType type = std::is_same_v<Op, Gather> ? precision.compute : precision.master;
      if (communicator.TransportOf(op.group) != Transport::kTcp)
        return communicator.ReserveCollective(op.group, type, OwnersIn(assignment, program, op.group, op.unit));
      note(kLane, layout[op.unit].num_elements * SizeOfBytes(type));
    } else if constexpr (requires { op.peer, op.samples; }) {
      const Transport transport = kLane == Lane::kSend ? communicator.TransportTo(op.peer) : communicator.TransportFrom(op.peer);
      if (transport == Transport::kTcp) note(kLane, op.samples * sample_bytes);
    }
    return absl::OkStatus();
  };
  for (const Instruction& instruction : program.instructions) MOTLEY_RETURN_IF_ERROR(std::visit(reserve, instruction.op));
  for (size_t lane = 0; lane < kNumEngineLanes; ++lane) {
    if (through_host[lane] > 0) MOTLEY_RETURN_IF_ERROR(communicator.Reserve(static_cast<Lane>(lane), through_host[lane]));
  }
  return absl::OkStatus();
}

}  // namespace motley::engine
