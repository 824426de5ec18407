#include "planner/live/cephalo.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "common/status_macros.h"
#include "planner/live/device_memory.h"
#include "planner/live/layered.h"
#include "planner/live/memory_ledger.h"
#include "planner/live/plan_builder.h"
#include "planner/live/pricing.h"
#include "planner/split/option_table.h"
#include "planner/util/quantity_text.h"

namespace motley::planner {
namespace {

// Skew is worth this much of the step, not more.
constexpr double kSkewTolerance = 1.002;

struct Solution {
  SplitProblem problem;
  SplitAnswer answer;
  std::vector<std::vector<int>> kinds;  // ranks by kind
};

// Microbatches beyond this are not considered: every device has long reached its best rate.
constexpr int64_t kLargestMicrobatch = 2048;

SplitKind MakeKind(const PlannerInput& input, const CostModel& cost, int rank) {
  SplitKind kind;
  kind.capacity_bytes = FreeBytes(cost, rank);
  kind.allow_keep = input.config.planner.recompute != "full";
  kind.allow_recompute = input.config.planner.recompute != "none";
  for (auto* table : {&kind.forward_seconds, &kind.backward_seconds, &kind.recompute_seconds}) table->assign(1, 0.0);
  return kind;
}

double ForwardOf(const CostModel& cost, int rank, int64_t m) {
  return cost.ForwardSeconds(rank, UnitKind::kEmbedding, m) +
         static_cast<double>(cost.model().num_layers) * cost.ForwardSeconds(rank, UnitKind::kLayer, m) +
         cost.ForwardSeconds(rank, UnitKind::kHead, m);
}

double BackwardOf(const CostModel& cost, int rank, int64_t m) {
  return cost.BackwardSeconds(rank, UnitKind::kEmbedding, m) +
         static_cast<double>(cost.model().num_layers) * cost.BackwardSeconds(rank, UnitKind::kLayer, m) +
         cost.BackwardSeconds(rank, UnitKind::kHead, m);
}

// Measured series may fall where noise says so; the tables do not.
template <typename T>
void MakeIsotonic(std::vector<T>* table) {
  for (size_t m = 1; m < table->size(); ++m) (*table)[m] = std::max((*table)[m], (*table)[m - 1]);
}

void ExtendKind(const CostModel& cost, int rank, int64_t size, SplitKind* kind) {
  const double layers = static_cast<double>(cost.model().num_layers);
  for (int64_t m = kind->largest_size() + 1; m <= size; ++m) {
    const double backward = BackwardOf(cost, rank, m);
    kind->forward_seconds.push_back(ForwardOf(cost, rank, m));
    kind->backward_seconds.push_back(backward);
    kind->recompute_seconds.push_back(backward + layers * cost.ForwardSeconds(rank, UnitKind::kLayer, m));
  }
  for (auto* table : {&kind->forward_seconds, &kind->backward_seconds, &kind->recompute_seconds}) MakeIsotonic(table);
  kind->keep_terms = LayeredMemoryTerms(cost, rank, false, size);
  kind->recompute_terms = LayeredMemoryTerms(cost, rank, true, size);
  for (auto* terms : {&kind->keep_terms, &kind->recompute_terms}) {
    for (MemoryTerm& term : *terms) {
      MakeIsotonic(&term.each);
      MakeIsotonic(&term.once);
    }
  }
}

// What the layered schedule's collectives cost at a largest share.
SkewLevel LevelAt(const CostModel& cost, const LayeredCollectives& collectives, double share) {
  const auto bytes = [&](int32_t unit) { return cost.layout()[static_cast<size_t>(unit)].num_elements * cost.element_bytes(); };
  SkewLevel level{share, 0, 0};
  for (const int32_t unit : collectives.forward_gathers) level.forward_seconds += cost.AllGatherSeconds(bytes(unit), share);
  for (const int32_t unit : collectives.backward_gathers) level.backward_seconds += cost.AllGatherSeconds(bytes(unit), share);
  for (const int32_t unit : collectives.reduce_scatters) level.backward_seconds += cost.ReduceScatterSeconds(bytes(unit), share);
  return level;
}

std::vector<SkewLevel> MakeLevels(const CostModel& cost, size_t devices) {
  if (devices == 1) return {{1, 0, 0}};
  const double even = 1.0 / static_cast<double>(devices);
  std::vector<double> shares = {even};
  for (const double skew : cost.measured_skews()) {
    if (skew > even * (1 + 1e-6) && skew < 1) shares.push_back(skew);
  }
  shares.push_back(1);
  const LayeredCollectives collectives = CollectivesOf(cost.model());
  std::vector<SkewLevel> levels;
  for (const double share : shares) {
    SkewLevel level = LevelAt(cost, collectives, share);
    if (!levels.empty()) {  // a bound that allows more cannot cost less
      level.forward_seconds = std::max(level.forward_seconds, levels.back().forward_seconds);
      level.backward_seconds = std::max(level.backward_seconds, levels.back().backward_seconds);
    }
    levels.push_back(level);
  }
  return levels;
}

// The problem over these ranks of `cost`; `kinds` receives the ranks of each of its kinds. Tables are empty yet.
SplitProblem MakeSplitProblem(const PlannerInput& input, const CostModel& cost, const std::vector<int>& ranks,
                              std::vector<std::vector<int>>* kinds) {
  SplitProblem problem;
  problem.batch = input.config.training.global_batch_size;
  problem.tolerance = 1e-6;  // far below what any profile can tell apart
  problem.state_bytes = TotalStateBytes(cost);
  problem.levels = MakeLevels(cost, ranks.size());
  kinds->clear();
  for (const int rank : ranks) {
    const auto same =
        std::find_if(kinds->begin(), kinds->end(), [&](const std::vector<int>& k) { return cost.SameKind(k[0], rank); });
    if (same != kinds->end()) {
      same->push_back(rank);
      ++problem.kinds[static_cast<size_t>(same - kinds->begin())].count;
      continue;
    }
    kinds->push_back({rank});
    problem.kinds.push_back(MakeKind(input, cost, rank));
  }
  return problem;
}

Solution Solve(const PlannerInput& input, const CostModel& cost, const std::vector<int>& ranks) {
  Solution solution;
  solution.problem = MakeSplitProblem(input, cost, ranks, &solution.kinds);
  solution.answer = SolveSplit(&solution.problem, kLargestMicrobatch, [&](size_t k, int64_t size) {
    ExtendKind(cost, solution.kinds[k][0], size, &solution.problem.kinds[k]);
  });
  return solution;
}

const SplitChoice* ChoiceOf(const Solution& solution, int rank) {
  for (size_t k = 0; k < solution.kinds.size(); ++k) {
    for (size_t i = 0; i < solution.kinds[k].size(); ++i) {
      if (solution.kinds[k][i] == rank) return &solution.answer.choices[k][i];
    }
  }
  return nullptr;
}

// What collectives cost in any case: the first gather and the last reduction are never hidden.
double ExposedSeconds(const CostModel& cost, double largest_share) {
  const int64_t bytes = cost.layout()[0].num_elements * cost.element_bytes();
  return cost.AllGatherSeconds(bytes, largest_share) + cost.ReduceScatterSeconds(bytes, largest_share);
}

// The greatest bound on shares that costs next to nothing: headroom decides, as far as collectives stay hidden.
SkewLevel FreeSkew(const CostModel& cost, const Solution& solution) {
  double forward = 0, backward = 0;
  for (const auto& kind : solution.answer.choices) {
    for (const SplitChoice& choice : kind) {
      forward = std::max(forward, choice.forward_seconds);
      backward = std::max(backward, choice.backward_seconds);
    }
  }
  const auto seconds = [&](const SkewLevel& level) {
    return std::max(forward, level.forward_seconds) + std::max(backward, level.backward_seconds) +
           ExposedSeconds(cost, level.largest_share);
  };
  const std::vector<SkewLevel>& levels = solution.problem.levels;
  size_t chosen = solution.answer.level;
  const double limit = seconds(levels[chosen]) * kSkewTolerance;
  for (size_t l = chosen + 1; l < levels.size(); ++l) {
    if (seconds(levels[l]) <= limit) chosen = l;
  }
  return levels[chosen];
}

// Shares that even out the utilisation of the devices' memory, each within its headroom and the skew: raise one water line
// until all state is placed.
std::vector<double> SharesByHeadroom(const CostModel& cost, const Solution& solution, const std::vector<int>& ranks) {
  const SkewLevel level = FreeSkew(cost, solution);
  const double total = static_cast<double>(solution.problem.state_bytes);
  const auto fill = [&](double line, std::vector<double>* shares) {
    double sum = 0;
    shares->clear();
    for (const int rank : ranks) {
      const int64_t activations = ChoiceOf(solution, rank)->bytes, free = FreeBytes(cost, rank);
      const double limit = static_cast<double>(std::max<int64_t>(0, StateLimit(solution.problem, level, free - activations)));
      const double usable = static_cast<double>(cost.UsableBytes(rank));
      const double taken = usable - static_cast<double>(free - activations);
      shares->push_back(std::clamp(line * usable - taken, 0.0, limit));
      sum += shares->back();
    }
    return sum;
  };
  std::vector<double> shares;
  double low = 0, high = 1;
  for (int i = 0; i < 60; ++i) {
    const double line = (low + high) / 2;
    (fill(line, &shares) >= total ? high : low) = line;
  }
  const double sum = fill(high, &shares);
  for (double& share : shares) share /= sum;
  return shares;
}

// Drops devices that got no samples, as long as the rest is as fast without their memory.
Solution DropIdle(const PlannerInput& input, const CostModel& cost, Solution solution, std::vector<int>* ranks,
                  std::vector<UnusedDevice>* unused) {
  for (const int rank : std::vector<int>(*ranks)) {
    if (ranks->size() == 1 || ChoiceOf(solution, rank)->batch > 0) continue;
    std::vector<int> rest = *ranks;
    std::erase(rest, rank);
    Solution without = Solve(input, cost, rest);
    if (!without.answer.feasible || without.answer.seconds > solution.answer.seconds * (1 + 1e-9)) continue;
    unused->push_back({cost.device(rank).id, "the step is no faster with it, and its memory is not needed"});
    *ranks = std::move(rest);
    solution = std::move(without);
  }
  return solution;
}

// Seconds below which this device alone cannot process a sample: a microbatch is no faster than one of fewer samples, so doubling
// steps with half their rate bound all sizes between.
double LeastSecondsPerSample(const PlannerInput& input, const CostModel& cost, int rank) {
  const int64_t batch = std::min(input.config.training.global_batch_size, kLargestMicrobatch);
  double least = std::numeric_limits<double>::infinity();
  for (int64_t m = 1; m <= batch; m *= 2) {
    least = std::min(least, (ForwardOf(cost, rank, m) + BackwardOf(cost, rank, m)) / static_cast<double>(2 * m));
  }
  return least;
}

// The fastest device that trains without the others; rank -1 when none could beat `seconds`. Exact: no collectives.
struct Alone {
  int rank = -1;
  Solution solution;
};
Alone FastestAlone(const PlannerInput& input, const CostModel& cost, const Solution& together, double seconds) {
  Alone best;
  if (cost.world() == 1) return best;
  for (size_t k = 0; k < together.kinds.size(); ++k) {
    const int rank = together.kinds[k].front();
    const double least = LeastSecondsPerSample(input, cost, rank) * static_cast<double>(together.problem.batch);
    if (least >= seconds) continue;  // nearly always: only slow collectives make the devices together slower than one
    Solution alone = Solve(input, cost, {rank});
    if (!alone.answer.feasible || alone.answer.seconds >= seconds) continue;
    seconds = alone.answer.seconds;
    best = {rank, std::move(alone)};
  }
  return best;
}

double SimulatedSeconds(const PlannerInput& input, Plan plan) {
  const auto priced = PriceTraining(input, std::move(plan));
  return priced.ok() ? priced->simulation.seconds : std::numeric_limits<double>::infinity();
}

// The plan of one device in place of `together` where that is faster.
Plan OrAlone(const PlannerInput& input, const CostModel& cost, const Solution& solution, const std::vector<int>& ranks,
             Plan together, std::vector<UnusedDevice> unused) {
  if (ranks.size() == 1) return together;
  const double largest_share = solution.problem.levels[solution.answer.level].largest_share;
  const Alone alone = FastestAlone(input, cost, solution, solution.answer.seconds + ExposedSeconds(cost, largest_share));
  if (alone.rank < 0) return together;
  for (const int rank : ranks) {
    if (rank != alone.rank) unused.push_back({cost.device(rank).id, "the collectives would cost more than it saves"});
  }
  const SplitChoice& choice = *ChoiceOf(alone.solution, alone.rank);
  const DeviceDuty duty{static_cast<size_t>(alone.rank), choice.batch, choice.microbatch, choice.recompute, 1};
  Plan plan = BuildPlan(input, cost, "cephalo", {duty}, std::move(unused));
  return SimulatedSeconds(input, plan) < SimulatedSeconds(input, together) ? plan : together;
}

int64_t LeastActivationBytes(const SplitKind& kind, int64_t batch) {
  int64_t least = INT64_MAX;
  for (int64_t m = 1; m <= std::min(batch, kind.largest_size()); ++m) {
    if (kind.allow_keep) least = std::min(least, ActivationBytes(kind, false, batch, m));
    if (kind.allow_recompute) least = std::min(least, ActivationBytes(kind, true, batch, m));
  }
  return least;
}

absl::Status DoesNotFit(const CostModel& cost, const Solution& solution) {
  const SplitProblem& problem = solution.problem;
  size_t roomiest = 0;
  for (size_t k = 1; k < problem.kinds.size(); ++k) {
    if (problem.kinds[k].capacity_bytes > problem.kinds[roomiest].capacity_bytes) roomiest = k;
  }
  const int rank = solution.kinds[roomiest][0];
  const std::string device = cost.device(rank).id.value();
  const std::string room = absl::StrCat(" (", BytesText(cost.UsableBytes(rank)), " usable, ", BytesText(FixedBytes(cost, rank)),
                                        " of it for context and buffers)");
  const std::string remedy =
      "; add devices or memory, lower training.global_batch_size or training.seq_len, or allow planner.recompute";
  if (solution.answer.missing_bytes > 0) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the model does not fit: beside the samples, the training state of ", BytesText(problem.state_bytes), " lacks ",
        BytesText(solution.answer.missing_bytes), " (", solution.answer.missing_bytes, " bytes) on all devices together; ",
        device, room, " has the most room and would need that much more", remedy));
  }
  int64_t samples = 0, missing = 0;
  for (size_t k = 0; k < problem.kinds.size(); ++k) {
    constexpr double kUnbounded = std::numeric_limits<double>::infinity();
    const int64_t fits = OptionTable(problem.kinds[k], problem.batch).Bound(kUnbounded, kUnbounded);
    samples += fits * problem.kinds[k].count;
    if (k == roomiest) missing = LeastActivationBytes(problem.kinds[k], fits + 1) - problem.kinds[k].capacity_bytes;
  }
  return absl::ResourceExhaustedError(absl::StrCat("the model does not fit: the devices hold the activations of ", samples,
                                                   " of ", problem.batch, " samples; ", device, room, " lacks ",
                                                   BytesText(missing), " (", missing, " bytes) for one more", remedy));
}

