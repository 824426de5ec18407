// What packed rows save on a host: attention of documents against that of a whole row, and a head of which a quarter is trained
// on against all of it. By CPU time of one thread, in turns, medians.
#pragma once

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <time.h>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tests/bench/bench_report.h"
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
      model.HeadForward(params, {}, input, targets, &saved, trained);
      model.HeadBackward(params, {}, saved, targets, 1.0 / kRow, grads, {}, trained);
    };
  };
  report->AddGoal("rows, head with a quarter of its tokens trained / all", RatioOfSeconds(both(at::arange(0, kRow, 4)), both({})),
                  "1", kMostOfHead);
}

inline void MeasureRows(const std::string&, bench::Report* report) {
  at::set_num_threads(1);
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  MeasureAttentionOfRows(report);
  MeasureHeadOfRows(report);
}

}  // namespace motley::engine
