// motley node measure NODE --probe: how many samples of a model its devices train at once, found by trial.
#pragma once

#include <cstdint>
#include <string>

#include "coordinator/client/command.h"

namespace motley::client {

struct ProbeFlags {
  bool probe = false;
  std::string model, dtype;         // dtype empty: float32
  int64_t seq_len = 0, layers = 0;  // 0 = not given
};

void AddProbeFlags(CLI::App& app, ProbeFlags* flags);
// Exit 64: a flag is missing. 66: no such model or node. 65: the model or node is not for it, or one sample does not fit. 75: a
// job or another probe has the node.
Exit ProbeNode(Context& context, const std::string& node, const ProbeFlags& flags);

}  // namespace motley::client
