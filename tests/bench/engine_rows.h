// What packed rows save on a host: attention of documents against that of a whole row, and a head of which a quarter is trained
// on against all of it. By CPU time of one thread, in turns, medians. Then steps against the planner's prediction, which is that
// of whole rows: of text, and of rows whose documents' lengths have a mean square of 0.45 of the whole.
#pragma once

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "common/data/sampling.h"
#include "tests/bench/bench_report.h"
#include "tests/bench/engine_job.h"
#include "tests/worker/engine/rows_folder.h"
#include "worker/engine/model/unit_model.h"
#include "worker/engine/operators/attention.h"

namespace motley::engine {

inline constexpr double kMostOfAttention = 0.4, kMostOfHead = 0.35;

inline double ThreadSeconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Of the first over that of the second.
inline double RatioOfSeconds(const std::function<void()>& first, const std::function<void()>& second) {
  constexpr int kTimes = 7;
  std::vector<double> ratios;
  for (int i = 0; i <= kTimes; ++i) {
    const double begin = ThreadSeconds();
    first();
    const double between = ThreadSeconds();
    second();
    if (i > 0) ratios.push_back((between - begin) / (ThreadSeconds() - between));  // the first warms up
  }
  std::nth_element(ratios.begin(), ratios.begin() + kTimes / 2, ratios.end());
  return ratios[kTimes / 2];
}

inline void MeasureAttentionOfRows(bench::Report* report) {
  constexpr int64_t kRow = 2048;
  constexpr HeadLayout kHeads{.heads = 8, .kv_heads = 8, .head_dim = 64};
  DocumentLengths lengths(14, 137);
  lengths.push_back(kRow - 14 * 137);
  const Borders borders = MakeBorders({lengths}, at::kCPU);
  const at::Tensor qkv = at::randn({1, kRow, kHeads.width()}), grad = at::randn({1, kRow, kHeads.heads * kHeads.head_dim});
  const auto both = [&](const Borders* of) {
    return [&, of] { AttentionBackward(grad, qkv, AttentionForward(qkv, kHeads, of), kHeads, of); };
  };
  report->AddGoal("rows, attention of 15 documents in 2048 / of a whole row", RatioOfSeconds(both(&borders), both(nullptr)), "1",
                  kMostOfAttention);
}

inline void MeasureHeadOfRows(bench::Report* report) {
  constexpr int64_t kRow = 2048;
  const ModelShape shape = {.family = ModelFamily::kLlama,
                            .vocab_size = 16384,
                            .hidden_size = 512,
                            .num_layers = 1,
                            .num_heads = 8,
                            .num_kv_heads = 8,
                            .head_dim = 64,
                            .intermediate_size = 1024,
                            .max_positions = kRow,
                            .tie_embeddings = false};
  UnitModel model(shape, kRow, DType::kFloat32);
  const int64_t elements = ParameterLayout(shape).back().num_elements;
  const UnitArray params = at::randn({elements}).mul_(0.05), grads = at::zeros({elements});
  const at::Tensor input = at::randn({1, kRow, shape.hidden_size}), targets = at::randint(shape.vocab_size, {1, kRow}, at::kLong);
  const auto both = [&](const at::Tensor& trained) {
    return [&, trained] {
      Saved saved;
      UnitModel::HeadKeep(input, saved);
      model.HeadBackward(params, {}, saved, targets, 1.0 / kRow, grads, {}, trained);
    };
  };
  report->AddGoal("rows, head with a quarter of its tokens trained / all", RatioOfSeconds(both(at::arange(0, kRow, 4)), both({})),
                  "1", kMostOfHead);
}

// ---- steps ----

inline constexpr double kMostOfPredicted = 0.05;  // from it, either way

// All of whose tokens are trained on. Squares of the lengths: 0.36, 0.07 and 0.02 of the row's.
inline void WriteRowsOfThree(const std::filesystem::path& folder, int64_t rows, int64_t seq_len) {
  std::vector<TinyRow> made(static_cast<size_t>(rows));
  uint64_t drawn = 4;
  for (TinyRow& row : made) {
    const int64_t first = seq_len * 60 / 100, second = seq_len * 27 / 100;
    for (const int64_t length : {first, second, seq_len - first - second}) {
      TinyDocument& document = row.emplace_back();
      for (int64_t i = 0; i < length; ++i) {
        document.tokens.push_back(static_cast<uint16_t>(Mix64(++drawn) % 256));
        document.trained.push_back(i > 0);
      }
    }
  }
  WriteRowsFolder(folder, seq_len, made);
}

// One device of the host with one thread, measured as a worker's is.
inline Planned PlannedOnHost(BenchJob& job) {
  DeviceDescription device;
  device.id = DeviceId("n0/cpu0");
  device.model = "cpu";
  job.devices = {device};
  RankAssignment alone;
  alone.job = JobId("bench");
  alone.epoch = Epoch(1);
  alone.model = job.model;
  alone.config = job.config;
  alone.devices = {device.id};
  alone.data_addresses = {"127.0.0.1"};
  alone.device = device;
  FakeKv kv;
  FakeHost host(kv);
  planner::PlannerInput input = DeclaredInput(job);
  input.compute = {OrDie(CreateEngine(host, {})->ProfileCompute(alone))};
  input.config.planner.strategy = "even";
  return {OrDie(planner::SettingOf(input)), OrDie(planner::MakePlan(input))};
}

// Of a whole row, attention is a sixth of the rest of a layer in FLOPs; of 1B parameters at 2,048 tokens a twelfth.
inline void MeasureStepsOfRows(const std::string& text, bench::Report* report) {
  constexpr int64_t kHidden = 512, kLayers = 4, kRow = 1024, kBatch = 4, kRows = 64;
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / ("engine_bench-rows-" + std::to_string(getpid()));
  WriteRowsOfThree(folder, kRows, kRow);
  BenchJob job = MakeJob(text, BenchModel(kHidden, kLayers, kRow), kBatch, /*steps=*/6);
  const Planned planned = PlannedOnHost(job);
  const double predicted = planned.result.plan.predicted.step_seconds, whole = Train(job, planned).step_seconds;
  job.config.data.path = folder.string();
  const double rows = Train(job, planned).step_seconds;
  std::filesystem::remove_all(folder);
  std::fprintf(stderr, "steps: predicted %.0f ms, of text %.0f ms, of rows %.0f ms\n", predicted * 1e3, whole * 1e3, rows * 1e3);
  report->AddGoal("rows, step of text: off the predicted", std::abs(whole / predicted - 1), "1", kMostOfPredicted);
  report->AddGoal("rows, step of documents of mean square 0.45: off the predicted", std::abs(rows / predicted - 1), "1",
                  kMostOfPredicted);
  report->Add("rows, step of documents of mean square 0.45 / of text", rows / whole, "1");
}

inline void MeasureRows(const std::string& text, bench::Report* report) {
  at::set_num_threads(1);
  {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    MeasureAttentionOfRows(report);
    MeasureHeadOfRows(report);
  }
  MeasureStepsOfRows(text, report);
}

}  // namespace motley::engine
