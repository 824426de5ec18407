// One question, asked twice: what the cards alone hold and how fast, and what it is with the hosts' memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "planner/answers/host_share.h"
#include "planner/setting/setting.h"

namespace motley::planner {

struct TierFit {
  absl::Status fits;          // OK, or what the plan lacks that comes nearest
  int64_t lacking_bytes = 0;  // of its fullest device; 0: it fits, or memory is not the matter
  // Of the plan, where it fits: who made it, what waits on the hosts and where, seconds of its step.
  std::string strategy;
  OffloadKinds offloads;
  std::vector<HostShare> hosts;
  double step_seconds = 0, tokens_per_second = 0;
  bool runs_here = false;
};

struct TierFits {
  TierFit on_cards;
  std::optional<TierFit> with_offload;  // never slower: the other plan where nothing that offloads is faster
  std::string no_offload_because;       // where there is none
};

// By the setting's strategy; of auto a short search, so `motley plan` may find a faster plan. Each fits exactly where
// PlanAndEvaluate finds one.
TierFits FindTierFits(const Setting& setting);

}  // namespace motley::planner
