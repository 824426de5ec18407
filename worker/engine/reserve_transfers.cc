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
  const int64_t row_bytes =
      assignment.config.training.seq_len * assignment.model.hidden_size * SizeOfBytes(precision.compute);  // of a sample
  absl::Status status;
  // Of what goes through the host.
  const auto bytes_of = [&](const auto& op) -> int64_t {
    using Op = std::decay_t<decltype(op)>;
    if constexpr (std::is_same_v<Op, Gather> || std::is_same_v<Op, ReduceScatter>) {
      const DType type = std::is_same_v<Op, Gather> ? precision.compute : precision.master;
      if (communicator.TransportOf(op.group) == Transport::kTcp) return layout[op.unit].num_elements * SizeOfBytes(type);
      status.Update(communicator.ReserveCollective(op.group, type, OwnersIn(assignment, program, op.group, op.unit)));
      return 0;
    } else if constexpr (requires { op.peer, op.samples; }) {
      const Transport transport =
          Op::kTraits.lane == Lane::kSend ? communicator.TransportTo(op.peer) : communicator.TransportFrom(op.peer);
      return transport == Transport::kTcp ? op.samples * row_bytes : 0;
    } else {
      return 0;
    }
  };
  std::array<int64_t, kNumLanes> largest{};
  for (const Instruction& instruction : program.instructions) {
    int64_t& of_lane = largest[static_cast<size_t>(LaneOf(instruction.op))];
    of_lane = std::max(of_lane, std::visit(bytes_of, instruction.op));
  }
  MOTLEY_RETURN_IF_ERROR(status);
  for (size_t lane = 0; lane < kNumLanes; ++lane) {
    if (largest[lane] > 0) MOTLEY_RETURN_IF_ERROR(communicator.Reserve(static_cast<Lane>(lane), largest[lane]));
  }
  return absl::OkStatus();
}

}  // namespace motley::engine
