#include "planner/costs/rank_bytes.h"

#include <algorithm>

#include "common/model/operators.h"
#include "common/model/pass_bytes.h"

namespace motley::planner {
namespace {

size_t PlaceOf(UnitKind unit) { return static_cast<size_t>(unit); }
int64_t Rounded(double bytes) { return static_cast<int64_t>(bytes + 0.5); }
// What is walked has whole samples.
int64_t WholeSamples(double samples) { return static_cast<int64_t>(samples + 0.5); }

// What was measured of a whole unit beside what is counted of it a slice has, too; where less was measured, as much less in
// proportion.
int64_t OfSlice(int64_t measured, int64_t own, int64_t whole) {
  if (measured >= whole) return measured + own - whole;
  return Rounded(static_cast<double>(measured) * static_cast<double>(own) / static_cast<double>(whole));
}

}  // namespace

RankBytes::RankBytes(const Costs& costs, int kind, const ModelSlice& slice)
    : costs_(costs),
      kind_(kind),
      whole_(slice.whole()),
      own_(ShapeOf(costs.workload().model, slice)),
      seq_len_(costs.workload().seq_len),
      dtype_(costs.workload().dtype) {
  ModelShape of_one_layer = own_;  // all have as many
  of_one_layer.num_layers = 1;
  for (const UnitSpec& unit : ParameterLayout(of_one_layer)) elements_[PlaceOf(unit.kind)] = unit.num_elements;
  for (const UnitKind unit : {UnitKind::kEmbedding, UnitKind::kLayer, UnitKind::kHead}) {
    if (!whole_) saved_[PlaceOf(unit)] = UnitOperators(own_, unit, 1, seq_len_, dtype_);
  }
}

int64_t RankBytes::Saved(UnitKind unit, OpSet recomputed, double samples) const {
  if (whole_ || recomputed.all() || samples <= 0) return costs_.SavedBytes(kind_, unit, recomputed, samples);
  double bytes = 0;
  for (const OpCost& cost : saved_[PlaceOf(unit)]) {
    if (!recomputed.Has(cost.op)) bytes += static_cast<double>(cost.output_bytes);
  }
  return Rounded(costs_.SavedFactor(kind_, unit) * bytes * samples);
}

int64_t RankBytes::Waiting(UnitKind unit, double samples) const {
  if (whole_ || unit != UnitKind::kLayer) return costs_.WaitingBytes(kind_, unit, samples);
  const auto of = [&](int64_t n) { return WaitingBytes(own_, unit, n, seq_len_, dtype_); };
  return Rounded(costs_.SavedFactor(kind_, unit) * samples * static_cast<double>(of(2) - of(1)));
}

int64_t RankBytes::Workspace(UnitKind unit, double samples) const {
  if (samples <= 0) return 0;
  const int64_t measured = costs_.WorkspaceBytes(kind_, unit, samples);
  if (whole_ || unit == UnitKind::kEmbedding) return measured;
  const auto of = [&](const ModelShape& shape, bool part) {
    const int64_t n = WholeSamples(samples);
    return unit == UnitKind::kLayer ? LayerBackwardBytes(shape, n, seq_len_, dtype_)
                                    : HeadBackwardBytes(shape, n, seq_len_, dtype_, part);
  };
  return OfSlice(measured, of(own_, true), of(costs_.workload().model, false));
}

int64_t RankBytes::LayerForwardWorkspace(double samples) const {
  return costs_.ForwardWorkspaceBytes(kind_, UnitKind::kLayer, samples);
}

// A whole backward frees what the weights' gradients read as it goes, the first half alone nothing of it.
int64_t RankBytes::BackwardInputWorkspace(UnitKind unit, double samples) const {
  const int64_t together = Workspace(unit, samples);
  if (unit != UnitKind::kLayer || samples <= 0) return unit == UnitKind::kEmbedding ? 0 : together;
  const int64_t half = LayerBackwardInputBytes(own_, WholeSamples(samples), seq_len_, dtype_);
  return std::max<int64_t>(0, together + half - LayerBackwardBytes(own_, WholeSamples(samples), seq_len_, dtype_));
}

int64_t RankBytes::BackwardWeightWorkspace(UnitKind unit, double samples) const {
  switch (unit) {
    case UnitKind::kEmbedding:
      return Workspace(unit, samples);
    case UnitKind::kLayer:
      return LayerBackwardWeightBytes(own_, WholeSamples(samples), seq_len_, dtype_);
    case UnitKind::kHead:
      break;  // an addition
  }
  return 0;
}

}  // namespace motley::planner
