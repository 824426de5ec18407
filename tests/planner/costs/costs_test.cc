#include "planner/costs/costs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/planner/costs/costs_fixture.h"

namespace motley::planner {
namespace {

using testing::HasSubstr;

constexpr std::array kUnits = {UnitKind::kEmbedding, UnitKind::kLayer, UnitKind::kHead};

Costs MakeCosts(const std::string& model, DType dtype, int64_t seq_len = 512, const LatencyBook* book = nullptr) {
  return Costs::Create(ClusterOf({"L4", "A6000", "P40"}), WorkloadOf(model, dtype, seq_len), book).value();
}

TEST(Costs, NothingCostsNothing) {
  const Costs costs = MakeCosts("gpt-2.7b", DType::kFloat32);
  for (const UnitKind unit : kUnits) {
    EXPECT_EQ(costs.ForwardSeconds(0, unit, 0), 0);
    EXPECT_EQ(costs.BackwardSeconds(0, unit, 0), 0);
    EXPECT_EQ(costs.SavedBytes(0, unit, OpSet::None(), 0), 0);
    EXPECT_EQ(costs.WorkspaceBytes(0, unit, 0), 0);
  }
}

TEST(Costs, SecondsRiseWithSamplesAndShare) {
  const Costs costs = MakeCosts("llama-7b", DType::kFloat16);
  for (int kind = 0; kind < costs.num_kinds(); ++kind) {
    for (const UnitKind unit : kUnits) {
      for (double samples = 1; samples < 300; samples += 7) {
        EXPECT_LE(costs.ForwardSeconds(kind, unit, samples), costs.ForwardSeconds(kind, unit, samples + 7));
        EXPECT_LE(costs.ForwardSeconds(kind, unit, samples, 0.25), costs.ForwardSeconds(kind, unit, samples, 0.5));
        EXPECT_LE(costs.BackwardSeconds(kind, unit, samples, 0.5), costs.BackwardSeconds(kind, unit, samples, 1));
      }
    }
  }
}

TEST(Costs, ShareDividesProductsAndNotNorms) {
  const Costs costs = MakeCosts("llama-7b", DType::kFloat16);
  const double whole = costs.ForwardSeconds(0, UnitKind::kLayer, 8), half = costs.ForwardSeconds(0, UnitKind::kLayer, 8, 0.5);
  EXPECT_GT(half, whole / 2);
  EXPECT_LT(half, 0.65 * whole);
  EXPECT_EQ(costs.ForwardSeconds(0, UnitKind::kEmbedding, 8, 0.5), costs.ForwardSeconds(0, UnitKind::kEmbedding, 8));
}

TEST(Costs, OperatorsAddUpToTheLayer) {
  const Costs costs = MakeCosts("gpt-2.7b", DType::kFloat32);
  for (int kind = 0; kind < costs.num_kinds(); ++kind) {
    double parts = 0, seconds = 0, bytes = 0;
    for (const Costs::OperatorCost& cost : costs.Operators(kind)) {
      parts += cost.forward_part;
      bytes += cost.saved_bytes_per_sample;
      // Pairs that must run together are counted with their first.
      if (cost.op != Op::kRotary && cost.op != Op::kResidual1)
        seconds += costs.RecomputeSeconds(kind, UnitKind::kLayer, OpSet::None().With(cost.op), 4);
    }
    EXPECT_NEAR(parts, 1, 1e-12);
    EXPECT_NEAR(seconds, costs.ForwardSeconds(kind, UnitKind::kLayer, 4), 1e-9);
    EXPECT_EQ(costs.RecomputeSeconds(kind, UnitKind::kLayer, OpSet::All(), 4), costs.ForwardSeconds(kind, UnitKind::kLayer, 4));
    EXPECT_NEAR(bytes, static_cast<double>(costs.SavedBytes(0, UnitKind::kLayer, OpSet::None(), 1)), 1);
  }
  EXPECT_EQ(costs.RecomputeSeconds(0, UnitKind::kLayer, OpSet::None(), 4), 0);
}

// The operator table is what the engine allocates by; here bytes belong to another operator, the sum is the same.
TEST(Costs, SavedBytesAreTheOperatorTables) {
  for (const std::string model : {"gpt-2.7b", "llama-7b", "llama3-8b"}) {
    for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
      const Costs costs = MakeCosts(model, dtype);
      const ModelShape& shape = costs.workload().model;
      EXPECT_EQ(costs.SavedBytes(0, UnitKind::kLayer, OpSet::None(), 3) + costs.BoundaryBytes(3),
                SavedBytes(shape, UnitKind::kLayer, 3, 512, dtype))
          << model;
      EXPECT_EQ(costs.SavedBytes(0, UnitKind::kLayer, OpSet::All(), 3), 0);
    }
  }
}

TEST(Costs, RecomputingAnOperatorFreesItsOutput) {
  const Costs costs = MakeCosts("llama-7b", DType::kBFloat16);
  const int64_t all = costs.SavedBytes(0, UnitKind::kLayer, OpSet::None(), 2);
  const int64_t tokens = 2 * 512;
  EXPECT_EQ(all - costs.SavedBytes(0, UnitKind::kLayer, OpSet::None().With(Op::kActivation), 2), tokens * 11008 * 2);
  EXPECT_EQ(all - costs.SavedBytes(0, UnitKind::kLayer, OpSet::None().With(Op::kUp), 2), tokens * 2 * 11008 * 2);
  EXPECT_EQ(all - costs.SavedBytes(0, UnitKind::kLayer, OpSet::None().With(Op::kQkv), 2), tokens * 3 * 4096 * 2);
  // A share divides what the share computes; the norms' outputs and the residual's are whole on every rank.
  const int64_t half = costs.SavedBytes(0, UnitKind::kLayer, OpSet::None(), 2, 0.5);
  EXPECT_GT(half, all / 2);
  EXPECT_NEAR(static_cast<double>(2 * half - all), static_cast<double>(tokens * (3 * 4096 * 2 + 2 * 4)), 64);
}

TEST(Costs, StateBytesByDType) {
  EXPECT_EQ(MakeCosts("llama-7b", DType::kFloat32).StateBytesPerElement(), 16);
  EXPECT_EQ(MakeCosts("llama-7b", DType::kFloat16).StateBytesPerElement(), 16);
  EXPECT_EQ(MakeCosts("llama-7b", DType::kFloat64).StateBytesPerElement(), 32);
}

TEST(Costs, AnotherOptimizersStateIsAsAskedAndTheEnginesIsAdamW) {
  Workload workload = *LoadModel("llama-7b");
  workload.global_batch = workload.seq_len = 128;
  workload.dtype = DType::kBFloat16;
  workload.state_bytes_per_parameter = 6;
  Costs costs = *Costs::Create(ClusterOf({"A6000"}), workload, nullptr);
  EXPECT_EQ(costs.StateBytesPerElement(), 6);
  EXPECT_EQ(costs.optimizer_bytes_per_element(), 2) << "beside 2 of the parameter and 2 of its gradient";
  costs.KeepStateAs(StateKeeping::kEngine);
  EXPECT_EQ(costs.StateBytesPerElement(), 16);
  for (const auto& [dtype, bytes] :
       {std::pair{DType::kBFloat16, int64_t{3}}, std::pair{DType::kFloat32, int64_t{6}}, std::pair{DType::kFloat32, int64_t{-1}},
        std::pair{DType::kFloat32, int64_t{1'000'000'000}}}) {
    workload.dtype = dtype;
    workload.state_bytes_per_parameter = bytes;
    const absl::Status status = Validate(workload);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << bytes;
    EXPECT_NE(std::string(status.message()).find(dtype == DType::kFloat32 ? "must be 8 to 64 in float32" : "must be 4 to 64"),
              std::string::npos)
        << status;
  }
}

// Whatever waits, both together are all of it; of half types the engine has a cast beside it on the host.
TEST(Costs, StateIsOnTheDeviceOrInHostMemory) {
  for (const StateKeeping keeping : {StateKeeping::kPapers, StateKeeping::kEngine}) {
    for (const DType dtype : {DType::kFloat16, DType::kFloat32, DType::kFloat64}) {
      Costs costs = MakeCosts("llama-7b", dtype);
      costs.KeepStateAs(keeping);
      for (int k = 0; k < 8; ++k) {
        const OffloadKinds kinds = {.parameters = (k & 1) != 0, .gradients = (k & 2) != 0, .optimizer = (k & 4) != 0};
        const HostState away = costs.InHost(kinds, 100);
        const OwnedBytes here = costs.OnDevice(kinds, 100);
        const int64_t beside = keeping == StateKeeping::kEngine ? away.cast : 0;
        EXPECT_EQ(away.total() - beside + here.parameters + here.gradients + here.optimizer, 100 * costs.StateBytesPerElement());
        if (kinds == OffloadKinds{.parameters = true, .gradients = true, .optimizer = true}) {
          EXPECT_EQ(here.parameters + here.gradients + here.optimizer, 0);
        }
      }
    }
  }
  Costs half = MakeCosts("llama-7b", DType::kFloat16);
  EXPECT_EQ(half.OnDevice({.optimizer = true}, 100).optimizer, 0) << "as papers keep it the master copy goes with the moments";
  EXPECT_EQ(half.InHost({.parameters = true}, 100).StepNeeds(), 0);
  EXPECT_EQ(half.InHost({.parameters = true}, 100).StepMakes(), 2 * 100);
  half.KeepStateAs(StateKeeping::kEngine);
  EXPECT_EQ(half.OnDevice({.optimizer = true}, 100).optimizer, 4 * 100);
  EXPECT_EQ(half.OnDevice({.parameters = true}, 100).optimizer, 8 * 100);
  EXPECT_EQ(half.InHost({.parameters = true}, 100).total(), (4 + 2) * 100);
}

TEST(Costs, ElementsAreTheLayouts) {
  const Costs costs = MakeCosts("gpt2-1.5b", DType::kFloat32);
  EXPECT_EQ(costs.TotalElements(), NumParameters(costs.workload().model));
  EXPECT_EQ(costs.UnitElements(UnitKind::kHead), 2 * 1600);  // tied: the norm alone
}

// 6 FLOPs a parameter and token, the square of causal attention, and a head that is a product too.
TEST(Costs, FlopsAreThoseOfTheLiterature) {
  const Costs costs = MakeCosts("llama-7b", DType::kFloat16, 2048);
  const double tokens = 2048, h = 4096, layers = 32, parameters = 6607077376.0;  // without the embedding's table
  const double model = tokens * (6 * parameters + 6 * layers * tokens * h);
  EXPECT_NEAR(costs.ModelFlops(1) / model, 1, 0.001);
  const double head = 6 * tokens * 32000 * h;
  const double hardware = tokens * 8 * (parameters - 32000 * h) + tokens * 16 * layers * tokens * h + head;
  EXPECT_NEAR(costs.PublishedFlops(1) / hardware, 1, 0.001);
}

TEST(Costs, EncodersAttendInFull) {
  const Costs causal = MakeCosts("gpt-2.7b", DType::kFloat32);
  Workload workload = causal.workload();
  workload.causal = false;
  const Costs full = Costs::Create(ClusterOf({"L4"}), workload, nullptr).value();
  EXPECT_GT(full.ModelFlops(1), causal.ModelFlops(1));
  EXPECT_EQ(full.PublishedFlops(1), causal.PublishedFlops(1));
}

TEST(Costs, HeadIsPricedAtTheLayersEfficiency) {
  const auto measured = [](const char* series) {
    return LatencyBook::Parse(
               std::string("{\"deepspeedllama_7b\": {\"l4\": {\"512\": {\"float32\": [[1, 0], [2, 0], ") + series + "]}}}}", "f")
        .value();
  };
  const LatencyBook slow = measured("[40, 80, 120], [80, 160, 240]"), fast = measured("[20, 40, 60], [40, 80, 120]");
  const Costs one = MakeCosts("llama-7b", DType::kFloat32, 512, &slow), two = MakeCosts("llama-7b", DType::kFloat32, 512, &fast);
  EXPECT_NEAR(one.EvaluationSeconds(0, UnitKind::kHead, 2) / two.EvaluationSeconds(0, UnitKind::kHead, 2), 2, 0.01);
  EXPECT_NEAR(one.BackwardSeconds(0, UnitKind::kHead, 2) / two.BackwardSeconds(0, UnitKind::kHead, 2), 2, 0.01);
  EXPECT_FALSE(one.provenance(0).estimated);
  EXPECT_TRUE(one.provenance(1).estimated);
}

// Its backward makes the logits once; a part's ranks make them forward, for the exchange, and an evaluation nothing else.
TEST(Costs, AStepsForwardOfAWholeHeadIsFree) {
  const Costs costs = MakeCosts("llama-7b", DType::kFloat32);
  constexpr UnitKind kHead = UnitKind::kHead;
  for (int kind = 0; kind < costs.num_kinds(); ++kind) {
    EXPECT_EQ(costs.ForwardSeconds(kind, kHead, 4), 0);
    EXPECT_EQ(costs.RecomputeSeconds(kind, kHead, OpSet::All(), 4), 0);
    EXPECT_EQ(costs.SavedBytes(kind, kHead, OpSet::None(), 4), 0) << "beside its input";
    EXPECT_GT(costs.ForwardSeconds(kind, kHead, 4, 0.5), 0);
    EXPECT_EQ(costs.ForwardSeconds(kind, kHead, 4, 0.5), costs.EvaluationSeconds(kind, kHead, 4, 0.5));
    EXPECT_GT(costs.SavedBytes(kind, kHead, OpSet::None(), 4, 0.5), 0);
    EXPECT_NEAR(costs.BackwardSeconds(kind, kHead, 4) / costs.EvaluationSeconds(kind, kHead, 4), 3, 0.3);
    for (const UnitKind unit : {UnitKind::kEmbedding, UnitKind::kLayer}) {
      EXPECT_EQ(costs.ForwardSeconds(kind, unit, 4), costs.EvaluationSeconds(kind, unit, 4));
    }
  }
}

// An L4 with a layer's halves and quarter.
Costs MeasuredCosts() {
  const auto book = LatencyBook::Parse(
      R"({"motley_profile": 4, "layers": [{"model": "llama-7b", "card": "L4", "dtype": "float16", "seq_len": 512,
          "samples": [1, 2, 4], "forward_seconds": [0.011, 0.021, 0.041], "backward_seconds": [0.022, 0.042, 0.082],
          "backward_input_seconds": [0.014, 0.025, 0.047], "backward_weight_seconds": [0.01, 0.02, 0.04],
          "part": 0.25, "part_forward_seconds": [0.005, 0.008, 0.014], "part_backward_seconds": [0.008, 0.014, 0.026]}]})",
      "f");
  EXPECT_TRUE(book.ok()) << book.status();
  return MakeCosts("llama-7b", DType::kFloat16, 512, &*book);
}

