// A plan as JSON.
#include "planner/plan/plan.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace motley;
  const absl::StatusOr<planner::Plan> plan = planner::PlanFromJson(std::string(fuzz::Text(data, size)));
  if (!plan.ok()) return 0;
  const std::string text = planner::ToJson(*plan);
  const absl::StatusOr<planner::Plan> again = planner::PlanFromJson(text);
  fuzz::Require(again.ok(), "a plan that was written is not read");
  fuzz::Require(planner::ToJson(*again) == text, "a plan that was read again is another");
  return 0;
}
