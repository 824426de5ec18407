#include "planner/search/turn_stages.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/costs/memory_model.h"
#include "planner/search/plan_moves.h"
#include "planner/search/unit_moves.h"
#include "planner/setting/blank_plan.h"

namespace motley::planner {
namespace {

constexpr double kUnbalanced = 1.04;  // of a unit's time, for microbatches that are alike in every round
constexpr double kNever = std::numeric_limits<double>::infinity();

// Units of a stage that are alike.
struct Crew {
  int kind = 0, ranks = 1;                                           // of a unit
  double reduce_seconds_per_sample = 0, reduce_latency_seconds = 0;  // an all-reduce of a layer's output inside a unit
  std::vector<std::vector<int>> units;                               // devices
  double batch = 0;                                                  // of a unit
  int64_t usable_bytes = 0;                                          // least of its devices
  bool hosts = true;                                                 // all of its devices' nodes offer host memory
};

int64_t InFlightAt(const TurnChoice& choice, size_t stage) {
  if (stage + 1 == choice.groups.size()) return 1;  // waits for nobody
  const auto own = static_cast<double>(choice.groups.size() - stage);
  return std::min(choice.rounds, static_cast<int64_t>(std::ceil(own * choice.in_flight_factor)));
}

// What a stage does with so many layers.
struct Answer {
  double seconds = 0;             // of all rounds
  std::vector<size_t> recompute;  // by crew: step of its ladder
  std::vector<double> shares;     // by crew: of a rank
};

class StageCost {
 public:
  StageCost(const Setting& setting, const TurnChoice& choice, size_t stage) : setting_(setting), choice_(choice), stage_(stage) {
    MakeCrews();
    ShareBatch();
  }

  const std::vector<Crew>& crews() const { return crews_; }
  const std::vector<int64_t>& batches() const { return batches_; }  // by unit, in the crews' order
  const OpSet& Recompute(const Crew& crew, size_t step) const { return Ladder(crew)[step]; }
  int64_t InFlight() const { return InFlightAt(choice_, stage_); }

  int64_t LargestMicrobatch() const {
    int64_t largest = 0;
    for (const Crew& crew : crews_) largest = std::max(largest, Microbatch(crew));
    return largest;
  }
  // What the stages beside this one hand over at once; 0 = there is none. Before the first question.
  void SetNeighbours(int64_t from_previous, int64_t from_next) {
    from_previous_ = from_previous;
    from_next_ = from_next;
  }

  // Units of a stage are alike, as unlike slices meet in more collectives than are estimated; and their ranks have even parts.
  bool MayBe() const {
    const bool even = crews_.front().ranks == 1 || setting_.tp_parts() % crews_.front().ranks == 0;
    const auto wide = [this](const Crew& crew) { return crew.ranks != crews_.front().ranks; };
    return even && std::none_of(crews_.begin(), crews_.end(), wide);
  }

  const std::optional<Answer>& At(int64_t layers) {
    const auto [at, is_new] = answers_.try_emplace(layers);
    if (is_new) at->second = Ask(layers);
    return at->second;
  }
  double Seconds(int64_t layers) {
    const std::optional<Answer>& answer = At(layers);
    return answer ? answer->seconds : kNever;
  }

 private:
  bool first() const { return stage_ == 0; }
  bool last() const { return stage_ + 1 == choice_.groups.size(); }

  void MakeCrews() {
    std::map<std::pair<int, int>, std::vector<int>> alike;  // by node and kind
    for (const int device : choice_.groups[stage_]) {
      alike[{setting_.cluster.devices[device].node, setting_.KindOf(device)}].push_back(device);
    }
    for (const auto& [key, devices] : alike) {
      for (size_t at = 0; at < devices.size();) {
        size_t size = static_cast<size_t>(choice_.tp[stage_]);
        while (size > devices.size() - at) size /= 2;
        Add(key.second,
            {devices.begin() + static_cast<std::ptrdiff_t>(at), devices.begin() + static_cast<std::ptrdiff_t>(at + size)});
        at += size;
      }
    }
    num_ranks_ = static_cast<double>(choice_.groups[stage_].size());
    for (const Crew& crew : crews_) num_units_ += static_cast<int64_t>(crew.units.size());
  }

