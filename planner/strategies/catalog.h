// The table of strategies: each turns a setting into a plan of the one language. A new strategy is one file pair and one line.
#pragma once

#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/plan/plan.h"
#include "planner/setting/setting.h"

namespace motley::planner {

// A plan within the setting's limits(). Predictions need not be filled in; the caller evaluates. RESOURCE_EXHAUSTED: no plan of
// this strategy fits; names the binding device and the bytes it lacks.
using StrategyFunction = absl::StatusOr<Plan> (*)(const Setting& setting);

struct CatalogEntry {
  std::string_view name;
  std::string_view what;  // one line, with the source
  StrategyFunction plan;
  bool of_paper = false;  // a published system, with limits of its own that it keeps to where that is asked for
};

// In the order in which --compare lists them; auto last.
const std::vector<CatalogEntry>& Catalog();
absl::StatusOr<CatalogEntry> FindInCatalog(std::string_view name);  // NOT_FOUND names the nearest and lists all

// One per file: strategies/NAME_strategy.cc.
absl::StatusOr<Plan> PlanEven(const Setting& setting);
absl::StatusOr<Plan> PlanFsdp(const Setting& setting);
absl::StatusOr<Plan> PlanMegatron(const Setting& setting);
absl::StatusOr<Plan> PlanCephalo(const Setting& setting);
absl::StatusOr<Plan> PlanZorse(const Setting& setting);
absl::StatusOr<Plan> PlanPoplar(const Setting& setting);
absl::StatusOr<Plan> PlanHexiscale(const Setting& setting);
absl::StatusOr<Plan> PlanBaton(const Setting& setting);
absl::StatusOr<Plan> PlanAuto(const Setting& setting);

}  // namespace motley::planner
