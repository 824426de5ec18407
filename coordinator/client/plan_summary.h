// The first lines of an answer: how fast, what binds, how far from the best that is possible, whether it runs here.
#pragma once

#include <string>

#include "planner/answers/runs_here.h"
#include "planner/plan/plan.h"
#include "planner/pricing/evaluate.h"
#include "planner/setting/setting.h"

namespace motley::client {

// Four lines. `bound` of 0 seconds: not computed, then three. Where the request is for a system as published, the first one
// begins with that.
std::string SummaryText(const planner::Plan& plan, const planner::LowerBound& bound, const planner::RunsHere& runs,
                        const planner::PlanRequest& request);
// "rank 1 (n1/gpu0): it offloads optimizer, the engine runs plans that keep optimizer on the device".
std::string WhyNotHere(const planner::RunsHere& runs);
// What the prediction rests on, a line each. The search's own words are for those who know how it searches.
std::string NotesText(const planner::Plan& plan, bool verbose);
// What the short words of a summary mean.
std::string LegendText();

}  // namespace motley::client