  void Add(int kind, std::vector<int> unit) {
    const int ranks = static_cast<int>(unit.size());
    int64_t usable = std::numeric_limits<int64_t>::max();
    bool hosts = true;
    for (const int device : unit) {
      usable = std::min(usable, setting_.UsableBytes(device));
      hosts = hosts && setting_.OffersHost(device);
    }
    for (Crew& crew : crews_) {
      if (crew.kind != kind || crew.ranks != ranks || crew.usable_bytes != usable) continue;
      if (choice_.offload.optimizer && crew.hosts != hosts) continue;
      crew.units.push_back(std::move(unit));
      return;
    }
    Crew crew{kind, ranks, 0, 0, {}, 0, usable, hosts};
    if (ranks > 1) {
      const auto bytes = static_cast<double>(setting_.costs.BoundaryBytes(1));
      const Flow ring = setting_.links.Ring(Collective::kAllReduce, unit, bytes);
      crew.reduce_latency_seconds = ring.latency_seconds;
      crew.reduce_seconds_per_sample = setting_.links.SecondsAlone(ring) - ring.latency_seconds;
    }
    crew.units.push_back(std::move(unit));
    crews_.push_back(std::move(crew));
  }

  double LayerSeconds(const Crew& crew, double samples, OpSet recompute) const {
    const Costs& costs = setting_.costs;
    const double share = 1.0 / crew.ranks, meets = crew.ranks > 1 ? 4 : 0;
    return costs.ForwardSeconds(crew.kind, UnitKind::kLayer, samples, share) +
           costs.BackwardSeconds(crew.kind, UnitKind::kLayer, samples, share) +
           (recompute.empty() ? 0 : costs.RecomputeSeconds(crew.kind, UnitKind::kLayer, recompute, samples, share)) +
           meets * (crew.reduce_latency_seconds + samples * crew.reduce_seconds_per_sample);
  }
  double EndSeconds(const Crew& crew, double samples) const {
    double seconds = 0;
    for (const auto& [held, unit] : {std::pair{first(), UnitKind::kEmbedding}, std::pair{last(), UnitKind::kHead}}) {
      if (!held) continue;
      seconds += setting_.costs.ForwardSeconds(crew.kind, unit, samples, 1.0 / crew.ranks) +
                 setting_.costs.BackwardSeconds(crew.kind, unit, samples, 1.0 / crew.ranks);
    }
    return seconds;
  }

  // By speed at the microbatches that follow; two passes come close enough.
  void ShareBatch() {
    const auto batch = static_cast<double>(setting_.workload.global_batch);
    for (Crew& crew : crews_) crew.batch = batch / static_cast<double>(num_units_);
    for (int pass = 0; pass < 2; ++pass) {
      std::vector<double> speeds;
      double total = 0;
      for (const Crew& crew : crews_) {
        const double samples = std::max(1.0, crew.batch / static_cast<double>(choice_.rounds));
        speeds.push_back(samples / LayerSeconds(crew, samples, OpSet::None()));
        total += speeds.back() * static_cast<double>(crew.units.size());
      }
      for (size_t c = 0; c < crews_.size(); ++c) crews_[c].batch = batch * speeds[c] / total;
    }
    if (!ShareRounds()) ShareSamples();
  }

  // The same whole microbatch in every round, so that neighbours meet sample by sample. False where that costs more balance than
  // it is worth.
  bool ShareRounds() {
    if (setting_.workload.global_batch % choice_.rounds != 0) return false;
    const int64_t round = setting_.workload.global_batch / choice_.rounds;
    std::vector<int64_t> sizes;
    std::vector<std::pair<double, size_t>> rests;  // of units, the largest first
    int64_t given = 0;
    for (const Crew& crew : crews_) {
      const double wanted = crew.batch / static_cast<double>(choice_.rounds);
      for (size_t u = 0; u < crew.units.size(); ++u) {
        sizes.push_back(static_cast<int64_t>(wanted + 1e-9));
        rests.emplace_back(static_cast<double>(sizes.back()) - wanted, sizes.size() - 1);
        given += sizes.back();
      }
    }
    std::sort(rests.begin(), rests.end());
    for (size_t i = 0; given < round; ++i, ++given) ++sizes[rests[i % rests.size()].second];
    size_t u = 0;
    for (const Crew& crew : crews_) {
      int64_t most = 0;
      for (size_t i = 0; i < crew.units.size(); ++i) most = std::max(most, sizes[u++]);
      if (static_cast<double>(most * choice_.rounds) > kUnbalanced * crew.batch) return false;
    }
    u = 0;
    for (Crew& crew : crews_) {
      int64_t most = 0;
      for (size_t i = 0; i < crew.units.size(); ++i, ++u) {
        most = std::max(most, sizes[u]);
        batches_.push_back(sizes[u] * choice_.rounds);
      }
      crew.batch = static_cast<double>(most * choice_.rounds);
    }
    return true;
  }

