#include "planner/memory/program_bytes.h"

#include <vector>

#include "gtest/gtest.h"
#include "planner/memory/program_memory.h"
#include "tests/planner/costs/costs_fixture.h"

namespace motley::planner {
namespace {

constexpr int64_t kSeqLen = 64;

// An embedding, two layers and a head, and microbatches of two sizes.
Program ProgramOfSizes(const std::vector<int64_t>& samples) {
  Program program;
  program.num_units = 4;
  for (const int64_t count : samples) program.microbatches.push_back({.samples = count});
  return program;
}

// Whatever was asked before, an answer is that of the unit's kind, the microbatch's size and what is recomputed.
TEST(ProgramBytesTest, EveryPlaceHasItsOwnBytes) {
  const Costs costs = Costs::Create(ClusterOf({"L4"}), WorkloadOf("llama-7b", DType::kBFloat16, kSeqLen), nullptr).value();
  const Program program = ProgramOfSizes({3, 1, 3});
  for (const ModelSlice& slice : {ModelSlice{}, ModelSlice{0, 1, 4}}) {
    const RankBytes bytes(costs, 0, slice);
    ProgramBytes of(costs, 0, slice, program);
    for (const int round : {1, 2}) {
      SCOPED_TRACE(round);
      for (int32_t m = 0; m < 3; ++m) {
        const auto samples = static_cast<double>(program.microbatches[m].samples);
        EXPECT_EQ(of.Boundary(m), costs.BoundaryBytes(samples));
        EXPECT_EQ(of.Rows(m), costs.RowBytes(samples));
        EXPECT_EQ(of.LayerForwardWorkspace(m), bytes.LayerForwardWorkspace(samples));
        for (int32_t unit = 0; unit < program.num_units; ++unit) {
          const UnitKind kind = UnitKindOf(program, unit);
          for (const OpSet operators : {OpSet::None(), OpSet().With(Op::kNorm1), OpSet::All()}) {
            EXPECT_EQ(of.Saved(operators, unit, m), bytes.Saved(kind, operators, samples));
          }
          EXPECT_EQ(of.Workspace(unit, m), bytes.Workspace(kind, samples));
          EXPECT_EQ(of.Waiting(unit, m), bytes.Waiting(kind, samples));
          EXPECT_EQ(of.BackwardInputWorkspace(unit, m), bytes.BackwardInputWorkspace(kind, samples));
          EXPECT_EQ(of.BackwardWeightWorkspace(unit, m), bytes.BackwardWeightWorkspace(kind, samples));
        }
      }
    }
    EXPECT_EQ(of.Elements(UnitKind::kLayer), bytes.Elements(UnitKind::kLayer));
  }
}

}  // namespace
}  // namespace motley::planner
