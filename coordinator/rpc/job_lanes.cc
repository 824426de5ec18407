#include "coordinator/rpc/job_lanes.h"

#include <array>
#include <cstddef>
#include <cstdint>

namespace motley::coordinator {
namespace {

constexpr std::array<const char*, kNumLanes> kLanes = {"compute", "collective", "send", "receive", "copy"};

struct LaneWait {
  const char* name;
  double LaneSeconds::*seconds;
};
constexpr LaneWait kLaneWaits[] = {{"wait: collective", &LaneSeconds::collective},
                                   {"wait: hand-over", &LaneSeconds::hand_over},
                                   {"wait: bubble", &LaneSeconds::bubble},
                                   {"wait: host", &LaneSeconds::host},
                                   {"wait: copy", &LaneSeconds::copy}};

void Add(const char* what, double seconds, double predicted, v1::RankLanes* out) {
  v1::LaneUse* use = out->add_uses();
  use->set_what(what);
  use->set_seconds(seconds);
  use->set_predicted_seconds(predicted);
}

}  // namespace

void AddLanes(const Core& core, const JobRecord& job, v1::GetJobResponse* response) {
  // Before a plan is in force its ranks are those that measure.
  if (!core.state.run || core.state.run->job != job.id || !core.state.run->ranks_in_order) return;
  int32_t number = 0;
  for (const RankRun& rank : core.state.run->ranks) {
    v1::RankLanes* out = response->add_lanes();
    out->set_rank(number++);
    out->set_device(rank.device.value());
    out->set_step(rank.step);
    out->set_step_seconds(rank.step_seconds);
    for (size_t lane = 0; lane < kLanes.size(); ++lane) {
      Add(kLanes[lane], rank.lanes.busy[lane], rank.predicted_lanes.busy[lane], out);
    }
    for (const LaneWait& wait : kLaneWaits) Add(wait.name, rank.lanes.*wait.seconds, rank.predicted_lanes.*wait.seconds, out);
  }
}

}  // namespace motley::coordinator