  // Whole samples: up to the crew's part, cumulated, so that they add up.
  void ShareSamples() {
    double upto = 0;
    int64_t given = 0;
    for (const Crew& crew : crews_) {
      for (size_t u = 0; u < crew.units.size(); ++u) {
        upto += crew.batch;
        const int64_t next = std::min<int64_t>(setting_.workload.global_batch, std::llround(upto));
        batches_.push_back(next - given);
        given = next;
      }
    }
    batches_.back() += setting_.workload.global_batch - given;
  }

  const std::vector<OpSet>& Ladder(const Crew& crew) const {
    auto [at, is_new] = ladders_.try_emplace({crew.kind, crew.ranks});
    if (is_new) at->second = RecomputeLadder(setting_, crew.kind, static_cast<size_t>(crew.ranks));
    return at->second;
  }

  int64_t Microbatch(const Crew& crew) const {
    const int64_t batch = static_cast<int64_t>(std::ceil(crew.batch - 1e-9));
    return std::max<int64_t>(1, (batch + choice_.rounds - 1) / choice_.rounds);
  }

  RankDuty DutyOf(const Crew& crew, int64_t layers) const {
    RankDuty duty;
    duty.kind = crew.kind;
    duty.layers = duty.largest_ministage = layers;
    duty.embedding = first();
    duty.head = last();
    duty.schedule = choice_.schedule;
    duty.stage = static_cast<int>(stage_);
    duty.num_stages = static_cast<int>(choice_.groups.size());
    duty.zero_stage = choice_.zero_stage;
    duty.share = 1 / num_ranks_;
    duty.tp_share = 1.0 / crew.ranks;
    duty.group_size = num_units_;
    duty.offload.optimizer = choice_.offload.optimizer && crew.hosts;
    duty.in_flight = InFlight() + WeightsPutOff(choice_.schedule, duty.stage);
    duty.from_previous = from_previous_;
    duty.from_next = from_next_;
    return duty;
  }
  int64_t Bytes(const Crew& crew, const RankDuty& duty) const {
    return MemoryOf(setting_.costs, duty, choice_.rounds, Microbatch(crew), 0).total();
  }

  // The first step of the crew's ladder that fits; the ladder's length: none.
  size_t Step(const Crew& crew, RankDuty duty) const {
    const std::vector<OpSet>& ladder = Ladder(crew);
    const auto lacks = [&](const OpSet& ops) {
      duty.recompute = ops;
      return Bytes(crew, duty) > crew.usable_bytes;
    };
    return static_cast<size_t>(std::partition_point(ladder.begin(), ladder.end(), lacks) - ladder.begin());
  }

  // Even shares do not fit: everything recomputed, shares by what is then free. False: not even that holds the state.
  bool ShareByMemory(int64_t layers, Answer* answer) const {
    if (choice_.zero_stage == 0) return false;
    double total = 0;
    for (size_t c = 0; c < crews_.size(); ++c) {
      const Crew& crew = crews_[c];
      RankDuty duty = DutyOf(crew, layers);
      duty.recompute = Ladder(crew).back();
      duty.share = 0;
      const int64_t none = Bytes(crew, duty);
      duty.share = 1;
      const double state = static_cast<double>(Bytes(crew, duty) - none);
      if (none > crew.usable_bytes || state <= 0) return false;
      answer->recompute[c] = Ladder(crew).size() - 1;
      answer->shares[c] = std::min(1.0, static_cast<double>(crew.usable_bytes - none) / state);
      total += answer->shares[c] * static_cast<double>(crew.ranks) * static_cast<double>(crew.units.size());
    }
    if (total < 1) return false;
    for (double& share : answer->shares) share /= total;
    return true;
  }

  std::optional<Answer> Ask(int64_t layers) const {
    Answer answer{0, std::vector<size_t>(crews_.size(), 0), std::vector<double>(crews_.size(), 1 / num_ranks_)};
    bool fits = true;
    for (size_t c = 0; c < crews_.size() && fits; ++c) {
      answer.recompute[c] = Step(crews_[c], DutyOf(crews_[c], layers));
      fits = answer.recompute[c] < Ladder(crews_[c]).size();
    }
    if (!fits && !ShareByMemory(layers, &answer)) return std::nullopt;
    for (size_t c = 0; c < crews_.size(); ++c) {
      const Crew& crew = crews_[c];
      const double samples = std::max(1.0, crew.batch / static_cast<double>(choice_.rounds));
      const double round = static_cast<double>(layers) * LayerSeconds(crew, samples, Recompute(crew, answer.recompute[c])) +
                           EndSeconds(crew, samples);
      answer.seconds = std::max(answer.seconds, round * crew.batch / samples);
    }
    return answer;
  }

