// A setting whose cards were measured: passes as they were priced before, halves of backwards and a part of each unit beside
// them.
#pragma once

#include <memory>

#include "gtest/gtest.h"
#include "planner/costs/latency_book.h"
#include "planner/setting/setting.h"

namespace motley::planner {

// Seconds as parts of the whole pass's.
struct MeasuredPasses {
  double input = 0.7, weight = 0.4;  // of the backward
  double part = 0.25;                // of the unit; 0: none
  double forward_of_part = 0.4, backward_of_part = 0.35;
};

inline std::unique_ptr<Setting> Measured(const Setting& setting, const MeasuredPasses& passes) {
  MotleyProfile profile;
  profile.models["measured"] = setting.workload.model;
  for (size_t k = 0; k < setting.cluster.kinds.size(); ++k) {
    const auto series_of = [&](UnitKind unit) {
      MeasuredSeries series;
      for (const double samples : {1.0, 2.0, 4.0, 8.0, 16.0, 32.0}) {
        const double forward = setting.costs.EvaluationSeconds(static_cast<int>(k), unit, samples);
        const double backward = setting.costs.BackwardSeconds(static_cast<int>(k), unit, samples);
        series.samples.push_back(samples);
        series.forward_seconds.push_back(forward);
        series.backward_seconds.push_back(backward);
        series.backward_input_seconds.push_back(passes.input * backward);
        series.backward_weight_seconds.push_back(passes.weight * backward);
        if (passes.part <= 0) continue;
        series.part_forward_seconds.push_back(passes.forward_of_part * forward);
        series.part_backward_seconds.push_back(passes.backward_of_part * backward);
      }
      series.part = passes.part;
      return series;
    };
    MeasuredCard card;
    card.model = "measured";
    card.card = setting.cluster.kinds[k].name;
    card.seq_len = setting.workload.seq_len;
    card.dtype = setting.workload.dtype;
    card.layer = series_of(UnitKind::kLayer);
    card.embedding = series_of(UnitKind::kEmbedding);
    card.head = series_of(UnitKind::kHead);
    profile.cards.push_back(card);
  }
  const auto book = LatencyBook::Of(profile, "measured");
  EXPECT_TRUE(book.ok()) << book.status();
  auto measured = Setting::Create(setting.cluster, setting.workload, setting.request, &*book);
  EXPECT_TRUE(measured.ok()) << measured.status();
  EXPECT_FALSE((*measured)->costs.provenance(0).estimated);
  return *std::move(measured);
}

}  // namespace motley::planner
