#include "planner/live/job_request.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/count.h"
#include "common/base/listed.h"
#include "common/base/status_macros.h"
#include "common/model/parameters.h"
#include "planner/answers/given_plan.h"
#include "planner/plan/each_rank.h"
#include "planner/util/quantity_text.h"

namespace motley::planner {
namespace {

absl::Status CheckAgainstJob(const TrainingSection& training, const Plan& plan) {
  const auto other = [](const char* what, int64_t given, const char* field, int64_t wanted) {
    return absl::InvalidArgumentError(absl::StrCat("plan: ", what, " is ", given, ", the job's ", field, " ", wanted));
  };
  if (plan.global_batch != 0 && plan.global_batch != training.global_batch_size)
    return other("global_batch", plan.global_batch, "training.global_batch_size", training.global_batch_size);
  if (plan.seq_len != 0 && plan.seq_len != training.seq_len)
    return other("seq_len", plan.seq_len, "training.seq_len", training.seq_len);
  return absl::OkStatus();
}

// Of CUDA's cards; devices of other kinds compute in every type.
bool ComputesIn(const DeviceDescription& device, DType type) {
  constexpr int kFirstBFloat16 = 80, kFirstFloat16 = 53;
  const int capability = device.card.compute_capability;
  if (device.kind != DeviceKind::kCuda || !IsHalf(type)) return true;
  return capability >= (type == DType::kBFloat16 ? kFirstBFloat16 : kFirstFloat16);
}

absl::StatusOr<OffloadKinds> OffloadOf(const PlannerSection& section) {
  const absl::StatusOr<OffloadKinds> kinds = ParseOffload(section.offload);
  if (!kinds.ok()) return absl::InvalidArgumentError(absl::StrCat("planner.offload: ", kinds.status().message()));
  return kinds;
}

// A node's devices all say the same of it.
int64_t OfferedByHosts(const std::vector<DeviceDescription>& devices) {
  std::map<NodeName, int64_t> by_node;
  for (const DeviceDescription& device : devices) by_node[NodeOf(device.id)] = device.node_host_memory_bytes;
  int64_t bytes = 0;
  for (const auto& [node, offered] : by_node) bytes += offered;
  return bytes;
}

std::string WithCapability(const DeviceDescription& device) {
  if (device.kind != DeviceKind::kCuda) return device.id.value();
  return absl::StrCat(device.id.value(), " (", device.model, ", sm_", device.card.compute_capability, ")");
}

}  // namespace

absl::Status CheckStepsInTurn(const TrainingSection& training, const Precision& precision) {
  const auto refuse = [](const std::string& because, const std::string& instead) {
    return absl::InvalidArgumentError(
        absl::StrCat("plan: optimizer_steps is in_turn, but ", because, "; ", instead, ", or say at_end in the plan"));
  };
  if (training.max_norm > 0) {
    return refuse(absl::StrCat("training.max_norm is ", training.max_norm, ", which clips by the norm of all gradients"),
                  "set training.max_norm to 0");
  }
  if (precision.compute != DType::kFloat16) return absl::OkStatus();
  return refuse("the job computes in float16, whose loss scale skips a step for any gradient", "compute in bfloat16 or float32");
}

absl::Status CheckComputeType(const std::vector<DeviceDescription>& devices, const JobConfig& config) {
  MOTLEY_ASSIGN_OR_RETURN(const Precision precision, PrecisionOf(config.training));
  std::vector<std::string> with, without;
  for (const DeviceDescription& device : devices) {
    (ComputesIn(device, precision.compute) ? with : without).push_back(WithCapability(device));
  }
  if (without.empty()) return absl::OkStatus();
  const std::string type(DTypeName(precision.compute));
  return absl::InvalidArgumentError(absl::StrCat(
      "training.mixed_precision_param is ", type, ", which these devices do not have: ", absl::StrJoin(without, ", "),
      with.empty() ? "; no other device is there" : absl::StrCat("; those that have it: ", absl::StrJoin(with, ", ")),
      ". Leave them out with planner.exclude, or compute in ",
      precision.compute == DType::kBFloat16 ? "float16 or float32" : "float32"));
}

absl::StatusOr<PlanRequest> RequestOf(const PlannerSection& section) {
  PlanRequest request;
  request.strategy = section.strategy;
  request.fidelity = section.fidelity == "published" ? Fidelity::kPublished : Fidelity::kTuned;
  if (section.recompute == "none") request.recompute = RecomputePolicy::kNone;
  if (section.recompute == "full") request.recompute = RecomputePolicy::kFull;
  for (const std::string& pin : Listed(section.pins)) {
    const size_t equals = pin.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == pin.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("planner.pins: '", pin, "' must be STAGE=NODE or STAGE=DEVICE, such as stage0=n1"));
    }
    const auto [at, added] = request.pins.emplace(pin.substr(0, equals), pin.substr(equals + 1));
    if (!added)
      return absl::InvalidArgumentError(absl::StrCat("planner.pins: ", at->first, " is there twice; a stage has one pin"));
  }
  MOTLEY_ASSIGN_OR_RETURN(request.offload, OffloadOf(section));
  request.max_tp = static_cast<int>(section.max_tp);
  request.budget_nodes = section.budget_nodes;
  request.runnable = true;
  return request;
}

