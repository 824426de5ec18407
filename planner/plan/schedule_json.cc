#include "planner/plan/schedule_json.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/clean_text.h"
#include "nlohmann/json.hpp"

namespace motley::planner {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kMostActions = int64_t{1} << 20;  // of a stage

// Members of a stage whose i-th has the samples of the first, i microbatches further.
struct MemberClass {
  std::vector<size_t> members;
  MemberMicrobatches first;
};

// What the class's member number `i` computes.
MemberMicrobatches OfMember(const MemberMicrobatches& first, size_t i) {
  MemberMicrobatches own = first;
  for (ScheduledMicrobatch& microbatch : own) microbatch.first += static_cast<int64_t>(i) * microbatch.samples;
  return own;
}

std::vector<MemberClass> ClassesOf(const StageSchedule& stage) {
  std::vector<MemberClass> classes;
  for (size_t m = 0; m < stage.members.size(); ++m) {
    const auto like = std::find_if(classes.begin(), classes.end(),
                                   [&](const MemberClass& c) { return OfMember(c.first, c.members.size()) == stage.members[m]; });
    like == classes.end() ? classes.push_back({{m}, stage.members[m]}) : like->members.push_back(m);
  }
  return classes;
}

std::string DeviceOf(const StagePlan& stage, size_t member) { return stage.units[member].ranks[0].device.value(); }

Json StageScheduleToJson(const StagePlan& plan, const StageSchedule& stage) {
  Json classes = Json::array();
  for (const MemberClass& of : ClassesOf(stage)) {
    Json devices = Json::array();
    for (const size_t m : of.members) devices.push_back(DeviceOf(plan, m));
    classes.push_back({{"devices", std::move(devices)}, {"microbatches", ToText(of.first)}});
  }
  return {{"actions", ToText(stage.actions)}, {"classes", std::move(classes)}};
}

void ReadClass(const JsonReader& reader, const std::map<std::string, size_t>& members, std::vector<bool>* seen,
               StageSchedule* stage) {
  reader.Keys({"devices", "microbatches"});
  std::vector<std::string> devices;
  std::string text;
  reader.Get("devices", &devices);
  reader.Get("microbatches", &text);
  const absl::StatusOr<MemberMicrobatches> first = ParseMicrobatches(text);
  if (!first.ok()) return reader.Fail(std::string(first.status().message()));
  for (size_t i = 0; i < devices.size(); ++i) {
    const auto member = members.find(devices[i]);
    if (member == members.end()) return reader.Fail(absl::StrCat("devices: the stage has no ", Quoted(devices[i])));
    if ((*seen)[member->second]) return reader.Fail(absl::StrCat("devices: ", Quoted(devices[i]), " is there twice"));
    (*seen)[member->second] = true;
    stage->members[member->second] = OfMember(*first, i);
  }
}

void ReadStageSchedule(const JsonReader& reader, const StagePlan& plan, StageSchedule* stage) {
  reader.Keys({"actions", "classes"});
  std::string text;
  reader.Get("actions", &text);
  absl::StatusOr<std::vector<Action>> actions = ParseActions(text, kMostActions);
  if (!actions.ok()) return reader.Fail(std::string(actions.status().message()));
  stage->actions = *std::move(actions);
  stage->members.resize(plan.units.size());
  std::map<std::string, size_t> members;
  for (size_t m = 0; m < plan.units.size(); ++m) {
    if (!plan.units[m].ranks.empty()) members[DeviceOf(plan, m)] = m;
  }
  std::vector<bool> seen(plan.units.size(), false);
  if (!reader.Has("classes")) return reader.Fail("classes is missing");
  reader["classes"].ForEach([&](const JsonReader& item) { ReadClass(item, members, &seen, stage); });
  const auto missing = std::find(seen.begin(), seen.end(), false);
  if (missing == seen.end()) return;
  const auto m = static_cast<size_t>(missing - seen.begin());
  reader.Fail(absl::StrCat("classes: device ", m, " of the stage is missing"));
}

}  // namespace

Json ScheduleToJson(const Plan& plan, const Schedule& schedule) {
  Json pipelines = Json::array();
  for (size_t p = 0; p < schedule.pipelines.size(); ++p) {
    const PipelineSchedule& pipeline = schedule.pipelines[p];
    Json stages = Json::array();
    for (size_t s = 0; s < pipeline.stages.size(); ++s) {
      stages.push_back(StageScheduleToJson(plan.pipelines[p].stages[s], pipeline.stages[s]));
    }
    Json& json = pipelines.emplace_back(Json{{"stage_of", pipeline.stage_of}, {"stages", std::move(stages)}});
    if (pipeline.sums_at_once) json["sums_at_once"] = true;
  }
  return pipelines;
}

void ReadSchedule(const JsonReader& reader, const Plan& plan, Schedule* schedule) {
  reader.ForEach([&](const JsonReader& item) {
    const size_t p = schedule->pipelines.size();
    PipelineSchedule& pipeline = schedule->pipelines.emplace_back();
    if (p >= plan.pipelines.size()) return item.Fail("the plan has no such pipeline");
    item.Keys({"stage_of", "stages", "sums_at_once"});
    item.Get("sums_at_once", &pipeline.sums_at_once);
    std::vector<int64_t> stage_of;
    item.Get("stage_of", &stage_of);
    pipeline.stage_of.assign(stage_of.begin(), stage_of.end());
    if (!item.Has("stages")) return item.Fail("stages is missing");
    item["stages"].ForEach([&](const JsonReader& stage) {
      const size_t s = pipeline.stages.size();
      StageSchedule& read = pipeline.stages.emplace_back();
      if (s >= plan.pipelines[p].stages.size()) return stage.Fail("the plan has no such stage");
      ReadStageSchedule(stage, plan.pipelines[p].stages[s], &read);
    });
  });
}

}  // namespace motley::planner