TEST(Costs, HalvesAndAPartAreAsMeasured) {
  const Costs costs = MeasuredCosts();
  constexpr UnitKind kLayer = UnitKind::kLayer;
  EXPECT_DOUBLE_EQ(costs.BackwardInputSeconds(0, kLayer, 2), 0.025);
  EXPECT_DOUBLE_EQ(costs.BackwardWeightSeconds(0, kLayer, 4), 0.04);
  EXPECT_DOUBLE_EQ(costs.ForwardSeconds(0, kLayer, 2, 0.25), 0.008);
  EXPECT_DOUBLE_EQ(costs.BackwardSeconds(0, kLayer, 4, 0.25), 0.026);
  EXPECT_DOUBLE_EQ(costs.ForwardSeconds(0, kLayer, 2), 0.021);
  EXPECT_DOUBLE_EQ(costs.ForwardSeconds(0, kLayer, 2, 0.5), 0.008 + (0.021 - 0.008) / 3);
  EXPECT_DOUBLE_EQ(costs.BackwardInputSeconds(0, kLayer, 2, 0.25), 0.025 * 0.014 / 0.042);
  EXPECT_DOUBLE_EQ(costs.BackwardWeightSeconds(0, kLayer, 1, 0.25), 0.01 * 0.008 / 0.022);
  // Other units and cards: half of the backward.
  for (const auto& [kind, unit] : {std::pair{0, UnitKind::kHead}, {1, kLayer}, {2, UnitKind::kEmbedding}}) {
    for (const double share : {1.0, 0.5}) {
      const double half = costs.BackwardSeconds(kind, unit, 3, share) / 2;
      EXPECT_EQ(costs.BackwardInputSeconds(kind, unit, 3, share), half);
      EXPECT_EQ(costs.BackwardWeightSeconds(kind, unit, 3, share), half);
    }
  }
}