std::vector<std::string> DropAbsentPins(const Cluster& cluster, PlanRequest* request) {
  std::vector<std::string> dropped;
  std::erase_if(request->pins, [&](const auto& pin) {
    const bool there = std::any_of(cluster.devices.begin(), cluster.devices.end(), [&](const ClusterDevice& device) {
      return device.id.value() == pin.second || NodeOf(device.id).value() == pin.second;
    });
    int stage = 0;
    const bool numbered = pin.first.starts_with("stage") && absl::SimpleAtoi(pin.first.substr(5), &stage);
    const bool possible = !numbered || stage < static_cast<int>(cluster.devices.size());
    if (there && possible) return false;
    dropped.push_back(absl::StrCat(pin.first, "=", pin.second, ": ", there ? "too few devices for that stage" : "not there now"));
    return true;
  });
  return dropped;
}

std::vector<std::string> NamedPlaces(const PlannerSection& section) {
  std::set<std::string> places;
  if (!section.plan_json.empty()) {
    const absl::StatusOr<Plan> plan = PlanFromJson(section.plan_json);
    if (plan.ok()) ForEachRank(*plan, [&](const RankPlan& rank) { places.insert(rank.device.value()); });
  } else if (section.pins_required) {
    const absl::StatusOr<PlanRequest> request = RequestOf(section);
    if (!request.ok()) return {};
    for (const auto& [stage, place] : request->pins) places.insert(place);
  }
  return {places.begin(), places.end()};
}

absl::StatusOr<CatalogEntry> StrategyOf(const PlannerSection& section) {
  absl::StatusOr<CatalogEntry> strategy = FindInCatalog(section.strategy);
  if (!strategy.ok()) return absl::InvalidArgumentError(absl::StrCat("planner.strategy: ", strategy.status().message()));
  return strategy;
}

absl::StatusOr<Plan> GivenPlanOf(const JobConfig& config, const ModelShape& model) {
  MOTLEY_ASSIGN_OR_RETURN(Plan plan, PlanFromJson(config.planner.plan_json));
  MOTLEY_RETURN_IF_ERROR(CheckAgainstJob(config.training, plan));
  MOTLEY_ASSIGN_OR_RETURN(const Precision precision, PrecisionOf(config.training));
  plan.dtype = precision.compute;
  if (plan.optimizer_steps == OptimizerSteps::kInTurn) {
    MOTLEY_RETURN_IF_ERROR(CheckStepsInTurn(config.training, precision));
  }
  FillIn({model.num_layers, config.training.global_batch_size, config.training.seq_len}, &plan);
  if (IsLayeredAllTheSame(plan)) plan.schedule = ScheduleFamily::kLayered;
  MOTLEY_RETURN_IF_ERROR(ValidateForEngine(plan, model));
  return plan;
}

absl::Status CheckPlannerWords(const PlannerSection& section) {
  const absl::Status strategy = section.plan_json.empty() ? StrategyOf(section).status() : absl::OkStatus();
  const absl::Status pins = RequestOf(section).status();
  if (strategy.ok() || pins.ok()) return strategy.ok() ? pins : strategy;
  return absl::InvalidArgumentError(absl::StrCat(strategy.message(), "\n", pins.message()));
}

absl::Status CheckPlannerSection(const JobConfig& config, const ModelShape& model) {
  MOTLEY_RETURN_IF_ERROR(CheckPlannerWords(config.planner));
  if (config.planner.plan_json.empty()) return absl::OkStatus();
  const absl::Status given = GivenPlanOf(config, model).status();
  return given.ok() ? given : absl::Status(given.code(), absl::StrCat("planner.plan_json: ", given.message()));
}

absl::Status CheckCouldFit(const std::vector<DeviceDescription>& devices, const ModelShape& model, const JobConfig& config) {
  MOTLEY_ASSIGN_OR_RETURN(const Precision precision, PrecisionOf(config.training));
  MOTLEY_ASSIGN_OR_RETURN(const OffloadKinds allowed, OffloadOf(config.planner));
  // Parameter, gradient and AdamW's two moments; of a unit that steps behind its sum no gradient stays.
  const int64_t state_tensors = CheckStepsInTurn(config.training, precision).ok() ? 3 : 4;
  const std::vector<UnitSpec> layout = ParameterLayout(model);
  const int64_t state = state_tensors * SizeOfBytes(precision.master) * NumParameters(model);
  // Of parameters and of gradients: at least the largest unit, whole.
  int64_t largest_unit = 0;
  for (const UnitSpec& unit : layout) largest_unit = std::max(largest_unit, unit.num_elements);
  const int64_t buffers = largest_unit * (SizeOfBytes(precision.compute) + SizeOfBytes(precision.master));
  int64_t room = 0, most = -1;
  std::string largest;
  for (const DeviceDescription& device : devices) {
    if (device.memory_bytes == 0) return absl::OkStatus();
    const auto usable = static_cast<int64_t>((1 - config.planner.memory_reserve) * static_cast<double>(device.memory_bytes));
    room += std::max<int64_t>(0, usable - buffers);
    if (usable > most) most = usable, largest = device.id.value();
  }
  const int64_t on_hosts = allowed.takes_state() ? OfferedByHosts(devices) : 0;
  const int64_t missing = state - room - on_hosts;
  if (missing <= 0) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("the model does not fit: its training state is ", BytesText(state), ", the usable memory of ",
                   Count(devices.size(), "device"), " beside the buffers for one layer ", BytesText(room),
                   on_hosts > 0 ? absl::StrCat(", what their hosts offer ", BytesText(on_hosts)) : "", "; ", BytesText(missing),
                   " are missing. ", largest, " is the largest with ", BytesText(most),
                   "; nothing was measured. Add devices or memory, or train a "
                   "smaller model (`motley estimate` says what fits)"));
}

}  // namespace motley::planner
