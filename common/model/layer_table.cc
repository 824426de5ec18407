#include "common/model/layer_table.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>

namespace motley {
namespace {

using enum LayerValue;

constexpr ValueSet kNone;
constexpr auto Of = [](auto... values) { return ValueSet::Of(values...); };

// clang-format off
constexpr std::array kOperators = {
    //                            in                                                                                                            the weights'
    //             op             attention divided  reads            makes                                input reads                          reads          gradients
    LayerOperator{Op::kNorm1,      true,  false, Of(kInput),             Of(kMean1, kRstd1, kNormed1),        Of(kInput, kMean1, kRstd1),          kNone,         Of(kScale1, kShift1)},
    LayerOperator{Op::kQkv,        true,  true,  Of(kNormed1),           Of(kHeads),                          kNone,                               Of(kNormed1),  Of(kHeads)},
    LayerOperator{Op::kHeadNorm,   true,  true,  Of(kHeads),             Of(kHeads, kRawHeads, kHeadsRstd),    Of(kRawHeads, kHeadsRstd),            kNone,         Of(kHeadsScale)},
    LayerOperator{Op::kRotary,     true,  true,  Of(kHeads),             Of(kHeads),                          kNone,                               kNone,         kNone},
    LayerOperator{Op::kAttention,  true,  true,  Of(kHeads),             Of(kAttended, kLogsumexp),           Of(kHeads, kAttended, kLogsumexp),   kNone,         kNone},
    LayerOperator{Op::kAttnOut,    true,  true,  Of(kAttended),          Of(kResidual),                       kNone,                               Of(kAttended), Of(kResidual)},
    LayerOperator{Op::kResidual1,  true,  false, Of(kInput, kResidual),  Of(kResidual),                       kNone,                               kNone,         kNone},
    LayerOperator{Op::kNorm2,      false, false, Of(kResidual),          Of(kMean2, kRstd2, kNormed2),        Of(kResidual, kMean2, kRstd2),       kNone,         Of(kScale2, kShift2)},
    LayerOperator{Op::kUp,         false, true,  Of(kNormed2),           Of(kUp),                             kNone,                               Of(kNormed2),  Of(kUp)},
    LayerOperator{Op::kActivation, false, true,  Of(kUp),                Of(kActivated),                      Of(kUp),                             kNone,         kNone},
    LayerOperator{Op::kDown,       false, true,  Of(kActivated),         Of(kOutput),                         kNone,                               Of(kActivated), Of(kOutput)},
    LayerOperator{Op::kResidual2,  false, false, Of(kResidual, kOutput), Of(kOutput),                         kNone,                               kNone,         kNone},
};
// clang-format on

constexpr LayerOperator RowOf(Op op) {
  return *std::find_if(kOperators.begin(), kOperators.end(), [op](const LayerOperator& row) { return row.op == op; });
}

// Of layers whose norms come behind: attention and MLP read what is carried, and what they make is normalised before it is added.
constexpr auto kBehindOperators = [] {
  LayerOperator qkv = RowOf(Op::kQkv), out = RowOf(Op::kAttnOut), norm1 = RowOf(Op::kNorm1);
  LayerOperator up = RowOf(Op::kUp), down = RowOf(Op::kDown), norm2 = RowOf(Op::kNorm2);
  qkv.reads = qkv.weight_reads = Of(kInput);
  out.makes = out.weight_gradients = Of(kProjected1);
  norm1.reads = Of(kProjected1), norm1.makes = Of(kMean1, kRstd1, kResidual), norm1.input_reads = Of(kProjected1, kMean1, kRstd1);
  up.reads = up.weight_reads = Of(kResidual);
  down.makes = down.weight_gradients = Of(kProjected2);
  norm2.reads = Of(kProjected2), norm2.makes = Of(kMean2, kRstd2, kOutput), norm2.input_reads = Of(kProjected2, kMean2, kRstd2);
  return std::array{qkv,
                    RowOf(Op::kHeadNorm),
                    RowOf(Op::kRotary),
                    RowOf(Op::kAttention),
                    out,
                    norm1,
                    RowOf(Op::kResidual1),
                    up,
                    RowOf(Op::kActivation),
                    down,
                    norm2,
                    RowOf(Op::kResidual2)};
}();

// Of layers with norms before and behind: what attention and MLP make goes through one of its own before it is added.
constexpr auto kBothOperators = [] {
  LayerOperator out = RowOf(Op::kAttnOut), down = RowOf(Op::kDown);
  out.makes = out.weight_gradients = Of(kProjected1);
  down.makes = down.weight_gradients = Of(kProjected2);
  const auto behind = [](Op op, bool in_attention, LayerValue projected, LayerValue rstd, LayerValue scale, LayerValue made) {
    return LayerOperator{op, in_attention, false, Of(projected), Of(rstd, made), Of(projected, rstd), kNone, Of(scale)};
  };
  return std::array{RowOf(Op::kNorm1),
                    RowOf(Op::kQkv),
                    RowOf(Op::kHeadNorm),
                    RowOf(Op::kRotary),
                    RowOf(Op::kAttention),
                    out,
                    behind(Op::kBehind1, true, kProjected1, kBehindRstd1, kBehindScale1, kResidual),
                    RowOf(Op::kResidual1),
                    RowOf(Op::kNorm2),
                    RowOf(Op::kUp),
                    RowOf(Op::kActivation),
                    down,
                    behind(Op::kBehind2, false, kProjected2, kBehindRstd2, kBehindScale2, kOutput),
                    RowOf(Op::kResidual2)};
}();

template <const auto& kAll, typename Has>
constexpr size_t Count(const Has& has) {
  return static_cast<size_t>(std::count_if(kAll.begin(), kAll.end(), has));
}
// The rows that `has` picks.
template <const auto& kAll, typename Has>
constexpr auto Rows(const Has&) {
  constexpr Has kHas;
  std::array<LayerOperator, Count<kAll>(kHas)> rows = {};
  std::copy_if(kAll.begin(), kAll.end(), rows.begin(), kHas);
  return rows;
}
// A family's rows are those of the parts that its layers have.
template <const auto& kAll>
struct Tables {
  static constexpr auto kPlain =
      Rows<kAll>([](const LayerOperator& row) { return row.op != Op::kHeadNorm && row.op != Op::kRotary; });
  static constexpr auto kRotated = Rows<kAll>([](const LayerOperator& row) { return row.op != Op::kHeadNorm; });
  static constexpr auto kNormedHeads = Rows<kAll>([](const LayerOperator& row) { return row.op != Op::kRotary; });
  static std::span<const LayerOperator> Of(bool normed_heads, bool rotated) {
    if (normed_heads) return rotated ? std::span<const LayerOperator>(kAll) : kNormedHeads;
    return rotated ? std::span<const LayerOperator>(kRotated) : kPlain;
  }
};

constexpr auto kLayerOps = [] {
  std::array<Op, kBothOperators.size()> ops = {};
  std::transform(kBothOperators.begin(), kBothOperators.end(), ops.begin(), [](const LayerOperator& row) { return row.op; });
  return ops;
}();

template <typename Rows, typename Part>
constexpr ValueSet UnionOf(const Rows& rows, const Part& part) {
  ValueSet all;
  for (const LayerOperator& row : rows) all = all | part(row);
  return all;
}
constexpr auto kKeptOf = [](const LayerOperator& row) { return row.input_reads | row.weight_reads; };
constexpr ValueSet kKept = UnionOf(kOperators, kKeptOf) | UnionOf(kBehindOperators, kKeptOf) | UnionOf(kBothOperators, kKeptOf);

OpSet WritersOf(LayerValue value, std::span<const LayerOperator> rows) {
  OpSet ops;
  for (const LayerOperator& row : rows) ops = row.makes.Has(value) ? ops.With(row.op) : ops;
  return ops;
}

}  // namespace

std::span<const LayerOperator> LayerOperatorsOf(const FamilyTraits& traits, bool rotary) {
  const bool normed_heads = traits.head_norm != HeadNorm::kNone, rotated = rotary && traits.positions == PositionKind::kRotary;
  switch (traits.norm_places) {
    case NormPlaces::kBefore:
      return Tables<kOperators>::Of(normed_heads, rotated);
    case NormPlaces::kBehind:
      return Tables<kBehindOperators>::Of(normed_heads, rotated);
    case NormPlaces::kBoth:
      return Tables<kBothOperators>::Of(normed_heads, rotated);
  }
  std::abort();
}

bool InAttention(Op op) {
  return std::any_of(kBothOperators.begin(), kBothOperators.end(),
                     [op](const LayerOperator& row) { return row.op == op && row.in_attention; });
}

std::span<const Op> AllLayerOps() { return kLayerOps; }

ValueSet KeptValues() { return kKept; }

ValueSet MadeBy(OpSet operators, const FamilyTraits& traits) {
  ValueSet made;
  for (const LayerOperator& row : LayerOperatorsOf(traits)) {
    if (operators.Has(row.op)) made = made | row.makes.Without(row.reads);
  }
  return made & kKept;
}

OpSet RunAgainFor(OpSet operators, const FamilyTraits& traits) {
  if (operators.all()) return operators;
  const std::span<const LayerOperator> rows = LayerOperatorsOf(traits);
  OpSet again;
  MadeBy(operators, traits).ForEach([&](LayerValue value) { again = again | WritersOf(value, rows); });
  for (OpSet before; before != again;) {
    before = again;
    for (const LayerOperator& row : rows) {
      if (!before.Has(row.op)) continue;
      (row.reads & row.makes).ForEach([&](LayerValue value) { again = again | WritersOf(value, rows); });
    }
  }
  return again;
}

OpSet WithoutSums(OpSet operators, const FamilyTraits& traits) {
  const std::span<const LayerOperator> rows = LayerOperatorsOf(traits);
  return operators.Without(WritersOf(kResidual, rows) | WritersOf(kOutput, rows));
}

ValueSet WaitingValues(std::span<const LayerOperator> rows) {
  return UnionOf(rows, [](const LayerOperator& row) { return row.weight_reads; });
}
ValueSet WaitingGradients(std::span<const LayerOperator> rows) {
  return UnionOf(rows, [](const LayerOperator& row) { return row.weight_gradients; });
}

OpSet RecomputedWith(OpSet ops, const FamilyTraits& traits) {
  const std::span<const LayerOperator> rows = LayerOperatorsOf(traits);
  OpSet all = ops;
  for (const LayerOperator& row : rows) {
    if (!ops.Has(row.op)) continue;
    (row.makes & kKept).ForEach([&](LayerValue value) { all = all | WritersOf(value, rows); });
  }
  return all;
}

bool IsDivided(LayerValue value) {
  switch (value) {
    case kHeads:
    case kRawHeads:
    case kHeadsRstd:
    case kLogsumexp:
    case kAttended:
    case kUp:
    case kActivated:
      return true;
    case kInput:
    case kMean1:
    case kRstd1:
    case kScale1:
    case kShift1:
    case kNormed1:
    case kHeadsScale:
    case kProjected1:
    case kBehindRstd1:
    case kBehindScale1:
    case kResidual:
    case kMean2:
    case kRstd2:
    case kScale2:
    case kShift2:
    case kNormed2:
    case kProjected2:
    case kBehindRstd2:
    case kBehindScale2:
    case kOutput:
      return false;
  }
  std::abort();
}

}  // namespace motley
