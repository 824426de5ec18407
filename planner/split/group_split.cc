#include "planner/split/group_split.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "planner/costs/memory_model.h"
#include "planner/setting/blank_plan.h"
#include "planner/setting/least_lack.h"
#include "planner/split/group_tables.h"
#include "planner/split/option_table.h"
#include "planner/util/lack_of_memory.h"
#include "planner/util/quantity_text.h"

namespace motley::planner {
namespace {

// The tables describe the ledger by two lines; where a member still needs more, its kind gets less and the split is made again.
constexpr int kMostRepairs = 4;

const std::string& NameOf(const Setting& setting, int device) { return setting.cluster.devices[device].id.value(); }

absl::Status CheckQuestion(const Setting& setting, const GroupQuestion& question) {
  if (question.devices.empty()) return absl::InvalidArgumentError("a group needs at least one device");
  if (question.batch < 1 || question.layers < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("a group needs at least one sample and one layer, not ", question.batch, " and ", question.layers));
  }
  if (question.least_batch * static_cast<int64_t>(question.devices.size()) > question.batch) {
    return absl::ResourceExhaustedError(absl::StrCat("a batch of ", question.batch, " does not give each of ",
                                                     question.devices.size(), " devices ", question.least_batch,
                                                     " samples; use a larger global batch or fewer devices"));
  }
  const auto offers = [&setting](int device) { return setting.OffersHost(device); };
  const std::vector<int>& devices = question.devices;
  const bool lacks = question.offload.takes_state() ? !std::all_of(devices.begin(), devices.end(), offers)
                     : question.offload.activations ? std::none_of(devices.begin(), devices.end(), offers)
                                                    : false;
  if (!lacks) return absl::OkStatus();
  const int device = *std::find_if_not(devices.begin(), devices.end(), offers);
  const ClusterNode& node = setting.cluster.nodes[setting.cluster.devices[device].node];
  return absl::FailedPreconditionError(absl::StrCat("nothing can be offloaded from ", NameOf(setting, device),
                                                    ": host memory or host link of node ", node.name.value(),
                                                    " is not known; add both to the cluster file"));
}

absl::Status DoesNotFit(const Setting& setting, const GroupQuestion& question, const SplitProblem& problem,
                        const SplitAnswer& answer) {
  int roomiest = question.devices[0];
  for (const int device : question.devices) {
    if (setting.UsableBytes(device) > setting.UsableBytes(roomiest)) roomiest = device;
  }
  const std::string what = absl::StrCat("a group of ", question.devices.size(), " devices with ", question.layers, " layers and ",
                                        question.batch, " samples does not fit: ");
  if (answer.missing_bytes > 0) {
    const auto devices = static_cast<int64_t>(question.devices.size());
    return LackOfMemory(
        std::max(LeastLack(setting), (answer.missing_bytes + devices - 1) / devices),
        absl::StrCat(what, "beside the samples, ", BytesText(problem.state_bytes), " of state lack ",
                     BytesText(answer.missing_bytes), " on all of them together; ", NameOf(setting, roomiest), " is the largest"),
        LackIn::kOneDevice);
  }
  constexpr double kUnbounded = std::numeric_limits<double>::infinity();
  int64_t held = 0, missing = INT64_MAX;  // samples; for one more on the device that comes closest
  for (const SplitKind& kind : problem.kinds) {
    const int64_t reach = OptionTable(kind, problem.batch).Bound(kUnbounded, kUnbounded);
    held += reach * kind.count;
    for (int64_t m = 1; m <= std::min(kind.largest_size(), reach + 1); ++m) {
      for (const bool recompute : {false, true}) {
        if (!(recompute ? kind.allow_recompute : kind.allow_keep)) continue;
        missing = std::min(missing, ActivationBytes(kind, recompute, reach + 1, m) - kind.capacity_bytes);
      }
    }
  }
  return LackOfMemory(
      std::max(LeastLack(setting), missing),
      absl::StrCat(what, "the devices hold the activations of ", std::min(held, problem.batch), " of ", problem.batch,
                   " samples, at best; the one that comes closest lacks ", BytesText(missing), " for one more"),
      LackIn::kOneDevice);
}

// Bytes of a member beside its part of the sharded state.
int64_t BytesBesideState(const Setting& setting, const GroupQuestion& question, const GroupMember& member) {
  const RankDuty duty = DutyOf(setting, question, member.device, 0, member.recompute.all());
  if (member.batch == 0) return MemoryOf(setting.costs, duty, 0, 0, 0).total();
  return MemoryOf(setting.costs, duty, member.batch / member.microbatch, member.microbatch, member.batch % member.microbatch)
      .total();
}

void EvenShares(int zero_stage, std::vector<GroupMember>* members) {
  // Replicated state is held by those who compute.
  const auto takes_part = [zero_stage](const GroupMember& m) { return zero_stage > 0 || m.batch > 0; };
  const double n = static_cast<double>(std::count_if(members->begin(), members->end(), takes_part));
  for (GroupMember& member : *members) member.share = takes_part(member) ? 1 / n : 0;
}

// One water line of memory utilisation is raised over all devices until the state is placed (Cephalo section 2.4: "minimize the
// maximum memory utilization", there by a greedy algorithm).
// No share is larger than `largest`.
void SharesByHeadroom(const Setting& setting, const std::vector<int64_t>& taken, double state, double largest,
                      std::vector<GroupMember>* members) {
  const auto fill = [&](double line) {
    double sum = 0;
    for (size_t i = 0; i < members->size(); ++i) {
      const double usable = static_cast<double>(setting.UsableBytes((*members)[i].device));
      (*members)[i].share = std::clamp(line * usable - static_cast<double>(taken[i]), 0.0, largest * state);
      sum += (*members)[i].share;
    }
    return sum;
  };
  double low = 0, high = 1;
  for (int i = 0; i < 50; ++i) {
    const double line = (low + high) / 2;
    (fill(line) >= state ? high : low) = line;
  }
  const double sum = fill(high);
  for (GroupMember& member : *members) member.share = sum > 0 ? member.share / sum : 1.0 / static_cast<double>(members->size());
}

GroupAnswer ToAnswer(const Setting& setting, const GroupQuestion& question, GroupTables* tables, const SplitAnswer& split) {
  GroupAnswer answer;
  const SkewLevel& level = tables->problem()->levels[split.level];
  answer.members.resize(question.devices.size());
  for (size_t k = 0; k < tables->members().size(); ++k) {
    for (size_t i = 0; i < tables->members()[k].size(); ++i) {
      const SplitChoice& choice = split.choices[k][i];
      const size_t at = tables->members()[k][i];
      answer.members[at] = {question.devices[at], choice.batch, choice.microbatch,
                            choice.recompute ? OpSet::All() : OpSet::None(), 0};
      answer.forward_seconds = std::max(answer.forward_seconds, choice.forward_seconds);
      answer.backward_seconds = std::max(answer.backward_seconds, choice.backward_seconds);
    }
  }
  // What overlaps does so to a part only.
  const double exposed = 1 - setting.links.HiddenPart(question.devices);
  const auto overlap = [exposed](double a, double b) { return std::max(a, b) + exposed * std::min(a, b); };
  answer.forward_seconds = overlap(answer.forward_seconds, level.forward_seconds);
  answer.backward_seconds = overlap(answer.backward_seconds, level.backward_seconds) + tables->ExposedSeconds(split.level);
  return answer;
}

// Shares, and what members need beyond their memory: by kind, the most.
std::vector<int64_t> Store(const Setting& setting, const GroupQuestion& question, GroupTables* tables, const SplitAnswer& split,
                           GroupAnswer* answer) {
  std::vector<int64_t> taken;
  for (const GroupMember& member : answer->members) taken.push_back(BytesBesideState(setting, question, member));
  const double state = static_cast<double>(tables->problem()->state_bytes);
  if (split.level == 0) {
    EvenShares(question.zero_stage, &answer->members);
  } else {
    SharesByHeadroom(setting, taken, state, tables->problem()->levels[split.level].largest_share, &answer->members);
  }
  std::vector<int64_t> excess;
  for (const std::vector<size_t>& kind : tables->members()) {
    excess.push_back(0);
    for (const size_t i : kind) {
      const int64_t needed = taken[i] + static_cast<int64_t>(answer->members[i].share * state);
      excess.back() = std::max(excess.back(), needed - setting.UsableBytes(answer->members[i].device));
    }
  }
  return excess;
}

}  // namespace

