// motley plan --cluster C --model M ...: planning from files, without a coordinator; and the same with the numbers of a live one.
#pragma once

#include "coordinator/client/offline_flags.h"
#include "planner/pricing/evaluate.h"

namespace motley::client {

struct PlanOfflineFlags {
  OfflineFlags offline;
  bool explain = false, compare = false, exact = false, timing = false;
  std::string trace, svg;
};

// True where the flags ask for planning from files: a cluster or a model is given.
bool IsOffline(const PlanOfflineFlags& flags);

// Adds the flags that only offline planning has.
void AddPlanOfflineFlags(CLI::App& app, PlanOfflineFlags* flags);

Exit PlanOffline(Context& context, const PlanOfflineFlags& flags);
// Plans with what LoadOffline or LoadLive gave.
Exit PlanWith(Context& context, const PlanOfflineFlags& flags, const OfflineInput& input);

// Timeline and picture of a simulated step, where the flags name files for them.
Exit WritePictures(Context& context, const planner::Evaluation& evaluation, const std::string& trace, const std::string& svg);

}  // namespace motley::client
