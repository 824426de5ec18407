// All strategies on the same rows, priced by one simulator: as published, tuned by us, auto, and the lower bound. Then auto
// against the others alone: on the same rows with plans that the engine runs, and both ways on clusters drawn by a seed.
//
//   unify_bench [--data FOLDER] [--rows TEXT] [--only rows|runnable|drawn|budget|offload] [--drawn N] [--seed S] [--json FILE]
//
// FOLDER holds the published latencies (zorse/ and cephalo/model_latencies.json); without them every latency is estimated, and
// the head line says so. --rows keeps rows whose cluster or model contains TEXT. N clusters are drawn, 30 where it is not given.
// Only where they are asked for: `budget`, auto with ten times its search budget against auto, on the same rows, both ways; and
// `offload`, auto that may offload against auto that may not, on drawn clusters whose nodes all offer host memory, as jobs ask.
// Planning is in seconds of a processor, of all threads together.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/files.h"
#include "common/base/status_macros.h"
#include "planner/answers/plan_answer.h"
#include "planner/cluster/cluster_file.h"
#include "planner/strategies/catalog.h"
#include "tests/bench/bench_report.h"
#include "tests/bench/unify_drawn.h"
#include "tests/bench/unify_offload.h"
#include "tests/bench/unify_rows.h"

