// Two pipelines' gathers of parameters and sums of gradients where a step waits for links, against the links' bound: what the
// busiest link must carry for all rings that cross it, over its rate. Programs and declared rates say that, and no simulation.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/model/parameters.h"
#include "tests/bench/bench_report.h"
#include "tests/bench/engine_overhead.h"
#include "tests/bench/engine_replicas.h"

namespace motley::engine {

inline constexpr double kMostOverSums = 1.05;

// Seconds that the busiest link needs for all of the programs' `Collective`s, each in a ring of its group whose members own even
// parts: every hop carries all of an array but one part.
template <typename Collective>
double LinksBound(const BenchJob& job, const Planned& planned) {
  const std::vector<Program>& programs = planned.result.programs;
  const std::vector<UnitSpec> layout = ParameterLayout(job.model);
  const std::vector<RankAssignment> ranks = AssignmentsOf(job, planned, programs);
  std::map<std::string, double> seconds;  // by link and direction
  const auto carry = [&](int32_t from, int32_t to, double bytes) {
    const DeviceDescription &sender = ranks[from].device, &receiver = ranks[to].device;
    seconds[absl::StrCat(sender.id.value(), " out")] += bytes / sender.link_bytes_per_second;
    seconds[absl::StrCat(receiver.id.value(), " in")] += bytes / receiver.link_bytes_per_second;
    if (NodeOf(sender.id) == NodeOf(receiver.id)) return;
    seconds[absl::StrCat(NodeOf(sender.id).value(), " out")] += bytes / sender.node_link_bytes_per_second;
    seconds[absl::StrCat(NodeOf(receiver.id).value(), " in")] += bytes / receiver.node_link_bytes_per_second;
  };
  // A rank sends what its own instructions say to the next in the ring: so each hop is counted once.
  for (const Program& program : programs) {
    for (const Instruction& instruction : program.instructions) {
      const auto* op = std::get_if<Collective>(&instruction.op);
      if (op == nullptr) continue;
      const std::vector<int32_t>& ring = program.groups[op->group];
      const auto own = static_cast<size_t>(std::find(ring.begin(), ring.end(), program.rank) - ring.begin());
      const int64_t elements = op->elements.whole() ? layout[op->unit].num_elements : op->elements.count;
      const auto members = static_cast<double>(ring.size());
      carry(program.rank, ring[(own + 1) % ring.size()], 4 * static_cast<double>(elements) * (members - 1) / members);
    }
  }
  double bound = 0;
  for (const auto& [link, needed] : seconds) bound = std::max(bound, needed);
  return bound;
}

// Of the rank that has most.
template <typename Collective>
int64_t MostOfARank(const Planned& planned) {
  int64_t most = 0;
  for (const Program& program : planned.result.programs) {
    const auto is_one = [](const Instruction& i) { return std::holds_alternative<Collective>(i.op); };
    most = std::max<int64_t>(most, std::count_if(program.instructions.begin(), program.instructions.end(), is_one));
  }
  return most;
}

// From when all members have come to the first of them until the last has ended; median of the steps.
inline double SecondsOfAll(planner::TaskKind kind, const std::vector<planner::MeasuredStep>& steps) {
  std::vector<double> seconds;
  for (const planner::MeasuredStep& step : steps) {
    planner::Picoseconds begin = step.measured.end, end = 0;
    for (size_t t = 0; t < step.graph.tasks.size(); ++t) {
      if (step.graph.tasks[t].kind != kind) continue;
      begin = std::min(begin, step.measured.spans[t].begin);
      end = std::max(end, step.measured.spans[t].end);
    }
    seconds.push_back(planner::ToSeconds(end - begin));
  }
  return Median(seconds);
}

struct SumsCase {
  std::string name;
  std::vector<int> nodes;  // devices of each
  std::vector<Replica> replicas;
  double last_rate = 1;  // of the last node's links, as a multiple of the others'
  absl::Duration latency;
  double inside = 1;  // rate of links inside a node, as a multiple of those between them
};

// Compute is so fast that each layer is through its backward while the one behind it is summed.
inline BenchJob LinkBoundJob(const std::string& text, const SumsCase& c) {
  constexpr double kFlops = 4e9, kLinks = 4e6;
  BenchJob job = MakeJob(text, BenchModel(/*hidden=*/128, /*layers=*/6, /*seq_len=*/4), /*global_batch=*/4, /*steps=*/4);
  for (size_t n = 0; n < c.nodes.size(); ++n) {
    const double rate = n + 1 < c.nodes.size() ? kLinks : c.last_rate * kLinks;
    for (int d = 0; d < c.nodes[n]; ++d) {
      DeviceDescription& device = job.devices.emplace_back(EmulatedDevice(absl::StrCat("n", n, "/gpu", d), kFlops, rate));
      device.link_latency = c.latency;
      device.link_bytes_per_second = c.inside * device.node_link_bytes_per_second;
    }
  }
  return job;
}

inline void MeasureCase(const std::string& text, const SumsCase& c, bench::Report* report) {
  const BenchJob job = LinkBoundJob(text, c);
  const Planned planned = PlannedReplicas(job, c.replicas);
  const double simulated = planned.result.plan.predicted.step_seconds;
  const Trained trained = Train(job, planned);
  const std::vector<planner::MeasuredStep> steps = MeasuredSteps(planned, trained);
  const auto row = [&](const std::string& what, double seconds, double bound) {
    std::fprintf(stderr, "sums, %s: %s %.1f ms, bound %.1f ms\n", c.name.c_str(), what.c_str(), seconds * 1e3, bound * 1e3);
    const std::string name = absl::StrCat("sums, ", c.name, ": ", what, " / links' bound");
    if (c.latency > absl::ZeroDuration()) return report->Add(name, seconds / bound, "1");  // which knows rates alone
    report->AddGoal(name, seconds / bound, "1", kMostOverSums);
  };
  row("gathers", SecondsOfAll(planner::TaskKind::kGather, steps), LinksBound<Gather>(job, planned));
  row("sums", SecondsOfAll(planner::TaskKind::kReduceScatter, steps), LinksBound<ReduceScatter>(job, planned));
  std::fprintf(stderr, "sums, %s: step %.1f ms, simulated %.1f ms, %lld sums on a rank, host late by %.2f %%\n", c.name.c_str(),
               trained.step_seconds * 1e3, simulated * 1e3, static_cast<long long>(MostOfARank<ReduceScatter>(planned)),
               trained.lateness * 100);
  report->AddGoal("sums, " + c.name + ": step / simulated", trained.step_seconds / simulated, "1", kMostOverhead);
}

inline void MeasureSums(const std::string& text, bench::Report* report) {
  const std::vector<int64_t> two = {1, 1}, three = {1, 1, 1};
  const auto device = [](int d, const std::vector<int64_t>& microbatches) { return Replica{{{0, 5}, {d}, microbatches}}; };
  const auto stages = [&](int first, int64_t layers) {
    return Replica{{{0, layers - 1}, {first}, two}, {{layers, 5}, {first + 1}, two}};
  };
  const Replica unit = {{{0, 5}, {0, 1}, three}};
  const auto shards = [](int first, int zero_stage) { return Replica{{{0, 5}, {first, first + 1}, {1}, zero_stage}}; };
  const absl::Duration latency = absl::Milliseconds(10);
  for (const SumsCase& c : std::vector<SumsCase>{
           {"a device each", {1, 1}, {device(0, two), device(1, two)}},
           {"two stages each", {1, 1, 1, 1}, {stages(0, 3), stages(2, 3)}},
           {"two stages each, a pipeline a node", {2, 2}, {stages(0, 3), stages(2, 3)}},
           {"two stages and one", {1, 1, 1}, {stages(0, 3), device(2, {2})}},
           {"two stages cut behind 3 layers and behind 1", {1, 1, 1, 1}, {stages(0, 3), stages(2, 1)}},
           {"two stages cut behind 3 layers and behind 4", {1, 1, 1, 1}, {stages(0, 3), stages(2, 4)}},
           {"a unit of two and a device", {2, 1}, {unit, device(2, {1})}},
           {"two stages and one with links twice as fast", {1, 1, 1}, {stages(0, 3), device(2, {2})}, 2},
           {"two nodes that share out gradients inside", {2, 2}, {shards(0, 2), shards(2, 2)}, 1, {}, 10},
           {"two nodes that share out all inside", {2, 2}, {shards(0, 3), shards(2, 3)}, 1, {}, 10},
           {"a node that shares out all inside and a device", {2, 1}, {shards(0, 3), device(2, two)}, 1, {}, 10},
           {"a device each, links of 10 ms", {1, 1}, {device(0, two), device(1, two)}, 1, latency},
           {"a unit of two and a device, links of 10 ms", {2, 1}, {unit, device(2, {1})}, 1, latency},
       })
    MeasureCase(text, c, report);
}

}  // namespace motley::engine