  const Setting& setting_;
  const TurnChoice& choice_;
  const size_t stage_;
  std::vector<Crew> crews_;
  std::vector<int64_t> batches_;
  double num_ranks_ = 0;
  int64_t num_units_ = 0;
  mutable std::map<std::pair<int, int>, std::vector<OpSet>> ladders_;  // by kind and ranks of a unit
  std::map<int64_t, std::optional<Answer>> answers_;
  int64_t from_previous_ = 0, from_next_ = 0;
};

StagePlan ToStagePlan(const Setting& setting, const TurnChoice& choice, const StageCost& cost, const Answer& answer) {
  StagePlan stage;
  stage.zero_stage = choice.zero_stage;
  size_t u = 0;
  for (size_t c = 0; c < cost.crews().size(); ++c) {
    const Crew& crew = cost.crews()[c];
    for (const std::vector<int>& devices : crew.units) {
      UnitPlan unit;
      unit.microbatches = EvenParts(cost.batches()[u++], choice.rounds);
      for (const int device : devices) {
        RankPlan rank = RankOn(setting, device);
        rank.recompute = cost.Recompute(crew, answer.recompute[c]);
        rank.shard_ratio = answer.shares[c];
        rank.tp_share = 1.0 / crew.ranks;
        rank.offload.optimizer = choice.offload.optimizer && crew.hosts;
        unit.ranks.push_back(std::move(rank));
      }
      stage.units.push_back(std::move(unit));
    }
  }
  return stage;
}

}  // namespace

std::vector<int64_t> InFlightOf(const TurnChoice& choice) {
  std::vector<int64_t> in_flight;
  for (size_t s = 0; s < choice.groups.size(); ++s) in_flight.push_back(InFlightAt(choice, s));
  return in_flight;
}

absl::StatusOr<Plan> PlanTurns(const Setting& setting, const TurnChoice& choice) {
  if (choice.groups.size() == 1 && TraitsOf(choice.schedule).splits_backward) {
    TurnChoice whole = choice;
    whole.schedule = ScheduleFamily::k1F1B;
    return PlanTurns(setting, whole);
  }
  const int64_t layers = setting.workload.model.num_layers;
  const auto stages = static_cast<int64_t>(choice.groups.size());
  if (stages > layers) {
    return absl::ResourceExhaustedError(absl::StrCat(stages, " stages need more than the model's ", layers, " layers"));
  }
  std::vector<StageCost> costs;
  for (size_t s = 0; s < choice.groups.size(); ++s) {
    costs.emplace_back(setting, choice, s);
    if (!costs.back().MayBe())
      return absl::FailedPreconditionError(absl::StrCat("stage ", s, ": units of such widths are not planned"));
  }
  for (size_t s = 0; s < costs.size(); ++s) {
    costs[s].SetNeighbours(s > 0 ? costs[s - 1].LargestMicrobatch() : 0,
                           s + 1 < costs.size() ? costs[s + 1].LargestMicrobatch() : 0);
  }
  std::vector<int64_t> counts(choice.groups.size(), 1);
  for (int64_t left = layers - stages; left > 0; --left) {
    size_t best = 0;
    for (size_t s = 1; s < costs.size(); ++s) {
      if (costs[s].Seconds(counts[s] + 1) < costs[best].Seconds(counts[best] + 1)) best = s;
    }
    if (costs[best].Seconds(counts[best] + 1) == kNever) {
      return absl::ResourceExhaustedError(absl::StrCat("no stage has memory for ", left, " of the ", layers, " layers"));
    }
    ++counts[best];
  }
  Plan plan = BlankPlan(setting, "auto", choice.schedule);
  plan.pipelines.resize(1);
  for (size_t s = 0; s < costs.size(); ++s) {
    const std::optional<Answer>& answer = costs[s].At(counts[s]);
    if (!answer) return absl::ResourceExhaustedError(absl::StrCat("stage ", s, " has no memory for ", counts[s], " layers"));
    plan.pipelines[0].stages.push_back(ToStagePlan(setting, choice, costs[s], *answer));
    const int64_t own = stages - static_cast<int64_t>(s);
    if (costs[s].InFlight() > own) plan.pipelines[0].stages.back().in_flight = costs[s].InFlight();
  }
  AssignLayers(counts, 1, &plan.pipelines[0]);
  plan.unused = DevicesBeside(setting, plan, "the step is shorter without: its links or memory would hold the others back");
  return plan;
}

}  // namespace motley::planner