absl::StatusOr<GroupAnswer> SplitGroupBy(const Setting& setting, const GroupQuestion& question, GroupSolver solve) {
  MOTLEY_RETURN_IF_ERROR(CheckQuestion(setting, question));
  GroupTables tables(setting, question);
  const auto extend = [&tables](size_t kind, int64_t size) { tables.Extend(kind, size); };
  SplitProblem& problem = *tables.problem();
  for (int attempt = 0; attempt < kMostRepairs; ++attempt) {
    const SplitAnswer split = solve(&problem, tables.largest_microbatch(), extend);
    if (!split.feasible) return DoesNotFit(setting, question, problem, split);
    GroupAnswer answer = ToAnswer(setting, question, &tables, split);
    const std::vector<int64_t> excess = Store(setting, question, &tables, split, &answer);
    bool fits = true;
    for (size_t k = 0; k < excess.size(); ++k) {
      if (excess[k] <= 0) continue;
      fits = false;
      problem.kinds[k].capacity_bytes = std::max<int64_t>(0, problem.kinds[k].capacity_bytes - excess[k] - 1);
    }
    if (fits) return answer;
  }
  return DoesNotFit(setting, question, problem, {});
}

absl::StatusOr<GroupAnswer> SplitGroup(const Setting& setting, const GroupQuestion& question) {
  absl::StatusOr<GroupAnswer> answer = SplitGroupBy(setting, question, &SolveSplit);
  // Collectives that run for every microbatch are part of a microbatch's seconds, and the tables have one such number: of the
  // most skewed shares. Even ones may be the better way all the same.
  const bool each_microbatch = !TraitsOf(question.schedule).by_ministage && question.zero_stage >= 2;
  if (!each_microbatch || question.even_shards || question.devices.size() < 2) return answer;
  GroupQuestion evenly = question;
  evenly.even_shards = true;
  absl::StatusOr<GroupAnswer> even = SplitGroupBy(setting, evenly, &SolveSplit);
  const auto seconds = [](const GroupAnswer& a) { return a.forward_seconds + a.backward_seconds; };
  return even.ok() && (!answer.ok() || seconds(*even) < seconds(*answer)) ? even : answer;
}

StagePlan ToStage(const Setting& setting, const GroupAnswer& answer, int zero_stage, const OffloadKinds& offload) {
  StagePlan stage;
  stage.zero_stage = zero_stage;
  for (const GroupMember& member : answer.members) {
    if (member.batch == 0 && member.share == 0) continue;
    RankPlan rank = RankOn(setting, member.device);
    rank.recompute = member.recompute;
    rank.shard_ratio = member.share;
    rank.offload = offload;
    rank.offload.activations &= setting.OffersHost(member.device);
    UnitPlan unit;
    unit.ranks.push_back(std::move(rank));
    if (member.batch > 0) {
      unit.microbatches.assign(static_cast<size_t>(member.batch / member.microbatch), member.microbatch);
      if (member.batch % member.microbatch > 0) unit.microbatches.push_back(member.batch % member.microbatch);
    }
    stage.units.push_back(std::move(unit));
  }
  return stage;
}

}  // namespace motley::planner
