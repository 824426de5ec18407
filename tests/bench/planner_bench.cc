// Time and peak memory of planning, by size: jobs' split and whole answer at batch 512, every offline strategy at 64
// devices, the exact split and `auto` on large clusters, the simulator alone, the writing of programs. Growth exponents are
// slopes of log time over log devices. Latencies are estimated from the data sheets, so that the bench needs no files.
//
//   planner_bench [--json F] [--only PART]     parts: live, strategies, large, growth, simulator, programs
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "planner/answers/plan_answer.h"
#include "planner/cluster/cluster_file.h"
#include "planner/live/planner.h"
#include "planner/pricing/evaluate.h"
#include "planner/setting/blank_plan.h"
#include "planner/setting/setting.h"
#include "planner/simulator/step_graph.h"
#include "planner/strategies/catalog.h"
#include "tests/bench/bench_report.h"
#include "tests/bench/measure_apart.h"
#include "tests/planner/cluster_fixture.h"
#include "tests/planner/scheduled.h"

namespace motley::planner {
namespace {

using bench::MeasureApart;
using bench::Measured;
using bench::Report;

constexpr double kNoGoal = 0;

std::string TextOf(const absl::Status& status) { return status.ok() ? "" : std::string(status.message()); }

// Rows of one measurement; where it did not work there is a row that says why instead.
void AddRows(const std::string& name, const Measured& measured, double goal_ms, Report* report) {
  if (!measured.error.empty()) {
    const std::string why = measured.error.substr(0, std::min<size_t>(measured.error.find('\n'), 160));
    if (goal_ms > 0) {
      report->AddGoal(absl::StrCat(name, " (", why, ")"), 0, "plans", 1, bench::Limit::kAtLeast);
    } else {
      report->Add(absl::StrCat(name, " (", why, ")"), 0, "plans");
    }
    return;
  }
  if (goal_ms > 0) {
    report->AddGoal(name, 1e3 * measured.seconds, "ms", goal_ms);
  } else {
    report->Add(name, 1e3 * measured.seconds, "ms");
  }
  report->Add(absl::StrCat(name, ", peak memory"), measured.peak_mib, "MiB");
}

// Slope of log y over log x by least squares.
double Exponent(const std::vector<std::pair<double, double>>& points) {
  double n = 0, sx = 0, sy = 0, sxx = 0, sxy = 0;
  for (const auto& [x, y] : points) {
    const double u = std::log(x), v = std::log(y);
    ++n;
    sx += u;
    sy += v;
    sxx += u * u;
    sxy += u * v;
  }
  return (n * sxy - sx * sy) / (n * sxx - sx * sx);
}

// ---- Jobs: measured profiles of their own devices. ----

ModelShape LiveModel() {
  ModelShape model = SmallModel(true, 24);
  model.hidden_size = 1024;
  model.num_heads = model.num_kv_heads = 16;
  model.head_dim = 64;
  model.intermediate_size = 4096;
  return model;
}

// Six kinds in turn. "distinct": no two devices measure alike. The fixture's samples are 32 tokens; `tokens` makes
// them as long in time.
PlannerInput LiveCluster(int devices, bool distinct, double memory, double tokens) {
  std::mt19937_64 random(1);
  const std::vector<DeviceSetup> kinds = {{"", "A6000", 38e12, int64_t{48} << 30},  {"", "L4", 30e12, int64_t{24} << 30},
                                          {"", "P40", 11.8e12, int64_t{24} << 30},  {"", "P100", 9.3e12, int64_t{16} << 30},
                                          {"", "V100", 15.7e12, int64_t{16} << 30}, {"", "T4", 8.1e12, int64_t{15} << 30}};
  std::vector<DeviceSetup> setups;
  for (int i = 0; i < devices; ++i) {
    DeviceSetup setup = kinds[static_cast<size_t>(i) % kinds.size()];
    setup.id = absl::StrCat("n", 100 + i, "/gpu0");
    setup.flops_per_second *= 32 / tokens;
    setup.memory_bytes = static_cast<int64_t>(memory * static_cast<double>(setup.memory_bytes));
    if (distinct) setup.flops_per_second *= std::uniform_real_distribution<double>(0.7, 1.3)(random);
    setups.push_back(setup);
  }
  return MakeInput(LiveModel(), setups, 512, 1e10, 1.15);
}

Measured MeasureSplit(const PlannerInput& input) {
  const auto job = SettingOf(input);
  if (!job.ok()) return {0, 0, TextOf(job.status())};
  return MeasureApart([&job] { return TextOf(PlanCephalo(*job->setting).status()); });
}
Measured MeasureWhole(const PlannerInput& input) {
  return MeasureApart([&input] { return TextOf(MakePlan(input).status()); }, 5);
}

void MeasureLive(Report* report) {
  struct Memory {
    const char* name;
    double part, per_device, tokens;
  };
  for (const bool distinct : {false, true}) {
    for (const Memory& memory :
         {Memory{"plenty", 1, 0, 1024}, Memory{"plenty, slow links", 1, 0, 32}, Memory{"tight", 0.055, 0.2, 1024}}) {
      std::vector<std::pair<double, double>> points;
      const std::string what = absl::StrCat(distinct ? "distinct" : "6 kinds", ", memory ", memory.name);
      for (const int devices : {8, 16, 32, 64}) {
        const PlannerInput input = LiveCluster(devices, distinct, memory.part + memory.per_device / devices, memory.tokens);
        const Measured split = MeasureSplit(input);
        AddRows(absl::StrCat("live split, ", devices, " devices, ", what), split, devices == 64 ? 10 : kNoGoal, report);
        points.emplace_back(devices, split.seconds);
      }
      report->Add(absl::StrCat("live split, growth exponent, ", what), Exponent(points), "1");
    }
  }
  for (const bool distinct : {false, true}) {
    const char* what = distinct ? "distinct" : "6 kinds";
    AddRows(absl::StrCat("live plan with reasons, 64 devices, ", what), MeasureWhole(LiveCluster(64, distinct, 1, 1024)), 150,
            report);
    AddRows(absl::StrCat("live plan again after losing one of 128, ", what), MeasureWhole(LiveCluster(127, distinct, 1, 1024)),
            100, report);
    for (const int devices : {8, 127}) {
      PlannerInput input = LiveCluster(devices, distinct, 1, 1024);
      input.config.planner.strategy = "auto";
      AddRows(absl::StrCat("live plan of auto, ", devices, " devices, ", what), MeasureWhole(input), devices == 8 ? 750 : 2500,
              report);
    }
  }
}

// ---- Offline: clusters and models by description. ----

// Nodes of 8 cards, as many of each kind.
std::string ClusterToml(const std::vector<std::string>& cards, int devices) {
  std::string toml = "name = \"bench\"\n[defaults]\nnic_gbit_per_second = 100\nhost_memory_gib = 512\n";
  for (size_t k = 0; k < cards.size(); ++k) {
    absl::StrAppend(&toml, "[[node]]\nname = \"k", k, "\"\ncount = ", devices / 8 / static_cast<int>(cards.size()),
                    "\ngpus = [{card = \"", cards[k], "\", count = 8}]\n");
  }
  return toml;
}
const std::vector<std::string> kTwoKinds = {"A100-40GB", "V100-16GB"};
const std::vector<std::string> kThreeKinds = {"A100-40GB", "V100-16GB", "RTX-3090"};
const std::vector<std::string> kEightKinds = {"A100-40GB", "V100-32GB", "A10G", "L4", "T4", "A6000", "RTX-3090", "RTX-4090"};

struct Job {
  std::string cluster;  // preset, or a file's text
  std::string model;
  int64_t batch = 512, seq_len = 512;
  std::string strategy;
};

absl::StatusOr<std::unique_ptr<Setting>> MakeSetting(const Job& job, const std::vector<std::string>& exclude = {}) {
  const bool is_text = job.cluster.find('\n') != std::string::npos;
  MOTLEY_ASSIGN_OR_RETURN(Cluster cluster, is_text ? ParseCluster(job.cluster, "bench") : LoadCluster(job.cluster));
  MOTLEY_ASSIGN_OR_RETURN(Workload workload, LoadModel(job.model));
  workload.global_batch = job.batch;
  workload.seq_len = job.seq_len;
  workload.dtype = DType::kFloat16;
  PlanRequest request;
  request.strategy = job.strategy;
  request.exclude = exclude;
  return Setting::Create(std::move(cluster), std::move(workload), std::move(request), nullptr);
}

// The strategy alone, on a setting that is there.
Measured MeasureStrategy(const Job& job) {
  const auto entry = FindInCatalog(job.strategy);
  const auto setting = MakeSetting(job);
  if (!entry.ok() || !setting.ok()) return {0, 0, TextOf(entry.ok() ? setting.status() : entry.status())};
  return MeasureApart([&] { return TextOf(entry->plan(**setting).status()); });
}
// What `motley plan` does: files, links, costs, strategy, simulation, ledger, lower bound.
Measured MeasureAnswer(const Job& job, const std::vector<std::string>& exclude = {}) {
  return MeasureApart([&]() -> std::string {
    const auto setting = MakeSetting(job, exclude);
    return TextOf(setting.ok() ? AnswerPlan(**setting).status() : setting.status());
  });
}
bool IsThere(std::string_view strategy) { return FindInCatalog(strategy).ok(); }

void MeasureStrategies(Report* report) {
  for (const CatalogEntry& entry : Catalog()) {
    const Job job = {"cephalo-b", "gpt-6.7b", 512, 512, std::string(entry.name)};
    AddRows(absl::StrCat(job.strategy, ", 64 devices, B = 512: search"), MeasureStrategy(job),
            entry.name == "cephalo" ? 10 : kNoGoal, report);
    AddRows(absl::StrCat(job.strategy, ", 64 devices, B = 512: whole answer"), MeasureAnswer(job), 1000, report);
  }
}

void MeasureLarge(Report* report) {
  if (IsThere("cephalo")) {
    AddRows("cephalo, 512 devices of 8 kinds, B = 4096: search",
            MeasureStrategy({ClusterToml(kEightKinds, 512), "gpt-6.7b", 4096, 512, "cephalo"}), 200, report);
  }
  if (!IsThere("auto")) return;
  AddRows("auto, 320 devices of 3 kinds: whole answer", MeasureAnswer({"hexiscale-320", "llama2-70b", 512, 4096, "auto"}), 1200,
          report);
  AddRows("auto, 512 devices of 2 kinds: whole answer",
          MeasureAnswer({ClusterToml(kTwoKinds, 512), "gpt-2.7b", 2048, 2048, "auto"}), 2000, report);
  AddRows("auto, 3 kinds x 256 devices: whole answer",
          MeasureAnswer({ClusterToml(kThreeKinds, 768), "gpt-2.7b", 2048, 2048, "auto"}), 5000, report);
  const Job job = {ClusterToml(kTwoKinds, 128), "gpt-6.7b", 512, 512, "auto"};
  AddRows("auto, 127 of 128 devices: whole answer", MeasureAnswer(job, {"k1-1/gpu0"}), kNoGoal, report);
}

void MeasureGrowth(Report* report) {
  for (const auto& [strategy, cards] : {std::pair{"cephalo", kEightKinds}, std::pair{"auto", kTwoKinds}}) {
    if (!IsThere(strategy)) continue;
    std::vector<std::pair<double, double>> seconds, memory;
    for (const int devices : {64, 128, 256, 512}) {
      const Job job = {ClusterToml(cards, devices), "gpt-6.7b", 8 * devices, 512, strategy};
      const Measured m = MeasureStrategy(job);
      const std::string size = absl::StrCat(devices, " devices of ", cards.size(), " kinds, B = ", job.batch);
      AddRows(absl::StrCat(strategy, ", growth, ", size, ": search"), m, kNoGoal, report);
      if (!m.error.empty()) continue;
      seconds.emplace_back(devices, m.seconds);
      memory.emplace_back(devices, m.peak_mib);
    }
    if (seconds.size() < 2) continue;
    report->Add(absl::StrCat(strategy, ", growth exponent of time, batch growing along"), Exponent(seconds), "1");
    report->Add(absl::StrCat(strategy, ", growth exponent of memory, batch growing along"), Exponent(memory), "1");
  }
}

// ---- The simulator. ----

// Every actor computes; `sends`: every fourth task of an actor goes to its neighbour instead, over two links.
StepGraph RingGraph(int actors, int tasks, bool sends) {
  StepGraph graph;
  graph.actors.resize(static_cast<size_t>(actors));
  graph.link_bytes_per_second.assign(2 * static_cast<size_t>(actors), 1e10);
  std::vector<int32_t> last(static_cast<size_t>(actors), -1);
  for (int32_t t = 0; t < tasks; ++t) {
    const int actor = t % actors, next = (actor + 1) % actors;
    Task task;
    for (const int other : {actor, (actor + actors - 1) % actors}) {
      if (last[other] >= 0) task.after.push_back(last[other]);
    }
    task.duration = 100'000'000 + t % 977 * 1000;
    task.lanes = {LaneIndex(actor, Lane::kCompute)};
    if (sends && t / actors % 4 == 3) {
      task.kind = TaskKind::kSend;
      task.lanes = {LaneIndex(actor, Lane::kSend)};
      task.duration = 1'000'000;
      task.loads = {{actor, 1e6}, {actors + next, 1e6}};
    }
    last[actor] = t;
    graph.tasks.push_back(std::move(task));
  }
  return graph;
}

void MeasureSimulator(Report* report) {
  for (const bool sends : {false, true}) {
    for (const int actors : {8, 512}) {
      const StepGraph graph = RingGraph(actors, 200'000, sends);
      AddRows(absl::StrCat("simulator, 200,000 tasks on ", actors, " actors", sends ? ", a quarter of them transfers" : ""),
              MeasureApart([&graph] { return TextOf(Run(graph).status()); }), 100, report);
    }
  }
}

// 8 ranks, 32 layers, 64 microbatches a rank: in so many stages of equal size.
Plan EightRanks(const Setting& setting, int stages) {
  constexpr int kRanks = 8, kMicrobatches = 64;
  const int wide = kRanks / stages;
  Plan plan = BlankPlan(setting, "bench", ScheduleFamily::k1F1B);
  plan.global_batch = int64_t{kMicrobatches} * wide;
  plan.dtype = setting.workload.dtype;
  PipelinePlan& pipeline = plan.pipelines.emplace_back();
  const int64_t layers = setting.workload.model.num_layers / stages;
  for (int s = 0; s < stages; ++s) {
    StagePlan& stage = pipeline.stages.emplace_back();
    stage.zero_stage = 3;
    stage.ministages = {{s * layers, (s + 1) * layers - 1}};
    for (int r = 0; r < wide; ++r) {
      RankPlan rank;
      rank.device = setting.cluster.devices[s * wide + r].id;
      rank.shard_ratio = 1.0 / wide;
      stage.units.push_back({{rank}, std::vector<int64_t>(kMicrobatches, 1)});
    }
  }
  return plan;
}

absl::Status Written(const Setting& setting, const Plan& plan) {
  MOTLEY_ASSIGN_OR_RETURN(const ResolvedPlan resolved, Resolve(setting, plan));
  return WritePrograms(setting, resolved).status();
}

void MeasurePrograms(Report* report) {
  const auto setting = MakeSetting({"cephalo-b", "llama-7b", 512, 512, "auto"});
  for (const int stages : {1, 2, 8}) {
    const std::string name = absl::StrCat("programs, 8 ranks in ", stages, " stages, 32 layers, 64 microbatches a rank");
    if (!setting.ok()) return AddRows(name, {0, 0, TextOf(setting.status())}, kNoGoal, report);
    const Plan plan = EightRanks(**setting, stages);
    AddRows(name, MeasureApart([&] { return TextOf(Written(**setting, plan)); }), 100, report);
    Setting own = **setting;
    own.workload.global_batch = plan.global_batch;
    AddRows(absl::StrCat("price in a search, of ", name), MeasureApart([&] { return TextOf(Evaluate(own, plan).status()); }),
            kNoGoal, report);
  }
}

}  // namespace
}  // namespace motley::planner

int main(int argc, char** argv) {
  motley::bench::Report report;
  const std::string only = motley::bench::Report::Flag(argc, argv, "--only");
  const std::pair<const char*, void (*)(motley::bench::Report*)> parts[] = {
      {"live", motley::planner::MeasureLive},           {"strategies", motley::planner::MeasureStrategies},
      {"large", motley::planner::MeasureLarge},         {"growth", motley::planner::MeasureGrowth},
      {"simulator", motley::planner::MeasureSimulator}, {"programs", motley::planner::MeasurePrograms}};
  bool any = false;
  for (const auto& [name, measure] : parts) {
    if (!only.empty() && only != name) continue;
    std::fprintf(stderr, "measuring: %s\n", name);
    measure(&report);
    any = true;
  }
  if (!any) {
    std::fprintf(stderr, "no part '%s'; there are live, strategies, large, growth, simulator, programs\n", only.c_str());
    return 64;
  }
  return report.Finish(argc, argv);
}
