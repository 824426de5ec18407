// Does some part of a lab plan faster than the whole? auto on drawn labs, and on sets of their nodes, each asked as a user would:
// the same command with the other nodes excluded. docs/inside/strategies/auto.md, "A part never beats the whole".
//
//   parts_bench [--labs N] [--large N] [--seed S] [--only wholes] [--check yes] [--json FILE]
//
// N labs of 2 to 6 nodes (200 where it is not given) and N of 7 and 8 (40), for which there is no goal. A part whose lower bound
// is no better than the whole's answer needs no plan. Planning is in seconds of a processor, of all threads together: `--only
// wholes` plans no part, for the ratio of two builds. With `--check yes` each lab is a test. Where a lab is planned
// `--runnable`, its plan is priced without it, too.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "planner/answers/given_plan.h"
#include "planner/answers/plan_answer.h"
#include "planner/cluster/cluster_file.h"
#include "planner/strategies/catalog.h"
#include "tests/bench/bench_report.h"
#include "tests/bench/parts_drawn.h"

namespace motley::planner {
namespace {

using bench::Limit;
using bench::Report;

constexpr double kSame = 1.002;  // less is no difference
constexpr double kWorst = 1.01;  // in no lab more
constexpr double kNoPlan = INFINITY;

struct Answer {
  double seconds = kNoPlan, bound = 0, planning = 0;
  Plan plan;
};

absl::StatusOr<std::unique_ptr<Setting>> SettingOf(const DrawnLab& lab, uint32_t part, bool runnable) {
  MOTLEY_ASSIGN_OR_RETURN(const Cluster cluster, ParseCluster(lab.toml, "drawn"));
  MOTLEY_ASSIGN_OR_RETURN(Workload workload, LoadModel(lab.model));
  workload.global_batch = lab.global_batch;
  workload.seq_len = lab.seq_len;
  MOTLEY_ASSIGN_OR_RETURN(workload.dtype, ParseDType(lab.dtype));
  PlanRequest request;
  request.runnable = runnable;
  for (size_t n = 0; n < lab.nodes; ++n) {
    if ((part >> n & 1) == 0) request.exclude.push_back(absl::StrCat("n", n));
  }
  return Setting::Create(cluster, workload, request, nullptr);
}

// Of all threads.
double ProcessorSeconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

absl::StatusOr<Answer> Planned(const Setting& setting) {
  Answer answer;
  const double start = ProcessorSeconds();
  MOTLEY_ASSIGN_OR_RETURN(const CatalogEntry strategy, FindInCatalog("auto"));
  auto priced = PlanAndEvaluate(setting, strategy);
  answer.planning = ProcessorSeconds() - start;
  if (absl::IsResourceExhausted(priced.status())) return answer;
  MOTLEY_RETURN_IF_ERROR(priced.status());
  answer.seconds = priced->plan.predicted.step_seconds;
  answer.plan = std::move(priced->plan);
  return answer;
}

std::string NodesText(uint32_t part, size_t nodes) {
  std::string text;
  for (size_t n = 0; n < nodes; ++n) {
    if (part >> n & 1) absl::StrAppend(&text, text.empty() ? "" : ",", "n", n);
  }
  return text;
}

struct Totals {
  int labs = 0, planned = 0, same = 0, beaten = 0, parts = 0, open_faster = 0;
  double worst = 1, sum = 0, planning = 0, longest = 0;
  bool check = false;  // each lab is a test: "ok" or "FAIL" before its line
};

absl::Status AddLab(int number, const DrawnLab& lab, const std::vector<uint32_t>& parts, Totals* totals) {
  const uint32_t all = (uint32_t{1} << lab.nodes) - 1;
  MOTLEY_ASSIGN_OR_RETURN(const auto setting, SettingOf(lab, all, lab.runnable));
  MOTLEY_ASSIGN_OR_RETURN(const Answer whole, Planned(*setting));
  double best = kNoPlan, parts_planning = 0;
  uint32_t which = 0;
  int asked = 0;
  for (const uint32_t part : parts) {
    MOTLEY_ASSIGN_OR_RETURN(const auto rest, SettingOf(lab, part, lab.runnable));
    if (FindLowerBound(*rest).seconds >= whole.seconds) continue;
    ++asked;
    MOTLEY_ASSIGN_OR_RETURN(const Answer answer, Planned(*rest));
    parts_planning += answer.planning;
    if (answer.seconds < best) best = answer.seconds, which = part;
  }
  ++totals->labs;
  totals->parts += asked;
  totals->planning += whole.planning;
  totals->longest = std::max(totals->longest, whole.planning);
  std::string note;
  double ratio = 1;
  if (whole.seconds < kNoPlan) {
    ++totals->planned;
    ratio = std::max(1.0, whole.seconds / best);
  } else if (best < kNoPlan) {
    ++totals->planned;
    ratio = kNoPlan;
  }
  totals->same += ratio <= kSame ? 1 : 0;
  totals->beaten += ratio > kSame ? 1 : 0;
  totals->worst = std::max(totals->worst, ratio);
  totals->sum += ratio;
  if (ratio > kSame) note = absl::StrCat("  BEATEN by ", NodesText(which, lab.nodes), ": ", best, " s");
  if (lab.runnable && whole.seconds < kNoPlan && !parts.empty()) {
    MOTLEY_ASSIGN_OR_RETURN(const auto open, SettingOf(lab, all, false));
    MOTLEY_ASSIGN_OR_RETURN(const Answer open_plan, Planned(*open));
    MOTLEY_ASSIGN_OR_RETURN(const GivenPlan priced, PriceGivenPlan(*open, whole.plan));
    const double seconds = priced.evaluation.plan.predicted.step_seconds;
    if (seconds < open_plan.seconds * (1 - 1e-3)) {
      ++totals->open_faster;
      absl::StrAppend(&note, "  RUNNABLE is faster without the flag: ", seconds, " s, found ", open_plan.seconds, " s");
    }
  }
  if (totals->check) std::printf("%s parts of lab ", note.empty() ? "ok" : "FAIL");
  std::printf("%d: %s; %s B%lld S%lld %s%s: %.4g s, %d parts, planning %.2f s (parts %.2f s), ratio %.4f%s\n", number,
              lab.what.c_str(), lab.model.c_str(), static_cast<long long>(lab.global_batch), static_cast<long long>(lab.seq_len),
              lab.dtype.c_str(), lab.runnable ? " runnable" : "", whole.seconds, asked, whole.planning, parts_planning, ratio,
              note.c_str());
  std::fflush(stdout);
  return absl::OkStatus();
}

absl::Status AddLabs(LabDrawer* drawer, bool wholes, int count, size_t least, size_t most, Totals* totals) {
  for (int i = 0; i < count; ++i) {
    const DrawnLab lab = drawer->Next(least, most);
    const std::vector<uint32_t> parts = drawer->Parts(lab.nodes);
    MOTLEY_RETURN_IF_ERROR(AddLab(i + 1, lab, wholes ? std::vector<uint32_t>() : parts, totals));
  }
  return absl::OkStatus();
}

void Summarise(const std::string& what, bool goals, const Totals& totals, Report* report) {
  report->Add(what, totals.labs, "1");
  report->Add(absl::StrCat(what, " with a plan"), totals.planned, "1");
  report->Add(absl::StrCat(what, ": parts planned"), totals.parts, "1");
  report->Add(absl::StrCat(what, ": whole over best part, mean"), totals.labs > 0 ? totals.sum / totals.labs : 1, "1");
  report->Add(absl::StrCat(what, ": planning, mean"), totals.labs > 0 ? totals.planning / totals.labs : 0, "s");
  report->Add(absl::StrCat(what, ": planning, longest"), totals.longest, "s");
  if (goals) {
    report->AddGoal(absl::StrCat(what, ": whole over best part at most ", kSame), totals.same, "1", 0.99 * totals.labs,
                    Limit::kAtLeast);
    report->AddGoal(absl::StrCat(what, ": whole over best part, worst"), totals.worst, "1", kWorst);
  } else {
    report->Add(absl::StrCat(what, ": whole over best part at most ", kSame), totals.same, "1");
    report->Add(absl::StrCat(what, ": whole over best part, worst"), totals.worst, "1");
  }
  const std::string faster = absl::StrCat(what, ": a plan that runs is faster than the one found without the flag");
  if (goals) {
    report->AddGoal(faster, totals.open_faster, "1", 0);
  } else {
    report->Add(faster, totals.open_faster, "1");
  }
}

int Main(int argc, char** argv) {
  int labs = 200, large = 40;
  uint64_t seed = 1;
  const std::string labs_text = Report::Flag(argc, argv, "--labs"), large_text = Report::Flag(argc, argv, "--large");
  if (!labs_text.empty() && !absl::SimpleAtoi(labs_text, &labs)) return 64;
  if (!large_text.empty() && !absl::SimpleAtoi(large_text, &large)) return 64;
  if (const std::string text = Report::Flag(argc, argv, "--seed"); !text.empty() && !absl::SimpleAtoi(text, &seed)) return 64;
  const bool wholes = Report::Flag(argc, argv, "--only") == "wholes";
  LabDrawer drawer(seed);
  Totals small_labs, large_labs;
  small_labs.check = Report::Flag(argc, argv, "--check") == "yes";
  absl::Status status = AddLabs(&drawer, wholes, labs, 2, 6, &small_labs);
  if (status.ok()) status = AddLabs(&drawer, wholes, large, 7, 8, &large_labs);
  if (!status.ok()) {
    std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
    return 65;
  }
  Report report;
  Summarise("labs of 2 to 6 nodes", true, small_labs, &report);
  if (large > 0) Summarise("labs of 7 and 8 nodes", false, large_labs, &report);
  const int status_of_report = report.Finish(argc, argv);
  const bool fails = small_labs.beaten + small_labs.open_faster > 0;
  return small_labs.check && fails ? 1 : status_of_report;
}

}  // namespace
}  // namespace motley::planner

int main(int argc, char** argv) { return motley::planner::Main(argc, argv); }