// Ranks whose memory holds context and buffers; the others go to `unused`.
std::vector<int> RoomyRanks(const CostModel& cost, std::vector<UnusedDevice>* unused, int64_t* least_missing) {
  std::vector<int> ranks;
  *least_missing = INT64_MAX;
  for (int r = 0; r < cost.world(); ++r) {
    const int64_t free = FreeBytes(cost, r);
    if (free >= 0) {
      ranks.push_back(r);
      continue;
    }
    *least_missing = std::min(*least_missing, -free);
    unused->push_back({cost.device(r).id, absl::StrCat("context and buffers need ", BytesText(FixedBytes(cost, r)), ", ",
                                                       BytesText(-free), " (", -free, " bytes) more than its usable memory")});
  }
  return ranks;
}

}  // namespace

absl::StatusOr<double> SplitSeconds(const PlannerInput& input) {
  MOTLEY_ASSIGN_OR_RETURN(const CostModel cost, CostModel::Create(input));
  std::vector<UnusedDevice> unused;
  int64_t missing = 0;
  const std::vector<int> ranks = RoomyRanks(cost, &unused, &missing);
  if (ranks.empty()) return 0.0;
  const Solution solution = Solve(input, cost, ranks);
  if (!solution.answer.feasible) return 0.0;
  const Alone alone = FastestAlone(input, cost, solution, solution.answer.seconds);
  return alone.rank >= 0 ? alone.solution.answer.seconds : solution.answer.seconds;
}