namespace motley::planner {
namespace {

using bench::Limit;
using bench::Report;

constexpr double kNever = 0;      // no plan fits
constexpr double kBeaten = 1e-3;  // less is no difference
constexpr int64_t kLargerBudget = 10;
constexpr int kDrawnForOffload = 20;

struct RowResult {
  std::string name;
  std::map<std::string, double> published, tuned;  // seconds by strategy, kNever where nothing fits
  double automatic = kNever, bound = 0, seconds_spent = 0;
  std::string origin;  // what auto says about its plan
};

std::unique_ptr<LatencyBook> ReadBook(const std::string& folder) {
  auto book = std::make_unique<LatencyBook>();
  for (const char* name : {"zorse", "cephalo"}) {
    const std::string path = absl::StrCat(folder, "/", name, "/model_latencies.json");
    const auto text = ReadSmallFile(path, int64_t{64} << 20);
    if (!text.ok()) {
      std::printf("no published latencies at %s: all latencies are estimated\n", path.c_str());
      return nullptr;
    }
    auto parsed = LatencyBook::Parse(*text, path);
    if (!parsed.ok()) {
      std::printf("%s\n", std::string(parsed.status().message()).c_str());
      return nullptr;
    }
    book->Merge(*std::move(parsed));
  }
  return book;
}

double StepSeconds(const Setting& setting, const CatalogEntry& entry, std::string* note) {
  const auto priced = PlanAndEvaluate(setting, entry);
  if (!priced.ok()) {
    if (priced.status().code() != absl::StatusCode::kResourceExhausted) {
      std::printf("  ! %s: %s\n", std::string(entry.name).c_str(), std::string(priced.status().message()).c_str());
    }
    return kNever;
  }
  for (const std::string& line : priced->plan.predicted.notes) {
    if (note != nullptr && absl::StartsWith(line, "found from")) *note = line;
  }
  return priced->plan.predicted.step_seconds;
}

struct Problem {
  std::string name;
  Cluster cluster;
  Workload workload;
  bool runnable = false;
};

absl::StatusOr<Problem> ProblemOf(absl::StatusOr<Cluster> cluster, const std::string& what, const std::string& model,
                                  int64_t batch, int64_t seq_len, const std::string& dtype, bool runnable) {
  MOTLEY_RETURN_IF_ERROR(cluster.status());
  MOTLEY_ASSIGN_OR_RETURN(Workload workload, LoadModel(model));
  workload.global_batch = batch;
  workload.seq_len = seq_len;
  MOTLEY_ASSIGN_OR_RETURN(workload.dtype, ParseDType(dtype));
  std::string name = absl::StrCat(what, " ", model, " B", batch, " S", seq_len, " ", dtype, runnable ? ", runnable" : "");
  return Problem{std::move(name), *std::move(cluster), std::move(workload), runnable};
}

absl::StatusOr<RowResult> Solve(const Problem& problem, const LatencyBook* book) {
  RowResult result;
  result.name = problem.name;
  const absl::Time start = absl::Now();
  for (const Fidelity fidelity : {Fidelity::kPublished, Fidelity::kTuned}) {
    PlanRequest request;
    request.fidelity = fidelity;
    request.runnable = problem.runnable;
    MOTLEY_ASSIGN_OR_RETURN(const auto setting, Setting::Create(problem.cluster, problem.workload, request, book));
    for (const CatalogEntry& entry : Catalog()) {
      const std::string name(entry.name);
      if (name == "auto") {
        if (fidelity == Fidelity::kTuned) result.automatic = StepSeconds(*setting, entry, &result.origin);
      } else {
        (fidelity == Fidelity::kPublished ? result.published : result.tuned)[name] = StepSeconds(*setting, entry, nullptr);
      }
    }
    result.bound = FindLowerBound(*setting).seconds;
  }
  result.seconds_spent = absl::ToDoubleSeconds(absl::Now() - start);
  return result;
}

double Best(const std::map<std::string, double>& seconds) {
  double best = kNever;
  for (const auto& [name, value] : seconds) {
    if (value > 0 && (best == kNever || value < best)) best = value;
  }
  return best;
}

std::string Text(double seconds) { return seconds > 0 ? absl::StrCat(std::round(seconds * 1000) / 1000) : std::string("-"); }

void PrintRow(const RowResult& row) {
  std::printf("%s\n ", row.name.c_str());
  for (const auto& [name, seconds] : row.published) {
    std::printf(" %s %s/%s", name.c_str(), Text(seconds).c_str(), Text(row.tuned.at(name)).c_str());
  }
  std::printf("\n  auto %s s, bound %s s (%.2f of it), %.2f x the best published; %s [%.1f s]\n", Text(row.automatic).c_str(),
              Text(row.bound).c_str(), row.automatic > 0 ? row.bound / row.automatic : 0,
              row.automatic > 0 ? Best(row.published) / row.automatic : 0, row.origin.c_str(), row.seconds_spent);
  std::fflush(stdout);
}

// Strategies that are faster than auto, or fit where it does not, each a line.
int PrintBeaten(const RowResult& row) {
  int beaten = 0;
  for (const auto& [fidelity, results] : {std::pair("published", &row.published), std::pair("tuned", &row.tuned)}) {
    for (const auto& [name, seconds] : *results) {
      if (seconds == kNever || (row.automatic > 0 && seconds >= row.automatic * (1 - kBeaten))) continue;
      std::printf("  BEATEN: %s %s %s s, auto %s s\n", name.c_str(), fidelity, Text(seconds).c_str(),
                  Text(row.automatic).c_str());
      ++beaten;
    }
  }
  std::fflush(stdout);
  return beaten > 0 ? 1 : 0;
}

struct Totals {
  int rows = 0, auto_alone = 0, auto_beaten = 0, none = 0, against = 0;
  double of_bound = 0, log_gain = 0, seconds = 0;
  std::vector<std::pair<double, std::string>> gains;  // over the best published
};

void Count(const RowResult& row, Totals* totals) {
  ++totals->rows;
  totals->seconds += row.seconds_spent;
  const double published = Best(row.published);
  totals->auto_beaten += PrintBeaten(row);
  if (row.automatic == kNever) {
    ++totals->none;
    return;
  }
  totals->of_bound += row.bound / row.automatic;
  if (published == kNever) {
    ++totals->auto_alone;
    return;
  }
  ++totals->against;
  totals->log_gain += std::log(published / row.automatic);
  totals->gains.emplace_back(published / row.automatic, row.name);
}

void Summarise(const Totals& totals, Report* report) {
  const int planned = std::max(1, totals.rows - totals.none);
  report->AddGoal("rows where auto is beaten", totals.auto_beaten, "1", 0);
  report->AddGoal("lower bound / auto, mean", totals.of_bound / planned, "1", 0.90, Limit::kAtLeast);
  report->AddGoal("best published / auto, geometric mean", totals.against > 0 ? std::exp(totals.log_gain / totals.against) : 0,
                  "1", 1.25, Limit::kAtLeast);
  report->Add("rows where no published strategy fits and auto does", totals.auto_alone, "1");
  report->Add("rows where nothing fits", totals.none, "1");
  report->AddGoal("time for all rows", totals.seconds, "s", 720);
}

class Bench {
 public:
  Bench(int argc, char** argv) : only_(Report::Flag(argc, argv, "--only")), kept_(Report::Flag(argc, argv, "--rows")) {
    const std::string data = Report::Flag(argc, argv, "--data");
    book_ = ReadBook(data.empty() ? "../shared/data" : data);
    if (!absl::SimpleAtoi(Report::Flag(argc, argv, "--drawn"), &drawn_)) drawn_ = only_ == "offload" ? kDrawnForOffload : 30;
    if (!absl::SimpleAtoi(Report::Flag(argc, argv, "--seed"), &seed_)) seed_ = 1;
  }