// All operators together are the forward, those of a share what it runs again; and none of these takes less than its share.
TEST(Costs, AMeasuredPartsOperatorsAddUpToIt) {
  const Costs costs = MeasuredCosts();
  for (const double share : {0.1, 0.25, 0.5, 1.0}) {
    double seconds = 0;
    for (const Costs::OperatorCost& cost : costs.Operators(0)) {
      if (cost.op == Op::kRotary || cost.op == Op::kResidual1) continue;  // counted with the operator before
      const OpSet one = OpSet::None().With(cost.op);
      const double own = costs.RecomputeSeconds(0, UnitKind::kLayer, one, 2, share);
      const bool is_kept = share < 1 && own == 0;  // it ends in a sum over the unit
      EXPECT_EQ(is_kept, share < 1 && (cost.op == Op::kAttnOut || cost.op == Op::kDown || cost.op == Op::kResidual2));
      if (!is_kept) EXPECT_GE(own, share * costs.RecomputeSeconds(0, UnitKind::kLayer, one, 2) * (1 - 1e-12));
      seconds += own;
    }
    EXPECT_NEAR(seconds, costs.RecomputeSeconds(0, UnitKind::kLayer, OpSet::All(), 2, share), 1e-12) << share;
    if (share == 1) EXPECT_NEAR(seconds, costs.ForwardSeconds(0, UnitKind::kLayer, 2, share), 1e-12);
  }
}