absl::StatusOr<Plan> PlanCephalo(const PlannerInput& input, const CostModel& cost) {
  std::vector<UnusedDevice> unused;
  int64_t least_missing = 0;
  std::vector<int> ranks = RoomyRanks(cost, &unused, &least_missing);
  if (ranks.empty()) {
    return absl::ResourceExhaustedError(absl::StrCat("the model does not fit: no device holds context and buffers; ",
                                                     unused.front().device.value(), ": ", unused.front().because,
                                                     "; the closest lacks ", BytesText(least_missing),
                                                     "; use devices with more memory or a smaller model"));
  }
  Solution solution = Solve(input, cost, ranks);
  if (!solution.answer.feasible) return DoesNotFit(cost, solution);
  solution = DropIdle(input, cost, std::move(solution), &ranks, &unused);
  const std::vector<double> shares = SharesByHeadroom(cost, solution, ranks);
  std::vector<DeviceDuty> duties;
  for (size_t i = 0; i < ranks.size(); ++i) {
    const SplitChoice& choice = *ChoiceOf(solution, ranks[i]);
    duties.push_back({static_cast<size_t>(ranks[i]), choice.batch, choice.microbatch, choice.recompute, shares[i]});
  }
  Plan plan = BuildPlan(input, cost, "cephalo", duties, unused);
  return OrAlone(input, cost, solution, ranks, std::move(plan), std::move(unused));
}

}  // namespace motley::planner