  absl::Status Run() {
    std::printf("seconds of a step as published/tuned; - = does not fit\n");
    if (IsAsked("rows")) MOTLEY_RETURN_IF_ERROR(Rows());
    if (IsAsked("runnable")) MOTLEY_RETURN_IF_ERROR(Runnable());
    if (IsAsked("drawn") && kept_.empty()) MOTLEY_RETURN_IF_ERROR(Drawn());
    if (only_ == "budget") {
      for (const bool runnable : {false, true}) MOTLEY_RETURN_IF_ERROR(LargerBudget(runnable));
    }
    if (only_ == "offload") MOTLEY_RETURN_IF_ERROR(Offload());
    return absl::OkStatus();
  }
  const Report& report() const { return report_; }

 private:
  bool IsAsked(const char* part) const { return only_.empty() || only_ == part; }

  absl::Status Add(const absl::StatusOr<Problem>& problem, Totals* totals, RowResult* result) {
    MOTLEY_RETURN_IF_ERROR(problem.status());
    MOTLEY_ASSIGN_OR_RETURN(*result, Solve(*problem, book_.get()));
    PrintRow(*result);
    Count(*result, totals);
    return absl::OkStatus();
  }

  bool IsKept(const UnifyRow& row) const {
    return kept_.empty() || absl::StrContains(row.cluster, kept_) || absl::StrContains(row.model, kept_);
  }
  static absl::StatusOr<Problem> ProblemOfRow(const UnifyRow& row, bool runnable) {
    return ProblemOf(LoadCluster(row.cluster), row.cluster, row.model, row.global_batch, row.seq_len, row.dtype, runnable);
  }

  // The fixed rows.
  absl::Status EachRow(bool runnable, Totals* totals, const std::function<void(const RowResult&)>& then) {
    for (const UnifyRow& row : UnifyRows()) {
      if (!IsKept(row)) continue;
      RowResult result;
      MOTLEY_RETURN_IF_ERROR(Add(ProblemOfRow(row, runnable), totals, &result));
      then(result);
    }
    return absl::OkStatus();
  }

  absl::Status Rows() {
    Totals totals;
    MOTLEY_RETURN_IF_ERROR(EachRow(false, &totals, [this](const RowResult& result) {
      report_.Add(absl::StrCat(result.name, ": auto"), result.automatic, "s");
      report_.Add(absl::StrCat(result.name, ": lower bound"), result.bound, "s");
      for (const auto& [name, seconds] : result.published)
        report_.Add(absl::StrCat(result.name, ": ", name, " as published"), seconds, "s");
      for (const auto& [name, seconds] : result.tuned) report_.Add(absl::StrCat(result.name, ": ", name, " tuned"), seconds, "s");
    }));
    Summarise(totals, &report_);
    std::sort(totals.gains.rbegin(), totals.gains.rend());
    for (size_t i = 0; i < std::min<size_t>(3, totals.gains.size()); ++i) {
      std::printf("gains most: %s, %.2f x\n", totals.gains[i].second.c_str(), totals.gains[i].first);
    }
    return absl::OkStatus();
  }

  absl::Status Runnable() {
    Totals totals;
    MOTLEY_RETURN_IF_ERROR(EachRow(true, &totals, [](const RowResult&) {}));
    AddAgainst("runnable rows", totals);
    return absl::OkStatus();
  }

  absl::Status Drawn() {
    RowDrawer drawer(seed_);
    Totals open, runnable;
    for (int i = 0; i < drawn_; ++i) {
      const DrawnRow row = drawer.Next();
      for (const bool runs : {false, true}) {
        RowResult result;
        MOTLEY_RETURN_IF_ERROR(Add(ProblemOf(ParseCluster(row.toml, "drawn"), absl::StrCat(i + 1, " of ", drawn_, ": ", row.what),
                                             row.model, row.global_batch, row.seq_len, row.dtype, runs),
                                   runs ? &runnable : &open, &result));
      }
    }
    AddAgainst("drawn clusters", open);
    AddAgainst("drawn clusters, runnable", runnable);
    return absl::OkStatus();
  }

