#include "coordinator/client/plan_file.h"

#include <sysexits.h>

#include "absl/strings/str_cat.h"
#include "common/base/parse_json.h"
#include "coordinator/client/json.h"
#include "coordinator/client/offline_flags.h"

namespace motley::client {

Exit LoadPlanFile(const std::string& path, planner::Plan* plan) {
  std::string text;
  if (Exit exit = ReadText(path, planner::kLongestPlanBytes, &text); exit.code != 0) return exit;
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin != std::string::npos && text[begin] == '[') {
    return {EX_DATAERR, absl::StrCat(path, ": a plan is one; expected a JSON object, got a list")};
  }
  if (begin != std::string::npos && text[begin] == '{') {
    // A live job's answer has the plan inside.
    const absl::StatusOr<Json> json = ParseOrderedJson(text, "plan");
    if (!json.ok()) return {EX_DATAERR, absl::StrCat(path, ": ", std::string(json.status().message()))};
    if (json->is_object() && !json->contains("pipelines") && json->contains("plan") && json->at("plan").is_object()) {
      text = json->at("plan").dump();
    }
  } else if (planner::IsPlanText(text)) {
    return {EX_DATAERR, absl::StrCat(path, ": this is a plan's text, which is for reading; ",
                                     "write the plan as JSON: `motley plan ... -o json > plan.json`")};
  }
  absl::StatusOr<planner::Plan> parsed = planner::PlanFromJson(text);
  if (!parsed.ok()) return {EX_DATAERR, absl::StrCat(path, ": ", std::string(parsed.status().message()))};
  *plan = *std::move(parsed);
  return {};
}

}  // namespace motley::client
