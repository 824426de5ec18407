#include "worker/engine/reserve_transfers.h"

#include <algorithm>
#include <array>
#include <type_traits>
#include <variant>
#include <vector>

#include "common/base/status_macros.h"
#include "common/model/operators.h"
#include "worker/engine/rank_arrays.h"

namespace motley::engine {
namespace {

// Of all members of a group.
int64_t RowsBytes(const RankAssignment& assignment, Precision precision, int64_t samples, int64_t members) {
  return members * kNumbersOfALogitsRow * samples * assignment.config.training.seq_len * SizeOfBytes(precision.master);
}

}  // namespace

absl::Status ReserveTransfers(const RankAssignment& assignment, const Program& program, Precision precision,
                              Communicator& communicator) {
  const RankArrays arrays(assignment);
  const int64_t sample_bytes =
      assignment.config.training.seq_len * assignment.model.hidden_size * SizeOfBytes(precision.compute);  // handed over
  std::array<int64_t, kNumLanes> through_host{};  // the largest array of each lane
  const auto note = [&](Lane lane, int64_t bytes) {
    through_host[static_cast<size_t>(lane)] = std::max(through_host[static_cast<size_t>(lane)], bytes);
  };
  const auto reserve = [&](const auto& op) -> absl::Status {
    using Op = std::decay_t<decltype(op)>;
    constexpr Lane kLane = Op::kTraits.lane;
    if constexpr (std::is_same_v<Op, Gather> || std::is_same_v<Op, ReduceScatter>) {
      const DType type = std::is_same_v<Op, Gather> ? precision.compute : precision.master;
      const MovedElements moved = arrays.MovedBy(program, op);
      if (communicator.TransportOf(op.group) != Transport::kTcp) {
        return communicator.ReserveCollective(op.group, type, moved.owners);
      }
      note(kLane, moved.within.size() * SizeOfBytes(type));
    } else if constexpr (std::is_same_v<Op, AllReduceActivation> || std::is_same_v<Op, BroadcastActivation>) {
      // Through the host. On a card one sum needs no room, nor do arrays that one member has all of or each an even part.
      if (communicator.TransportOf(op.group) != Transport::kTcp) return absl::OkStatus();
      const int64_t samples = program.microbatches[op.microbatch].samples;
      const auto members = static_cast<int64_t>(program.groups[op.group].size());
      note(kLane, op.of == Exchanged::kRows ? RowsBytes(assignment, precision, samples, members) : samples * sample_bytes);
    } else if constexpr (requires { op.peer, op.samples; }) {
      const Transport transport = kLane == Lane::kSend ? communicator.TransportTo(op.peer) : communicator.TransportFrom(op.peer);
      if (transport == Transport::kTcp) note(kLane, op.samples * sample_bytes);
    }
    return absl::OkStatus();
  };
  for (const Instruction& instruction : program.instructions) MOTLEY_RETURN_IF_ERROR(std::visit(reserve, instruction.op));
  for (size_t lane = 0; lane < kNumLanes; ++lane) {
    if (through_host[lane] > 0) MOTLEY_RETURN_IF_ERROR(communicator.Reserve(static_cast<Lane>(lane), through_host[lane]));
  }
  return absl::OkStatus();
}

}  // namespace motley::engine
