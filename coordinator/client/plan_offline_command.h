// motley plan --cluster C --model M ...: planning from files, without a coordinator; and the same with the numbers of a live one.
#pragma once

#include "coordinator/client/json.h"
#include "coordinator/client/offline_flags.h"
#include "planner/answers/plan_answer.h"
#include "planner/pricing/evaluate.h"

namespace motley::client {

struct PlanOfflineFlags {
  OfflineFlags offline;
  bool explain = false, verbose = false, compare = false, timing = false;
  std::string trace, svg;
};

// True where the flags ask for planning from files: a cluster or a model is given.
bool IsOffline(const PlanOfflineFlags& flags);

// Flags that ask for a plan to be made, and those that say how one is shown.
void AddPlanningFlags(CLI::App& app, PlanOfflineFlags* flags);
void AddShowingFlags(CLI::App& app, PlanOfflineFlags* flags);

Exit PlanOffline(Context& context, const PlanOfflineFlags& flags);
// Plans with what LoadOffline or LoadLive gave. `of_job`: JSON has the plan where that of the plan in force has it.
Exit PlanWith(Context& context, const PlanOfflineFlags& flags, const OfflineInput& input, bool of_job = false);
// A plan that is there, explained, compared and drawn as the flags ask. `document`: in JSON, what the report is added to;
// nullptr: the plan's own.
Exit ShowPlan(Context& context, const PlanOfflineFlags& flags, const OfflineInput& input, const planner::PlanAnswer& result,
              const Json* document);
// 73: a file that the flags name cannot be written.
Exit CheckOutputs(const PlanOfflineFlags& flags);

// Timeline and picture of a simulated step, where the flags name files for them.
Exit WritePictures(Context& context, const planner::Evaluation& evaluation, const std::string& trace, const std::string& svg);

}  // namespace motley::client
