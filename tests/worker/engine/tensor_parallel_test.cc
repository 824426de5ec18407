// Whole runs of tensor-parallel groups, by programs written by hand: losses, norms and every array of the state are one rank's.
#include <unistd.h>

#include <filesystem>

#include "tests/worker/engine/equivalence/difference.h"
#include "tests/worker/engine/equivalence/sliced_job.h"
#include "tests/worker/engine/equivalence/tiny_job.h"
#include "tests/worker/engine/equivalence/training_run.h"

namespace motley::engine {
namespace {

class TensorParallelTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(testing::TempDir()) / ("tensor_parallel_test-" + std::to_string(getpid()));
    WriteTinyText(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // Four parts, which divide neither the vocabulary nor the MLP's columns.
  SlicedJob Job(ModelFamily family, int64_t layers, DType compute = DType::kFloat64) const {
    const TinyJob tiny = MakeTinyJob(family, {layers, 8}, compute, folder_);
    SlicedJob job{.model = tiny.model, .config = tiny.config};
    job.model.vocab_size = 259;
    job.model.intermediate_size = 41;
    job.model.num_kv_heads = 4;
    job.model.num_heads = family == ModelFamily::kGpt2 ? 4 : 8;
    job.model.head_dim = 4;
    job.config.training.steps = 3;
    job.config.data.validation_interval = 1;
    return job;
  }
  static int32_t Head(const SlicedJob& job) { return static_cast<int32_t>(NumUnits(job.model)) - 1; }
  static SlicedStage All(const SlicedJob& job, std::vector<double> shares, int replicas = 1) {
    return {0, Head(job), std::move(shares), replicas};
  }

  void ExpectLikeOneRank(const SlicedJob& job, Devices devices = Devices::kHosts) {
    SlicedJob alone = job;
    alone.stages = {All(job, {1.0})};
    alone.recomputed = "";
    alone.split = false;
    alone.microbatches = 1;
    const auto reference = TrainOnThreads(AssignmentsOf(alone));
    ASSERT_TRUE(reference.ok()) << reference.status();
    const auto run = TrainOnThreads(AssignmentsOf(job), 7, devices);
    ASSERT_TRUE(run.ok()) << run.status();
    const DType compute = PrecisionOf(job.config.training)->compute;
    EXPECT_EQ(Complaint(Compare(*run, *reference, job.model), LimitsOf(compute)), "");
  }

  std::filesystem::path folder_;
};

TEST_F(TensorParallelTest, OneGroupOfUnequalSharesTrainsAsOneRank) {
  SlicedJob job = Job(ModelFamily::kLlama, 1);
  job.stages = {All(job, {0.75, 0.25})};
  ExpectLikeOneRank(job);
  job.homes = false;
  ExpectLikeOneRank(job);
}

// The slice of the tied head is that of the embedding, and the gradients of both come together.
TEST_F(TensorParallelTest, TiedGpt2TrainsAsOneRank) {
  SlicedJob job = Job(ModelFamily::kGpt2, 2);
  for (const std::vector<double>& shares : {std::vector{0.25, 0.75}, std::vector{0.25, 0.5, 0.25}}) {
    job.stages = {All(job, shares)};
    ExpectLikeOneRank(job);
  }
}

TEST_F(TensorParallelTest, RecomputationNeedsNoSums) {
  for (const ModelFamily family : {ModelFamily::kGpt2, ModelFamily::kLlama}) {
    SlicedJob job = Job(family, 2);
    job.stages = {All(job, {0.5, 0.5})};
    for (const char* recomputed : {"full", "norm1,qkv,attn_out", "attention,norm2,up,down"}) {
      SCOPED_TRACE(recomputed);
      job.recomputed = recomputed;
      ExpectLikeOneRank(job);
    }
  }
}

TEST_F(TensorParallelTest, ABackwardInTwoIsTheSame) {
  for (const ModelFamily family : {ModelFamily::kGpt2, ModelFamily::kQwen2}) {
    SlicedJob job = Job(family, 2);
    job.stages = {All(job, {0.75, 0.25})};
    job.split = true;
    ExpectLikeOneRank(job);
    job.recomputed = "full";
    ExpectLikeOneRank(job);
  }
}

// Ranks of one slice share its state, all ranks that of the norms.
TEST_F(TensorParallelTest, ReplicasShareStateBySlices) {
  for (const bool homes : {true, false}) {
    SlicedJob job = Job(ModelFamily::kGpt2, 1);
    job.homes = homes;
    job.stages = {All(job, {0.25, 0.75}, 2)};
    ExpectLikeOneRank(job);
  }
}

// Only the leader hands over; what it receives it hands on, whether it has begun with it or not.
TEST_F(TensorParallelTest, GroupsHandOverToAnythingElse) {
  for (const bool overtakes : {false, true}) {
    SlicedJob job = Job(ModelFamily::kLlama, 3);
    job.overtakes = overtakes;
    job.stages = {{0, 1, {0.75, 0.25}}, {2, 2, {1.0}}, {3, 4, {0.25, 0.25, 0.5}}};
    ExpectLikeOneRank(job);
    job.stages = {{0, 0, {1.0}}, {1, 2, {0.5, 0.5}}, {3, 3, {0.25, 0.75}}, {4, 4, {1.0}}};
    job.split = true;
    ExpectLikeOneRank(job);
  }
}

TEST_F(TensorParallelTest, HalfTypesTrainAlmostAsOneRank) {
  SlicedJob job = Job(ModelFamily::kLlama, 1, DType::kBFloat16);
  for (const bool homes : {true, false}) {
    job.homes = homes;
    job.stages = {All(job, {0.75, 0.25})};
    ExpectLikeOneRank(job);
  }
}

// Over a fake NCCL, over the host's memory, and where only some have cards.
TEST_F(TensorParallelTest, CardsTrainAsOneRank) {
  SlicedJob job = Job(ModelFamily::kLlama, 2);
  job.stages = {{0, 1, {0.75, 0.25}}, {2, 3, {0.5, 0.25, 0.25}}};
  for (const Devices devices : {Devices::kCards, Devices::kCardsOverTcp, Devices::kCardsAndHosts}) {
    job.recomputed = devices == Devices::kCards ? "full" : "";
    ExpectLikeOneRank(job, devices);
  }
}

TEST_F(TensorParallelTest, AProgramThatDoesNotFitTheSliceIsRefusedBeforeTheFirstStep) {
  SlicedJob job = Job(ModelFamily::kLlama, 1);
  job.stages = {All(job, {0.75, 0.25})};
  std::vector<RankAssignment> assignments = AssignmentsOf(job);
  std::swap(assignments[0].slice, assignments[1].slice);
  const auto run = TrainAndKeep(assignments, std::nullopt);
  EXPECT_EQ(run.status().code(), absl::StatusCode::kFailedPrecondition) << run.status();
}

}  // namespace
}  // namespace motley::engine
