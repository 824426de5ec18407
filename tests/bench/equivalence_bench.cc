// Random plans against one device of the same engine: every step's loss and gradient norm, and every array of every checkpoint.
// Ranks are threads, their lanes are delayed at random. Ends with 1 where a plan does not train like one device.
// Then the memory of the ranks of other random plans, of wide models, against the planner's prediction.
//   equivalence_bench [--json F] [--plans N] [--from N] [--units one|wide|pipelines] [--offload] [--memory N] [--text F]
//   [--seed S] [--references DIR | --planned DIR]
//     --plans       default 300; a third of a second each
//     --from        number of the first of --plans, default 0; --plans 1 prints it, to look at one again
//     --units       of both: wide: tensor-parallel ones of two to four ranks, in half of the stages; default one
//     --offload     of both: what waits in host memory drawn by rank, units stepped in turn, every other job without clipping
//     --memory      plans whose memory is measured, default 100
//     --text        a line for each rank whose memory is measured
//     --seed        of plans and delays, default 2
//     --references  instead: writes for each job what the one device computed, for tests/oracle/check_states.py
//     --planned     instead: writes for --plans on packed rows what their ranks computed in --steps (default 20), for
//                   tests/oracle/check_row_plans.py
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tests/bench/bench_report.h"
#include "tests/bench/equivalence_memory.h"
#include "tests/worker/engine/equivalence/equivalence.h"
#include "tests/worker/engine/equivalence/reference_files.h"
#include "tests/worker/engine/equivalence/shrink.h"

namespace motley::engine {
namespace {

constexpr absl::Duration kBetweenLines = absl::Seconds(5);

// What --units draws.
struct Drawing {
  const char* name;
  DrawJob draw, offloading;
  UnitWidths widths;  // of the plans whose memory is looked at
  int64_t pipelines;
};
constexpr Drawing kDrawings[] = {
    {"one", DrawPlannedJob, DrawOffloading<DrawPlannedJob>, UnitWidths::kOne, 1},
    {"wide", DrawTensorParallelJob, DrawOffloading<DrawTensorParallelJob>, UnitWidths::kUpToFour, 1},
    {"pipelines", DrawSeveralPipelinesJob, DrawOffloading<DrawSeveralPipelinesJob>, UnitWidths::kUpToFour, 3}};

// nullptr: there is none. Without a name the first.
const Drawing* FindDrawing(const std::string& name) {
  if (name.empty()) return &kDrawings[0];
  for (const Drawing& drawing : kDrawings) {
    if (name == drawing.name) return &drawing;
  }
  return nullptr;
}

// A line now and then: how far it is and how long it will take.
class Progress {
 public:
  explicit Progress(int64_t plans) : plans_(plans) {}
  void Done(int64_t done, int64_t failed) {
    const absl::Time now = absl::Now();
    if (done < plans_ && now - last_ < kBetweenLines) return;
    last_ = now;
    const absl::Duration left = (now - begin_) / done * (plans_ - done);
    std::fprintf(stderr, "%lld of %lld plans, %lld failed, about %.0f s left\n", static_cast<long long>(done),
                 static_cast<long long>(plans_), static_cast<long long>(failed), absl::ToDoubleSeconds(left));
  }
  double seconds() const { return absl::ToDoubleSeconds(absl::Now() - begin_); }

