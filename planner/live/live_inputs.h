// A job on its devices as every planning starts: a cluster, a profile of its own devices, a workload, a request; and from these
// the setting that strategies read. What the coordinator plans with, what `motley plan JOB` plans with, and what it saves for a
// laptop are the same. Pure. docs/use/offline-planning.md, "On a live cluster".
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/device/device.h"
#include "common/job/job.h"
#include "common/model/model.h"
#include "common/session/profile.h"
#include "planner/cluster/cluster.h"
#include "planner/costs/latency_book.h"
#include "planner/costs/motley_profile.h"
#include "planner/setting/setting.h"

namespace motley::planner {

// What is known of a job and of the devices that it may use.
struct PlannerInput {
  std::string cluster_name;                // for people
  std::vector<DeviceDescription> devices;  // in rank order (sorted by id)
  std::vector<ComputeProfile> compute;     // one per device, same order
  CollectiveProfile collectives;           // of all of them; empty for one device
  CollectiveProfile measured;              // where it has no points: of some of them
  bool predicts_links = false;             // there is no waiting for measurements: what nobody said of links is guessed
  std::vector<DeviceId> excluded;          // there, but planner.exclude names them
  ModelShape model;
  JobConfig config;  // batch, sequence, dtype, planner section
  Epoch epoch;
};

struct LiveInputs {
  Cluster cluster;         // usable_memory is what the job's memory_reserve leaves
  MotleyProfile profile;   // one entry for each card of the cluster
  std::string model_name;  // a key of profile.models
};

// `input` as the coordinator has it, except that `collectives` without points means: these devices were not measured together.
// Then the links are those that the devices declare. Nodes that declare none have those that were measured one by one, if any.
// With `predicts_links` what collectives reach is as on the devices of `measured`, a node that declares nothing is linked as the
// slowest of theirs, and without any it is linked with 1 GB/s.
// Devices of one label whose times lie within 2 % of each other are one card: its times are their mean. FAILED_PRECONDITION:
// neither measured nor declared links; INVALID_ARGUMENT: devices and profiles that do not belong together or make no sense, a
// cluster that does not pass its Validate.
absl::StatusOr<LiveInputs> DescribeLive(const PlannerInput& input);

// What a job is planned with.
struct JobSetting {
  LiveInputs inputs;
  std::unique_ptr<LatencyBook> book;
  std::unique_ptr<Setting> setting;
  std::vector<std::string> dropped_pins;  // each with why; none where pins are required
};

// The job's setting with its planner section as the request: only plans that the engine runs. Errors of DescribeLive, RequestOf
// and Setting::Create.
absl::StatusOr<JobSetting> SettingOf(const PlannerInput& input);

}  // namespace motley::planner