TEST(Costs, ScalingScalesWhatWasMeasuredOfHalvesAndPart) {
  const Costs before = MeasuredCosts();
  Costs costs = MeasuredCosts();
  costs.ScaleSeconds(0, 2);
  for (const double share : {0.1, 0.25, 0.7, 1.0}) {
    for (const auto seconds :
         {&Costs::ForwardSeconds, &Costs::BackwardSeconds, &Costs::BackwardInputSeconds, &Costs::BackwardWeightSeconds}) {
      EXPECT_NEAR((costs.*seconds)(0, UnitKind::kLayer, 3, share), 2 * (before.*seconds)(0, UnitKind::kLayer, 3, share), 1e-12);
    }
    const OpSet some = OpSet::None().With(Op::kUp);
    EXPECT_NEAR(costs.RecomputeSeconds(0, UnitKind::kLayer, some, 3, share),
                2 * before.RecomputeSeconds(0, UnitKind::kLayer, some, 3, share), 1e-12);
  }
  EXPECT_EQ(costs.ForwardSeconds(1, UnitKind::kLayer, 3), before.ForwardSeconds(1, UnitKind::kLayer, 3));
}

TEST(Costs, InvalidWorkloadIsRefused) {
  Workload workload = WorkloadOf("llama-7b", DType::kFloat32);
  workload.seq_len = 1 << 20;
  EXPECT_THAT(Costs::Create(ClusterOf({"L4"}), workload, nullptr).status().message(), HasSubstr("--seq-len"));
  EXPECT_EQ(Costs::Create(Cluster(), WorkloadOf("llama-7b", DType::kFloat32), nullptr).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace motley::planner
