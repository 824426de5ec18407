// A job of a fake coordinator with a real plan, its programs and what they were made from.
#pragma once

#include <string>

#include "planner/cluster/cluster_text.h"
#include "planner/live/live_inputs.h"
#include "planner/live/planner.h"
#include "tests/common/base/temp_folder.h"
#include "tests/coordinator/client/fake_motley.h"
#include "tests/planner/cluster_fixture.h"

namespace motley::client {

// Job "j", generation 3. Its inputs are not yet those of the plan in force.
struct LiveJob {
  explicit LiveJob(const std::string& strategy = "cephalo") {
    planner::PlannerInput input = planner::MakeInput(planner::SmallModel(), planner::MixedDevices(), 32);
    for (DeviceDescription& device : input.devices) device.link_bytes_per_second = 1e9;
    input.config.planner.strategy = strategy;
    input.cluster_name = "cluster-of-j";
    const planner::LiveInputs live = *planner::DescribeLive(input);
    fake.AddJob("j", v1::JOB_STATE_RUNNING);
    fake.inputs.set_cluster_toml(planner::ToToml(live.cluster));
    fake.inputs.set_profile_json(planner::ToJson(live.profile));
    fake.inputs.set_model_name(live.model_name);
    fake.inputs.set_model_config_json(ToHfConfig(input.model));
    fake.inputs.set_global_batch(32);
    fake.inputs.set_seq_len(32);
    fake.inputs.set_dtype("float32");
    plan = *planner::MakePlan(input);
    fake.plan.set_epoch(3);
    fake.plan.set_plan_json(planner::ToJson(plan.plan));
    for (const Program& program : plan.programs) fake.plan.add_programs(ToText(program));
    *fake.plan.mutable_inputs() = fake.inputs;
    fake.plan.mutable_inputs()->mutable_planner()->set_strategy(strategy);
  }

  FakeMotley fake;
  planner::PlanResult plan;
};

}  // namespace motley::client