  absl::Status LargerBudget(bool runnable) {
    int rows = 0, better = 0;
    double sum = 0, most = 0;
    for (const UnifyRow& row : UnifyRows()) {
      if (!IsKept(row)) continue;
      MOTLEY_ASSIGN_OR_RETURN(const Problem problem, ProblemOfRow(row, runnable));
      PlanRequest larger;
      larger.budget_nodes *= kLargerBudget;
      MOTLEY_ASSIGN_OR_RETURN(const AskedAuto as_asked, AskAuto(problem, {}));
      MOTLEY_ASSIGN_OR_RETURN(const AskedAuto with_more, AskAuto(problem, larger));
      if (as_asked.step_seconds == kNever) continue;
      const double slower = as_asked.step_seconds / with_more.step_seconds - 1;
      ++rows;
      better += slower > kBeaten;
      sum += slower;
      most = std::max(most, slower);
      std::printf("%s: auto %s s, with the larger budget %s s, %.2f %% slower\n", problem.name.c_str(),
                  Text(as_asked.step_seconds).c_str(), Text(with_more.step_seconds).c_str(), 100 * slower);
      std::fflush(stdout);
    }
    const std::string what = runnable ? "runnable rows" : "rows";
    report_.Add(absl::StrCat(what, ", ten times the budget"), rows, "1");
    report_.Add(absl::StrCat(what, " where it finds a faster plan"), better, "1");
    report_.Add(absl::StrCat(what, ", auto / with ten times the budget, mean"), rows > 0 ? 1 + sum / rows : 1, "1");
    report_.AddGoal(absl::StrCat(what, ", auto / with ten times the budget, worst"), 1 + most, "1", 1.005);
    return absl::OkStatus();
  }

  absl::StatusOr<AskedAuto> AskAuto(const Problem& problem, PlanRequest request) const {
    request.runnable = problem.runnable;
    MOTLEY_ASSIGN_OR_RETURN(const auto setting, Setting::Create(problem.cluster, problem.workload, request, book_.get()));
    MOTLEY_ASSIGN_OR_RETURN(const CatalogEntry entry, FindInCatalog("auto"));
    const std::clock_t start = std::clock();
    const double seconds = StepSeconds(*setting, entry, nullptr);
    return AskedAuto{seconds, static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC};
  }

  absl::Status Offload() {
    RowDrawer drawer(seed_, /*with_hosts=*/true);
    OffloadRatios ratios(kBeaten);
    for (int i = 0; i < drawn_; ++i) {
      const DrawnRow row = drawer.Next();
      MOTLEY_ASSIGN_OR_RETURN(const Problem problem,
                              ProblemOf(ParseCluster(row.toml, "drawn"), absl::StrCat(i + 1, " of ", drawn_, ": ", row.what),
                                        row.model, row.global_batch, row.seq_len, row.dtype, true));
      PlanRequest never;
      never.offload = OffloadKinds::None();
      MOTLEY_ASSIGN_OR_RETURN(const AskedAuto with, AskAuto(problem, {}));
      MOTLEY_ASSIGN_OR_RETURN(const AskedAuto without, AskAuto(problem, never));
      ratios.Add(with, without);
      std::printf("%s\n  auto %s s, without offload %s s; planned in %.2f and %.2f s, %.2f times as long\n", problem.name.c_str(),
                  Text(with.step_seconds).c_str(), Text(without.step_seconds).c_str(), with.planning_seconds,
                  without.planning_seconds, with.planning_seconds / without.planning_seconds);
      std::fflush(stdout);
    }
    ratios.AddTo(&report_);
    return absl::OkStatus();
  }

  void AddAgainst(const std::string& what, const Totals& totals) {
    report_.Add(what, totals.rows, "1");
    report_.Add(absl::StrCat(what, " where nothing fits"), totals.none, "1");
    report_.AddGoal(absl::StrCat(what, " where auto is beaten"), totals.auto_beaten, "1", 0);
    report_.Add(absl::StrCat("time for ", what), totals.seconds, "s");
  }

  const std::string only_, kept_;
  std::unique_ptr<LatencyBook> book_;
  int drawn_ = 0;
  uint64_t seed_ = 0;
  Report report_;
};

int Main(int argc, char** argv) {
  Bench unify(argc, argv);
  if (const absl::Status status = unify.Run(); !status.ok()) {
    std::printf("%s\n", std::string(status.message()).c_str());
    return 65;
  }
  Report summary;
  for (const bench::Row& row : unify.report().rows()) {
    if (row.goal || !absl::StrContains(row.name, ": ")) summary.AddRow(row);
  }
  summary.Print();
  if (const std::string path = Report::Flag(argc, argv, "--json"); !path.empty() && !unify.report().WriteJson(path)) {
    std::fprintf(stderr, "cannot write %s\n", path.c_str());
    return 73;
  }
  return 0;
}

}  // namespace
}  // namespace motley::planner

int main(int argc, char** argv) { return motley::planner::Main(argc, argv); }
