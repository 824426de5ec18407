// motley plan --cluster C --model M ...: planning from files, without a coordinator.
#pragma once

#include "coordinator/client/offline_flags.h"
#include "planner/evaluate.h"

namespace motley::client {

struct PlanOfflineFlags {
  OfflineFlags offline;
  bool explain = false, compare = false, exact = false, timing = false;
  std::string trace, svg;
};

// True where the flags ask for offline planning: a cluster or a model is given.
bool IsOffline(const PlanOfflineFlags& flags);

// Adds the flags that only offline planning has.
void AddPlanOfflineFlags(CLI::App& app, PlanOfflineFlags* flags);

Exit PlanOffline(Context& context, const PlanOfflineFlags& flags);

// Timeline and picture of a simulated step, where the flags name files for them.
Exit WritePictures(Context& context, const planner::Evaluation& evaluation, const std::string& trace, const std::string& svg);

}  // namespace motley::client
