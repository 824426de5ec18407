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
    //                                                                                                         the weights'
    //             op               divided  reads                  makes                       input reads                  reads          gradients
    LayerOperator{Op::kNorm1,      false, Of(kInput),             Of(kMean1, kRstd1, kNormed1), Of(kInput, kMean1, kRstd1),  kNone,         Of(kScale1, kShift1)},
    LayerOperator{Op::kQkv,        true,  Of(kNormed1),           Of(kHeads),                   kNone,                       Of(kNormed1),  Of(kHeads)},
    LayerOperator{Op::kRotary,     true,  Of(kHeads),             Of(kHeads),                   kNone,                       kNone,         kNone},
    LayerOperator{Op::kAttention,  true,  Of(kHeads),             Of(kAttended, kLogsumexp),    Of(kHeads, kAttended, kLogsumexp), kNone,   kNone},
    LayerOperator{Op::kAttnOut,    true,  Of(kAttended),          Of(kResidual),                kNone,                       Of(kAttended), Of(kResidual)},
    LayerOperator{Op::kResidual1,  false, Of(kInput, kResidual),  Of(kResidual),                kNone,                       kNone,         kNone},
    LayerOperator{Op::kNorm2,      false, Of(kResidual),          Of(kMean2, kRstd2, kNormed2), Of(kResidual, kMean2, kRstd2), kNone,       Of(kScale2, kShift2)},
    LayerOperator{Op::kUp,         true,  Of(kNormed2),           Of(kUp),                      kNone,                       Of(kNormed2),  Of(kUp)},
    LayerOperator{Op::kActivation, true,  Of(kUp),                Of(kActivated),               Of(kUp),                     kNone,         kNone},
    LayerOperator{Op::kDown,       true,  Of(kActivated),         Of(kOutput),                  kNone,                       Of(kActivated), Of(kOutput)},
    LayerOperator{Op::kResidual2,  false, Of(kResidual, kOutput), Of(kOutput),                  kNone,                       kNone,         kNone},
};
// clang-format on

// Those of a layer whose positions the embedding has added.
constexpr auto kWithoutRotary = [] {
  std::array<LayerOperator, kOperators.size() - 1> rows = {};
  std::copy_if(kOperators.begin(), kOperators.end(), rows.begin(),
               [](const LayerOperator& row) { return row.op != Op::kRotary; });
  return rows;
}();

template <typename Part>
constexpr ValueSet UnionOf(const Part& part) {
  ValueSet all;
  for (const LayerOperator& row : kOperators) all = all | part(row);
  return all;
}
constexpr ValueSet kKept = UnionOf([](const LayerOperator& row) { return row.input_reads | row.weight_reads; });
constexpr ValueSet kWaiting = UnionOf([](const LayerOperator& row) { return row.weight_reads; });
constexpr ValueSet kWaitingGradients = UnionOf([](const LayerOperator& row) { return row.weight_gradients; });

constexpr OpSet WritersOf(LayerValue value) {
  OpSet ops;
  for (const LayerOperator& row : kOperators) ops = row.makes.Has(value) ? ops.With(row.op) : ops;
  return ops;
}

}  // namespace

std::span<const LayerOperator> LayerOperatorsOf(const FamilyTraits& traits) {
  switch (traits.positions) {
    case PositionKind::kLearned:
      return kWithoutRotary;
    case PositionKind::kRotary:
      return kOperators;
  }
  std::abort();
}

ValueSet KeptValues() { return kKept; }

ValueSet MadeBy(OpSet operators) {
  ValueSet made;
  for (const LayerOperator& row : kOperators) {
    if (operators.Has(row.op)) made = made | row.makes.Without(row.reads);
  }
  return made & kKept;
}

OpSet RunAgainFor(OpSet operators) {
  if (operators.all()) return operators;
  OpSet again;
  MadeBy(operators).ForEach([&](LayerValue value) { again = again | WritersOf(value); });
  return again;
}

OpSet WithoutSums(OpSet operators) { return operators.Without(WritersOf(kResidual) | WritersOf(kOutput)); }

ValueSet WaitingValues() { return kWaiting; }
ValueSet WaitingGradients() { return kWaitingGradients; }

OpSet RecomputedWith(OpSet ops) {
  OpSet all = ops;
  for (const LayerOperator& row : kOperators) {
    if (!ops.Has(row.op)) continue;
    (row.makes & kKept).ForEach([&](LayerValue value) { all = all | WritersOf(value); });
  }
  return all;
}

bool IsDivided(LayerValue value) {
  switch (value) {
    case kHeads:
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
    case kResidual:
    case kMean2:
    case kRstd2:
    case kScale2:
    case kShift2:
    case kNormed2:
    case kOutput:
      return false;
  }
  std::abort();
}

}  // namespace motley