 private:
  const int64_t plans_;
  const absl::Time begin_ = absl::Now();
  absl::Time last_ = begin_;
};

void Explain(const PlannedJob& planned, uint64_t seed, const std::string& complaint, Equivalence& equivalence) {
  std::fprintf(stderr, "%s\n%s\n", complaint.c_str(), ToText(planned).c_str());
  const PlannedJob smallest = Shrink(planned, [&](const PlannedJob& p) { return !equivalence.Complaint(p, seed).empty(); });
  std::fprintf(stderr, "the smallest like it: %s\n%s\n", equivalence.Complaint(smallest, seed).c_str(), ToText(smallest).c_str());
}

void MeasureTraining(int64_t from, int64_t plans, DrawJob draw, uint64_t seed, const std::filesystem::path& folder,
                     bench::Report* report, int64_t* failed) {
  Equivalence equivalence;
  Progress progress(plans);
  std::map<std::string, Differences> worst;  // by dtype
  std::map<std::string, int64_t> count, offloading;
  for (int64_t n = from; n < from + plans; ++n) {
    const PlannedJob planned = draw(seed, n, folder, /*half=*/false);
    if (plans == 1) std::fprintf(stderr, "plan %lld: %s\n", static_cast<long long>(n), ToText(planned).c_str());
    const uint64_t delays = seed + static_cast<uint64_t>(n);
    const std::string& dtype = planned.job.config.training.dtype;
    ++count[dtype];
    for (const std::string& word : OffloadWords(planned.plan)) ++offloading[word];
    const absl::StatusOr<Differences> found = equivalence.Run(planned, delays);
    const std::string complaint = found.ok() ? Complaint(*found, LimitsOf(planned.plan.dtype)) : found.status().ToString();
    if (found.ok()) worst[dtype].curve.Take(found->curve.relative, absl::StrCat(found->curve.where, ", plan ", n));
    if (found.ok()) worst[dtype].memory.Take(found->memory.relative, absl::StrCat(found->memory.where, ", plan ", n));
    if (found.ok()) worst[dtype].state.Take(found->state.relative, absl::StrCat(found->state.where, ", plan ", n));
    if (!complaint.empty()) {
      ++*failed;
      Explain(planned, delays, absl::StrCat("plan ", n, ": ", complaint), equivalence);
    }
    progress.Done(n + 1 - from, *failed);
  }
  for (const auto& [dtype, differences] : worst) {
    const Limits limits = LimitsOf(*ParseDType(dtype));
    report->Add(dtype + ": plans", static_cast<double>(count[dtype]), "1");
    report->AddGoal(dtype + ": loss and gradient norm, worst", differences.curve.relative, "1", limits.curve);
    report->AddGoal(dtype + ": arrays of the checkpoints, worst", differences.state.relative, "1", limits.state);
    report->AddGoal(dtype + ": peak bytes of a rank, worst", differences.memory.relative, "1", limits.memory);
    std::fprintf(stderr, "%s: worst are %s, %s and %s\n", dtype.c_str(), differences.curve.where.c_str(),
                 differences.state.where.c_str(), differences.memory.where.c_str());
  }
  for (const auto& [word, count] : offloading) report->Add("plans with offload: " + word, static_cast<double>(count), "1");
  report->AddGoal("plans that do not train like one device", static_cast<double>(*failed), "1", 0);
  report->Add("seconds a plan", progress.seconds() / static_cast<double>(plans), "s");
}

void MeasureMemory(int64_t plans, const Drawing& drawing, bool offload, uint64_t seed, const std::filesystem::path& folder,
                   std::FILE* text, bench::Report* report, int64_t* failed) {
  MemoryBench memory(
      [&](int64_t n) {
        PlannedJob planned = DrawWideJob(seed, n, folder, drawing.widths, drawing.pipelines);
        return offload ? WithDrawnOffload(std::move(planned), seed + static_cast<uint64_t>(n)) : planned;
      },
      text);
  Progress progress(plans);
  for (int64_t n = 0; n < plans; ++n) {
    if (const absl::Status status = memory.Measure(n); !status.ok()) {
      ++*failed;
      std::fprintf(stderr, "plan %lld: %s\n", static_cast<long long>(n), status.ToString().c_str());
    }
    progress.Done(n + 1, *failed);
  }
  memory.AddTo(report, offload);
}

}  // namespace
}  // namespace motley::engine

int main(int argc, char** argv) {
  using motley::bench::Report;
  const std::string plans = Report::Flag(argc, argv, "--plans"), seed = Report::Flag(argc, argv, "--seed");
  const std::string references = Report::Flag(argc, argv, "--references");
  const std::string planned = Report::Flag(argc, argv, "--planned"), steps = Report::Flag(argc, argv, "--steps");
  const std::string memory = Report::Flag(argc, argv, "--memory"), text = Report::Flag(argc, argv, "--text");
  const std::string units = Report::Flag(argc, argv, "--units");
  const std::string first = Report::Flag(argc, argv, "--from");
  const int64_t from = first.empty() ? 0 : std::atoll(first.c_str());
  const int64_t count = plans.empty() ? 300 : std::atoll(plans.c_str());
  const int64_t of_memory = memory.empty() ? 100 : std::atoll(memory.c_str());
  if (count < 0 || from < 0 || of_memory < 0 || count + of_memory == 0) {
    std::fprintf(stderr, "--plans, --from and --memory must be numbers, --plans or --memory at least 1\n");
    return 64;
  }
  const motley::engine::Drawing* const drawing = motley::engine::FindDrawing(units);
  if (drawing == nullptr) {
    std::fprintf(stderr, "--units must be one, wide or pipelines\n");
    return 64;
  }
  const bool offload = std::any_of(argv, argv + argc, [](const char* word) { return std::strcmp(word, "--offload") == 0; });
  const motley::engine::DrawJob draw = offload ? drawing->offloading : drawing->draw;
  const uint64_t drawn = seed.empty() ? 2 : std::strtoull(seed.c_str(), nullptr, 10);
  if (!references.empty() || !planned.empty()) {
    const int64_t taken = steps.empty() ? 20 : std::atoll(steps.c_str());
    const absl::Status written = planned.empty() ? motley::engine::WriteReferences(references)
                                                 : motley::engine::WritePlanned(planned, drawn, count, taken);
    if (!written.ok()) std::fprintf(stderr, "equivalence_bench: %s\n", written.ToString().c_str());
    return written.ok() ? 0 : 1;
  }
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / ("equivalence_bench-" + std::to_string(getpid()));
  motley::engine::WriteTinyText(folder);
  int64_t failed = 0;
  Report report;
  if (count > 0) motley::engine::MeasureTraining(from, count, draw, drawn, folder, &report, &failed);
  std::FILE* const lines = text.empty() ? nullptr : std::fopen(text.c_str(), "w");
  if (of_memory > 0) motley::engine::MeasureMemory(of_memory, *drawing, offload, drawn, folder, lines, &report, &failed);
  if (lines != nullptr) std::fclose(lines);
  std::filesystem::remove_all(folder);
  const int rc = report.Finish(argc, argv);
  return failed > 0 || report.missed() > 0 ? 1 : rc;
}
