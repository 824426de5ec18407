#include "planner/strategies/frugal_plan.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "planner/plan/placement.h"
#include "planner/setting/blank_plan.h"
#include "planner/setting/request_check.h"
#include "planner/util/lack_of_memory.h"
#include "planner/util/quantity_text.h"

namespace motley::planner {
namespace {

OpSet Recomputed(const Setting& setting) {
  return setting.request.recompute == RecomputePolicy::kNone ? OpSet::None() : OpSet::All();
}

struct Member {
  int device = 0;
  double free_bytes = 0;  // beside everything but the state; negative: they are lacking
  bool computes = false;
  double share = 0;        // of the state
  double state_bytes = 0;  // that all of the state would be here: less where the host takes a part
};

// Bytes that are free beside everything but the state.
double Headroom(const Setting& setting, int device, int64_t samples, const FrugalWay& way) {
  const MemoryByPurpose fixed = MemoryOf(setting.costs, FrugalDuty(setting, device, 0, way), samples, 1, 0);
  return static_cast<double>(setting.UsableBytes(device) - fixed.total());
}

// Who takes part, and what each holds and does.
struct Division {
  std::vector<Member> members;
  std::vector<UnusedDevice> left_out;
  FrugalWay way;
  bool holds = false;  // there is room for the state
};

// Of those who have room for a sample the `most_computing` roomiest compute; where nobody has, the one that lacks least.
std::vector<Member> MembersOf(const Setting& setting, const std::vector<int>& devices, size_t most_computing, FrugalWay* way) {
  const auto share_of = [&setting](size_t computing) {
    const auto ranks = static_cast<int64_t>(computing);
    return std::max<int64_t>(1, (setting.workload.global_batch + ranks - 1) / ranks);
  };
  way->ranks = static_cast<int64_t>(devices.size());
  way->rounds = share_of(std::min(most_computing, devices.size()));
  std::vector<Member> members;
  std::vector<std::pair<double, size_t>> working;  // room of a member that computes
  for (const int d : devices) {
    working.emplace_back(Headroom(setting, d, way->rounds, *way), members.size());
    members.push_back({d, Headroom(setting, d, 0, *way)});
  }
  std::stable_sort(working.begin(), working.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  const auto able = static_cast<size_t>(std::count_if(working.begin(), working.end(), [](const auto& w) { return w.first > 0; }));
  working.resize(std::max<size_t>(1, std::min(able, most_computing)));
  for (const auto& [room, member] : working) members[member].free_bytes = room, members[member].computes = true;
  way->rounds = share_of(working.size());
  return members;
}

// In proportion to what is free, which holds more where the host takes a part; where that is less than the state, so that all who
// hold some lack the same. Returns whether there is room.
bool ShareState(std::vector<Member>* members) {
  // A byte of a member holds so much of the state as of the first one's, whose bytes count.
  const double state_bytes = members->front().state_bytes;
  const auto holds = [state_bytes](const Member& member) { return state_bytes / member.state_bytes; };
  double free = 0;
  for (const Member& member : *members) free += std::max(0.0, member.free_bytes) * holds(member);
  if (free >= state_bytes && free > 0) {
    for (Member& member : *members) member.share = std::max(0.0, member.free_bytes) * holds(member) / free;
    return true;
  }
  std::vector<std::pair<double, double>> rooms;  // with what a byte holds
  for (const Member& member : *members) rooms.emplace_back(member.free_bytes, holds(member));
  std::sort(rooms.begin(), rooms.end(), std::greater<>());
  double sum = 0, held = 0, lack = 0;
  for (size_t n = 1; n <= rooms.size(); ++n) {
    sum += rooms[n - 1].first * rooms[n - 1].second;
    held += rooms[n - 1].second;
    lack = (state_bytes - sum) / held;
    if (n < rooms.size() && rooms[n].first + lack <= 0) break;  // the next one lacks more than that by itself
  }
  double shared = 0;
  for (Member& member : *members) shared += member.share = std::max(0.0, member.free_bytes + lack) * holds(member);
  for (Member& member : *members) member.share /= shared;
  return false;
}

double StateBytes(const Setting& setting, int device, const FrugalWay& way) {
  const auto bytes = [&](double share) {
    return MemoryOf(setting.costs, FrugalDuty(setting, device, share, way), 0, 0, 0).total();
  };
  return static_cast<double>(bytes(1) - bytes(0));
}

bool Offloads(const Plan& plan) {
  const std::vector<UnitPlan>& units = plan.pipelines[0].stages[0].units;
  return std::any_of(units.begin(), units.end(), [](const UnitPlan& unit) { return unit.ranks[0].offload.any(); });
}

std::string LackText(const Setting& setting, const Plan& plan, int64_t most, const DeviceId& fullest, int lacking) {
  int64_t usable = setting.UsableBytes(setting.FindDevice(fullest));
  const int kind = setting.KindOf(setting.FindDevice(fullest));
  return absl::StrCat(fullest.value(), " (", setting.cluster.kinds[kind].name, ")",
                      lacking > 1 ? absl::StrCat(", the fullest of ", lacking, " that lack memory,") : "", " lacks ",
                      BytesText(most), " of ", BytesText(usable + most), " with the state shared by all",
                      Offloads(plan) ? " and in the hosts' memory" : "", ", one sample at a time",
                      Recomputed(setting).all() ? ", everything recomputed" : "");
}

// What the fullest device lacks; then what a host does.
absl::Status FitsAt(const Setting& setting, const Plan& plan) {
  int64_t most = 0;
  int lacking = 0;
  DeviceId fullest;
  std::vector<int64_t> host(setting.cluster.nodes.size(), 0);
  for (const UnitPlan& unit : plan.pipelines[0].stages[0].units) {
    const RankPlan& rank = unit.ranks[0];
    const int device = setting.FindDevice(rank.device);
    host[setting.cluster.devices[device].node] += rank.predicted.memory.host;
    const int64_t lacks = rank.predicted.peak_bytes - setting.UsableBytes(device);
    lacking += lacks > 0;
    if (lacks > most) most = lacks, fullest = rank.device;
  }
  if (most > 0) return LackOfMemory(most, LackText(setting, plan, most, fullest, lacking));
  for (size_t n = 0; n < host.size(); ++n) {
    const ClusterNode& node = setting.cluster.nodes[n];
    const int64_t lacks = host[n] - node.host_memory_bytes;
    if (lacks > most) {
      most = lacks;
      fullest = DeviceId(node.name.value());
    }
  }
  if (most == 0) return absl::OkStatus();
  return LackOfMemory(most,
                      absl::StrCat("the host memory of ", fullest.value(), " lacks ", BytesText(most), " for what waits there"));
}

// By device the first one whose state takes as many bytes.
std::vector<int> FirstWithSuchState(const Setting& setting, const OffloadKinds& offload) {
  std::vector<int> first(setting.cluster.devices.size(), 0);
  if (!offload.any()) return first;
  int with[] = {-1, -1};  // without host memory, with it
  for (int d = 0; d < setting.num_devices(); ++d) {
    int& of = with[setting.OffersHost(d) ? 1 : 0];
    if (of < 0) of = d;
    first[d] = of;
  }
  return first;
}

Division Divide(const Setting& setting, const OffloadKinds& offload, size_t most_computing) {
  Division division{.way = {.offload = offload}};
  std::vector<int> devices(setting.cluster.devices.size());
  std::iota(devices.begin(), devices.end(), 0);
  const std::vector<int> with_such_state = FirstWithSuchState(setting, offload);
  // Fewer ranks have other buffers, so whoever is left out is left out before the bytes are counted.
  for (size_t before = 0; devices.size() != before;) {
    before = devices.size();
    division.members = MembersOf(setting, devices, most_computing, &division.way);
    for (Member& member : division.members)
      member.state_bytes = StateBytes(setting, with_such_state[member.device], division.way);
    division.holds = ShareState(&division.members);
    devices.clear();
    for (const Member& member : division.members) {
      if (member.share > 0 || member.computes) {
        devices.push_back(member.device);
        continue;
      }
      division.left_out.push_back(
          {setting.cluster.devices[member.device].id,
           absl::StrCat("context and buffers alone lack ", BytesText(static_cast<int64_t>(-member.free_bytes)))});
    }
  }
  return division;
}

// As many compute as leave room for the state. One that computes has less room for it, so what fits with a sequence fits with
// every shorter one.
Division DivideFrugally(const Setting& setting, const OffloadKinds& offload) {
  size_t too_many = setting.cluster.devices.size();
  Division division = Divide(setting, offload, too_many);
  if (division.holds || too_many == 1) return division;
  division = Divide(setting, offload, 1);
  for (size_t few = 1; division.holds && too_many - few > 1;) {
    const size_t middle = few + (too_many - few) / 2;
    Division more = Divide(setting, offload, middle);
    (more.holds ? few : too_many) = middle;
    if (more.holds) division = std::move(more);
  }
  return division;
}

}  // namespace

RankDuty FrugalDuty(const Setting& setting, int device, double share, const FrugalWay& way) {
  RankDuty duty;
  duty.kind = setting.KindOf(device);
  duty.layers = setting.workload.model.num_layers;
  duty.largest_ministage = 1;
  duty.ministages = duty.layers;
  duty.embedding = duty.head = true;
  duty.schedule = ScheduleFamily::k1F1B;
  duty.share = share;
  duty.recompute = Recomputed(setting);
  duty.group_size = way.ranks;
  duty.rounds = way.rounds;
  duty.offload = way.offload.And(setting.MayOffload(device));
  duty.stage_offload = way.offload;
  return duty;
}

Plan FrugalPlan(const Setting& setting, const OffloadKinds& offload) {
  Plan plan = BlankPlan(setting, "frugal", ScheduleFamily::k1F1B);
  Division division = DivideFrugally(setting, offload);
  const std::vector<Member>& members = division.members;
  plan.unused = std::move(division.left_out);
  StagePlan stage;
  for (int64_t layer = 0; layer < setting.workload.model.num_layers; ++layer) stage.ministages.push_back({layer, layer});
  int64_t left = setting.workload.global_batch;
  int64_t computing = std::count_if(members.begin(), members.end(), [](const Member& member) { return member.computes; });
  for (const Member& member : members) {
    RankPlan rank = RankOn(setting, member.device);
    rank.recompute = Recomputed(setting);
    rank.shard_ratio = member.share;
    rank.offload = offload.And(setting.MayOffload(member.device));
    int64_t batch = 0;
    if (member.computes) {
      batch = (left + computing - 1) / computing;
      left -= batch;
      --computing;
    }
    rank.predicted.memory =
        MemoryOf(setting.costs, FrugalDuty(setting, member.device, rank.shard_ratio, division.way), batch, 1, 0);
    rank.predicted.peak_bytes = rank.predicted.memory.total();
    stage.units.push_back({{rank}, Microbatches(batch, 1)});
  }
  plan.pipelines = {{{std::move(stage)}}};
  return plan;
}

FrugalAnswer FindFrugal(const Setting& setting) {
  FrugalAnswer nearest;
  constexpr OffloadKinds kNone, kOptimizer = {.optimizer = true}, kState = {.parameters = true, .optimizer = true};
  for (const OffloadKinds& offload : {kNone, kOptimizer, kState}) {
    if (offload.Without(setting.MayOffload()).any()) continue;
    Plan plan = FrugalPlan(setting, offload);
    absl::Status fits = FollowsRequest(setting, plan, true);
    if (fits.ok()) fits = FitsAt(setting, plan);
    if (fits.ok()) return {std::move(plan), std::move(fits)};
    if (!offload.any() || IsNearerMiss(fits, nearest.fits)) nearest = {std::move(plan), std::move(fits)};
  }
  return nearest;
}

}  // namespace motley::planner
