#include "planner/split/group_tables.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <utility>

namespace motley::planner {
namespace {

// Bytes are asked for at these counts of microbatches of kProbeSamples; more adds nothing new to either line.
constexpr int64_t kProbeSamples = 16, kManyMicrobatches = 64;
// Shares become whole elements of parameters, gradients and moments: a few bytes more than the ratio says.
constexpr int64_t kRoundingBytes = 256;
// A microbatch beyond this is past every device's launch overhead.
constexpr int64_t kLargestMicrobatch = 1024;

double HostRate(const Setting& setting, int device) {
  return setting.cluster.nodes[setting.cluster.devices[device].node].host_link_bytes_per_second;
}

// Parameters of the group's part of the model, in elements.
int64_t ElementsOf(const Setting& setting, const GroupQuestion& q) {
  return q.layers * setting.costs.UnitElements(UnitKind::kLayer) +
         (q.embedding ? setting.costs.UnitElements(UnitKind::kEmbedding) : 0) +
         (q.head ? setting.costs.UnitElements(UnitKind::kHead) : 0);
}

}  // namespace

GroupCollectives CollectivesOfGroup(const Setting& setting, const GroupQuestion& question, double largest_share) {
  GroupCollectives seconds;
  if (question.devices.size() < 2) return seconds;
  const std::vector<double> shares = SharesWithLargest(question.devices.size(), largest_share);
  const auto add = [&](double times, double elements) {
    if (times == 0 || elements == 0) return;
    const auto alone = [&](Collective collective) {
      const double bytes = elements * setting.costs.RingBytes(collective);
      return times * setting.links.SecondsAlone(setting.links.Ring(collective, question.devices, bytes, shares));
    };
    seconds.gather_seconds += alone(Collective::kAllGather);
    seconds.reduce_seconds += alone(Collective::kReduceScatter);
    seconds.all_reduce_seconds += alone(Collective::kAllReduce);
  };
  add(static_cast<double>(question.layers), static_cast<double>(setting.costs.UnitElements(UnitKind::kLayer)));
  if (question.embedding) add(1, static_cast<double>(setting.costs.UnitElements(UnitKind::kEmbedding)));
  if (question.head) add(1, static_cast<double>(setting.costs.UnitElements(UnitKind::kHead)));
  return seconds;
}

RankDuty DutyOf(const Setting& setting, const GroupQuestion& question, int device, double share, bool recompute) {
  RankDuty duty;
  duty.kind = setting.KindOf(device);
  duty.layers = question.layers;
  duty.ministages = std::max<int64_t>(1, question.ministages);
  duty.largest_ministage = (question.layers + duty.ministages - 1) / duty.ministages;
  duty.embedding = question.embedding;
  duty.head = question.head;
  duty.schedule = question.schedule;
  duty.stage = question.stage;
  duty.num_stages = question.num_stages;
  duty.zero_stage = question.zero_stage;
  duty.share = share;
  duty.recompute = recompute ? OpSet::All() : OpSet::None();
  duty.offload = question.offload;
  duty.offload.activations &= setting.OffersHost(device);
  duty.steps_in_turn = question.steps_in_turn;
  duty.group_size = static_cast<int64_t>(question.devices.size());
  return duty;
}

GroupTables::GroupTables(const Setting& setting, const GroupQuestion& question) : setting_(setting), question_(question) {
  problem_.batch = question.batch;
  problem_.least_batch = question.least_batch;
  problem_.tolerance = question.tolerance;
  largest_microbatch_ = std::min(question.batch, kLargestMicrobatch);
  if (question.largest_microbatch > 0) largest_microbatch_ = std::min(largest_microbatch_, question.largest_microbatch);
  AddLevels();
  AddKinds();
}

void GroupTables::AddLevels() {
  const bool layered = TraitsOf(question_.schedule).by_ministage;
  double host_seconds = 0;
  if (question_.offload.parameters) {
    for (const int device : question_.devices) {
      const double bytes = static_cast<double>(ElementsOf(setting_, question_) * setting_.costs.element_bytes());
      const double rate = HostRate(setting_, device) * static_cast<double>(question_.devices.size());
      host_seconds = std::max(host_seconds, rate > 0 ? bytes / rate : std::numeric_limits<double>::infinity());
    }
  }
  const auto add = [&](double largest_share) {
    const GroupCollectives c = CollectivesOfGroup(setting_, question_, largest_share);
    SkewLevel level{largest_share, host_seconds, 2 * host_seconds};
    double exposed = 0;
    if (question_.zero_stage == 3) {
      level.forward_seconds = std::max(level.forward_seconds, c.gather_seconds);
      level.backward_seconds = std::max(level.backward_seconds, c.gather_seconds + c.reduce_seconds);
    } else {
      const double reduce = question_.zero_stage == 0 ? c.all_reduce_seconds : c.reduce_seconds;
      const bool hidden = layered || question_.zero_stage == 2;  // else behind the last backward
      if (hidden) level.backward_seconds = std::max(level.backward_seconds, reduce);
      exposed = (hidden ? 0 : reduce) + (question_.zero_stage == 0 ? 0 : c.gather_seconds);
    }
    // Not layered: sharded parameters are gathered, sharded gradients reduced for every microbatch.
    if (!layered && question_.zero_stage >= 2) {
      forward_floor_ = level.forward_seconds;
      backward_floor_ = level.backward_seconds;
    }
    if (!problem_.levels.empty()) {
      level.forward_seconds = std::max(level.forward_seconds, problem_.levels.back().forward_seconds);
      level.backward_seconds = std::max(level.backward_seconds, problem_.levels.back().backward_seconds);
    }
    problem_.levels.push_back(level);
    exposed_seconds_.push_back(exposed);
  };
  const size_t n = question_.devices.size();
  const double even = 1.0 / static_cast<double>(n);
  add(even);
  if (n < 2 || question_.even_shards || question_.zero_stage == 0) return;
  // What a ring takes depends on the smallest share; what was measured is known by the largest.
  if (n == setting_.cluster.devices.size()) {
    for (const double share : setting_.links.measured_shares()) {
      if (share > even * (1 + 1e-6) && share < 1) add(share);
    }
  }
  add(1);
}

int64_t GroupTables::Bytes(const RankDuty& duty, int64_t count, int64_t size) const {
  return MemoryOf(setting_.costs, duty, count, size, 0).total();
}

GroupTables::Slopes GroupTables::FindSlopes(const RankDuty& duty) const {
  const auto slope = [&](int64_t count) {
    const int64_t rise = Bytes(duty, count + 1, kProbeSamples) - Bytes(duty, count, kProbeSamples);
    return (std::max<int64_t>(rise, 0) + kProbeSamples - 1) / kProbeSamples;
  };
  const int64_t first = slope(1);
  return {first, TraitsOf(duty.schedule).keeps_all ? slope(kManyMicrobatches) : first};
}

int64_t GroupTables::InFlight(const RankDuty& duty) const {
  if (TraitsOf(duty.schedule).keeps_all) return INT64_MAX;
  const int64_t most = 2 * duty.num_stages * duty.ministages + 2;
  int64_t bytes = Bytes(duty, 1, kProbeSamples);
  for (int64_t count = 1; count < most; ++count) {
    const int64_t more = Bytes(duty, count + 1, kProbeSamples);
    if (more == bytes) return count;
    bytes = more;
  }
  return INT64_MAX;
}

void GroupTables::AddKinds() {
  std::map<std::array<int64_t, 3>, size_t> known;
  for (size_t i = 0; i < question_.devices.size(); ++i) {
    const int device = question_.devices[i];
    const bool offloads = question_.offload.activations && setting_.OffersHost(device);
    const double host_rate = offloads ? HostRate(setting_, device) : 0;
    const int64_t usable = setting_.UsableBytes(device);
    const auto [at, added] = known.insert({{setting_.KindOf(device), usable, static_cast<int64_t>(host_rate)}, members_.size()});
    if (!added) {
      members_[at->second].push_back(i);
      ++problem_.kinds[at->second].count;
      continue;
    }
    members_.push_back({i});
    KindSource source;
    source.device = device;
    if (offloads) {
      const double bytes = static_cast<double>(setting_.costs.BoundaryBytes(1)) * static_cast<double>(question_.layers);
      source.host_seconds_per_sample = host_rate > 0 ? bytes / host_rate : std::numeric_limits<double>::infinity();
    }
    const RankDuty duty = DutyOf(setting_, question_, device, 0, false);
    source.stored_bytes = MemoryOf(setting_.costs, duty, 0, 0, 0).total();
    if (question_.zero_stage > 0 && problem_.kinds.empty()) {
      problem_.state_bytes =
          MemoryOf(setting_.costs, DutyOf(setting_, question_, device, 1, false), 0, 0, 0).total() - source.stored_bytes;
    }
    SplitKind kind;
    kind.capacity_bytes = std::max<int64_t>(0, usable - source.stored_bytes - kRoundingBytes);
    const RecomputePolicy policy = setting_.request.recompute;
    kind.allow_keep = question_.allow_keep && policy != RecomputePolicy::kFull;
    kind.allow_recompute = question_.allow_recompute && policy != RecomputePolicy::kNone;
    kind.in_flight = InFlight(duty);
    for (auto* table : {&kind.forward_seconds, &kind.backward_seconds, &kind.recompute_seconds}) table->assign(1, 0.0);
    source.keep = FindSlopes(duty);
    source.recompute = FindSlopes(DutyOf(setting_, question_, device, 0, true));
    kind.keep_terms = kind.recompute_terms = {{{0}, {0}}, {{0}, {0}}};
    sources_.push_back(source);
    problem_.kinds.push_back(std::move(kind));
  }
}

// Needs that grow ever faster (the turn at the head takes over) are the larger of two lines. Those that grow ever slower (offload
// leaves two microbatches) stay below the later slope through the highest of the points asked for.
void GroupTables::ExtendTerms(const KindSource& source, bool recompute, int64_t size, std::vector<MemoryTerm>* terms) const {
  const RankDuty duty = DutyOf(setting_, question_, source.device, 0, recompute);
  const Slopes& slopes = recompute ? source.recompute : source.keep;
  const bool faster = slopes.later > slopes.first, slower = slopes.later < slopes.first;
  if (!faster) terms->resize(1);
  for (int64_t m = static_cast<int64_t>((*terms)[0].each.size()); m <= size; ++m) {
    const auto intercept = [&](int64_t slope, int64_t count) {
      return Bytes(duty, count, m) - source.stored_bytes - count * slope * m;
    };
    const auto add = [&](int64_t slope, int64_t once, MemoryTerm* term) {
      term->each.push_back(slope * m);
      term->once.push_back(std::max(term->once.back(), once));
    };
    if (slower) {
      const int64_t few = std::max(intercept(slopes.later, 1), intercept(slopes.later, 2));
      add(slopes.later, std::max(few, intercept(slopes.later, kManyMicrobatches)), &(*terms)[0]);
      continue;
    }
    add(slopes.first, intercept(slopes.first, 1), &(*terms)[0]);
    if (faster) add(slopes.later, intercept(slopes.later, kManyMicrobatches), &(*terms)[1]);
  }
}

void GroupTables::Extend(size_t k, int64_t size) {
  SplitKind& kind = problem_.kinds[k];
  const KindSource& source = sources_[k];
  const Costs& costs = setting_.costs;
  const int device_kind = setting_.KindOf(source.device);
  const double layers = static_cast<double>(question_.layers);
  const auto push = [](double seconds, std::vector<double>* table) { table->push_back(std::max(table->back(), seconds)); };
  for (int64_t m = kind.largest_size() + 1; m <= size; ++m) {
    const double samples = static_cast<double>(m);
    double forward = layers * costs.ForwardSeconds(device_kind, UnitKind::kLayer, samples);
    double backward = layers * costs.BackwardSeconds(device_kind, UnitKind::kLayer, samples);
    for (const auto& [held, unit] :
         {std::pair{question_.embedding, UnitKind::kEmbedding}, std::pair{question_.head, UnitKind::kHead}}) {
      if (!held) continue;
      forward += costs.ForwardSeconds(device_kind, unit, samples);
      backward += costs.BackwardSeconds(device_kind, unit, samples);
    }
    const double again = layers * costs.RecomputeSeconds(device_kind, UnitKind::kLayer, OpSet::All(), samples);
    const double host = source.host_seconds_per_sample * samples;
    push(std::max({forward, forward_floor_, host}), &kind.forward_seconds);
    push(std::max({backward, backward_floor_, host}), &kind.backward_seconds);
    push(std::max({backward + again, backward_floor_, host}), &kind.recompute_seconds);
  }
  if (kind.allow_keep) ExtendTerms(source, false, size, &kind.keep_terms);
  if (kind.allow_recompute) ExtendTerms(source, true, size, &kind.recompute_terms);
  if (question_.powers_of_two) {
    kind.sizes.clear();
    for (int64_t m = 1; m <= size; m *= 2) kind.sizes.push_back(m);
  }
}

}  // namespace motley::planner
