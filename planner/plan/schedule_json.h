// The JSON form of a plan's schedules (docs/use/plan-language.md): by class of members that do the same to neighbouring samples,
// naming devices and never ranks. Part of the plan's JSON form.
#pragma once

#include "nlohmann/json_fwd.hpp"
#include "planner/plan/plan.h"
#include "planner/plan/schedule.h"
#include "planner/util/json_reader.h"

namespace motley::planner {

nlohmann::ordered_json ScheduleToJson(const Plan& plan, const Schedule& schedule);

// Of a plan whose stages have been read. Fails where a stage names a device that it does not have, twice or not at all, or what
// the text forms refuse; whether the schedule does what the plan says is ValidateSchedule's.
void ReadSchedule(const JsonReader& reader, const Plan& plan, Schedule* schedule);

}  // namespace motley::planner
