#include "common/program/hand_over_peers.h"

namespace motley {

HandOverPeers HandOverPeersOf(const Program& training, const Program& evaluation) {
  HandOverPeers peers;
  for (const Program* program : {&training, &evaluation}) {
    for (const Instruction& instruction : program->instructions) {
      if (const auto* op = std::get_if<SendActivation>(&instruction.op)) peers.sends_to.insert(op->peer);
      if (const auto* op = std::get_if<SendGradient>(&instruction.op)) peers.sends_to.insert(op->peer);
      if (const auto* op = std::get_if<ReceiveActivation>(&instruction.op)) peers.receives_from.insert(op->peer);
      if (const auto* op = std::get_if<ReceiveGradient>(&instruction.op)) peers.receives_from.insert(op->peer);
    }
  }
  return peers;
}

}  // namespace motley
