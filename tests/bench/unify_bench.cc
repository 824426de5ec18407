// All strategies on the same rows, priced by one simulator: as published, tuned by us, auto, and the lower bound.
//
//   unify_bench [--data FOLDER] [--rows TEXT] [--json FILE]
//
// FOLDER holds the published latencies (zorse/ and cephalo/model_latencies.json); without them every latency is estimated, and
// the head line says so. --rows keeps rows whose cluster or model contains TEXT.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/files.h"
#include "planner/answers/plan_answer.h"
#include "planner/cluster/cluster_file.h"
#include "planner/strategies/catalog.h"
#include "tests/bench/bench_report.h"
#include "tests/bench/unify_rows.h"

namespace motley::planner {
namespace {

using bench::Limit;
using bench::Report;

constexpr double kNever = 0;  // no plan fits

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

absl::StatusOr<RowResult> RunRow(const UnifyRow& row, const LatencyBook* book) {
  RowResult result;
  result.name = absl::StrCat(row.cluster, " ", row.model, " B", row.global_batch, " S", row.seq_len, " ", row.dtype);
  const absl::Time start = absl::Now();
  for (const Fidelity fidelity : {Fidelity::kPublished, Fidelity::kTuned}) {
    auto cluster = LoadCluster(row.cluster);
    if (!cluster.ok()) return cluster.status();
    auto workload = LoadModel(row.model);
    if (!workload.ok()) return workload.status();
    workload->global_batch = row.global_batch;
    workload->seq_len = row.seq_len;
    const auto dtype = ParseDType(row.dtype);
    if (!dtype.ok()) return dtype.status();
    workload->dtype = *dtype;
    PlanRequest request;
    request.fidelity = fidelity;
    const auto setting = Setting::Create(*std::move(cluster), *std::move(workload), request, book);
    if (!setting.ok()) return setting.status();
    for (const CatalogEntry& entry : Catalog()) {
      const std::string name(entry.name);
      if (name == "auto") {
        if (fidelity == Fidelity::kTuned) result.automatic = StepSeconds(**setting, entry, &result.origin);
      } else {
        (fidelity == Fidelity::kPublished ? result.published : result.tuned)[name] = StepSeconds(**setting, entry, nullptr);
      }
    }
    result.bound = FindLowerBound(**setting).seconds;
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

struct Totals {
  int rows = 0, auto_alone = 0, auto_beaten = 0, none = 0, against = 0;
  double of_bound = 0, log_gain = 0, seconds = 0;
  std::vector<std::pair<double, std::string>> gains;  // over the best published
};

void Count(const RowResult& row, Totals* totals) {
  ++totals->rows;
  totals->seconds += row.seconds_spent;
  const double published = Best(row.published), tuned = Best(row.tuned);
  if (row.automatic == kNever) {
    ++totals->none;
    totals->auto_beaten += published > 0 || tuned > 0;
    return;
  }
  totals->of_bound += row.bound / row.automatic;
  for (const double other : {published, tuned}) totals->auto_beaten += other > 0 && other < row.automatic * (1 - 1e-9);
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

int Main(int argc, char** argv) {
  const std::string data = Report::Flag(argc, argv, "--data"), only = Report::Flag(argc, argv, "--rows");
  const auto book = ReadBook(data.empty() ? "../shared/data" : data);
  std::printf("seconds of a step as published/tuned; - = does not fit\n");
  Report report;
  Totals totals;
  for (const UnifyRow& row : UnifyRows()) {
    if (!only.empty() && !absl::StrContains(row.cluster, only) && !absl::StrContains(row.model, only)) continue;
    const auto result = RunRow(row, book.get());
    if (!result.ok()) {
      std::printf("%s %s: %s\n", row.cluster, row.model, std::string(result.status().message()).c_str());
      return 65;
    }
    PrintRow(*result);
    Count(*result, &totals);
    report.Add(absl::StrCat(result->name, ": auto"), result->automatic, "s");
    report.Add(absl::StrCat(result->name, ": lower bound"), result->bound, "s");
    for (const auto& [name, seconds] : result->published)
      report.Add(absl::StrCat(result->name, ": ", name, " as published"), seconds, "s");
    for (const auto& [name, seconds] : result->tuned) report.Add(absl::StrCat(result->name, ": ", name, " tuned"), seconds, "s");
  }
  Summarise(totals, &report);
  std::sort(totals.gains.rbegin(), totals.gains.rend());
  for (size_t i = 0; i < std::min<size_t>(3, totals.gains.size()); ++i) {
    std::printf("gains most: %s, %.2f x\n", totals.gains[i].second.c_str(), totals.gains[i].first);
  }
  Report summary;
  for (const bench::Row& row : report.rows()) {
    if (row.goal || !absl::StrContains(row.name, ": ")) summary.AddRow(row);
  }
  summary.Print();
  if (const std::string path = Report::Flag(argc, argv, "--json"); !path.empty() && !report.WriteJson(path)) {
    std::fprintf(stderr, "cannot write %s\n", path.c_str());
    return 73;
  }
  return 0;
}

}  // namespace
}  // namespace motley::planner

int main(int argc, char** argv) { return motley::planner::Main(argc, argv); }
