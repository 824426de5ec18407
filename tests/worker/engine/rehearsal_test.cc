// What steps call of PyTorch was called before the first of them.
#include "worker/engine/rehearsal.h"

#include <array>
#include <atomic>
#include <barrier>
#include <set>

#include "tests/worker/engine/called_operators.h"
#include "tests/worker/engine/engine_fixture.h"
#include "tests/worker/engine/equivalence/sliced_job.h"
#include "tests/worker/engine/fake_card.h"
#include "tests/worker/engine/rows_folder.h"
#include "worker/engine/lanes/stream_lane.h"

namespace motley::engine {
namespace {

// Launch nothing: they say how memory is to be read, or ask for some.
bool IsView(const std::string& name) {
  static const std::set<std::string> kViews = {
      "aten::view",    "aten::as_strided", "aten::narrow",  "aten::slice",      "aten::select",           "aten::t",
      "aten::reshape", "aten::transpose",  "aten::permute", "aten::empty",      "aten::empty_like",       "aten::empty_strided",
      "aten::expand",  "aten::unsqueeze",  "aten::squeeze", "aten::lift_fresh", "aten::detach",           "aten::_reshape_alias",
      "aten::chunk",   "aten::split",      "aten::unbind",  "aten::contiguous", "aten::split_with_sizes", "aten::from_blob"};
  return kViews.contains(name);
}

class RehearsalTest : public EngineTest {
 protected:
  // Names that steps call and nothing before.
  std::set<std::string> NewInSteps(const std::vector<RankAssignment>& assignments) {
    constexpr int kRanks = 2;
    CalledOperators operators;
    std::set<std::string> before, during;
    std::barrier all_ready(kRanks, [&]() noexcept { before = operators.Take(); });
    std::array<std::atomic<bool>, kRanks> arrived{};
    std::atomic<int> past = 0;
    std::vector<std::unique_ptr<FakeCard>> cards;
    for (int r = 0; r < kRanks; ++r) cards.push_back(std::make_unique<FakeCard>(r + 1));
    const Outcome outcome = Train(assignments, {}, [&](int rank) {
      EngineOptions options;
      options.backend = cards[rank].get();
      options.before_instruction = [&, rank](int64_t) {
        if (!arrived[rank].exchange(true)) {
          all_ready.arrive_and_wait();
          ++past;
        }
        while (past < kRanks) std::this_thread::yield();
      };
      return options;
    });
    for (const auto& end : outcome.ends) EXPECT_TRUE(end.ok()) << end.status();
    for (const std::string& name : operators.Take()) {
      if (!IsView(name) && !before.contains(name)) during.insert(name);
    }
    for (const auto& card : cards) EXPECT_EQ(card->handles().MadeInSteps(), std::set<std::string>());
    EXPECT_TRUE(before.contains("aten::bmm") || before.contains("aten::mm")) << testing::PrintToString(before);
    return during;
  }
};

TEST_F(RehearsalTest, StepsCallNothingNew) {
  config_.training.dtype = "float32";
  for (const char* type : {"float32", "bfloat16", "float16"}) {
    config_.training.mixed_precision_param = type;
    for (const ModelShape& model : {Gpt2(), Llama(), Qwen2()}) {
      EXPECT_EQ(NewInSteps(Assign(model, {{{3, 2}, 0.7}, {{3}, 0.3}})), std::set<std::string>())
          << type << " " << static_cast<int>(model.family);
    }
  }
}

// What a window's kernels call, its mask among it, in whichever layers there is one.
TEST_F(RehearsalTest, StepsWithWindowsCallNothingNew) {
  config_.training.dtype = "float32";
  ModelShape model = Llama();
  model.layer_kinds.resize(static_cast<size_t>(model.num_layers));
  model.layer_kinds.back().window = 3;
  EXPECT_EQ(NewInSteps(Assign(model, {{{3, 2}, 0.7}, {{3}, 0.3}})), std::set<std::string>());
  WriteRowsFolder(folder_ / "rows", config_.training.seq_len, DrawRows(1, 100, config_.training.seq_len));
  config_.data.path = (folder_ / "rows").string();
  EXPECT_EQ(NewInSteps(Assign(model, {{{3, 2}, 0.7}, {{3}, 0.3}})), std::set<std::string>());
}

TEST_F(RehearsalTest, StepsOfRowsCallNothingNew) {
  WriteRowsFolder(folder_ / "rows", config_.training.seq_len, DrawRows(1, 100, config_.training.seq_len));
  config_.data.path = (folder_ / "rows").string();
  config_.training.dtype = "float32";
  for (const char* type : {"float32", "bfloat16"}) {
    config_.training.mixed_precision_param = type;
    for (const ModelShape& model : {Gpt2(), Llama()}) {
      EXPECT_EQ(NewInSteps(Assign(model, {{{3, 2}, 0.7}, {{3}, 0.3}})), std::set<std::string>())
          << type << " " << static_cast<int>(model.family);
    }
  }
  SlicedJob job{.model = Llama(), .config = config_};
  job.stages = {{0, static_cast<int32_t>(NumUnits(job.model)) - 1, {0.5, 0.5}}};
  job.recomputed = "full";
  EXPECT_EQ(NewInSteps(AssignmentsOf(job)), std::set<std::string>());
}

TEST_F(RehearsalTest, StepsOfSlicesCallNothingNew) {
  config_.training.dtype = "float32";
  for (const char* type : {"float32", "bfloat16"}) {
    config_.training.mixed_precision_param = type;
    for (const ModelShape& model : {Gpt2(), Llama()}) {
      SlicedJob job{.model = model, .config = config_};
      job.stages = {{0, static_cast<int32_t>(NumUnits(model)) - 1, {0.5, 0.5}}};
      job.recomputed = "full";
      EXPECT_EQ(NewInSteps(AssignmentsOf(job)), std::set<std::string>()) << type << " " << static_cast<int>(model.family);
    }
  }
}

TEST_F(RehearsalTest, WithoutStreamsThereIsNothingToLoad) {
  const std::vector<RankAssignment> assignments = Assign(Gpt2(), {{{8}, 1.0}});
  HostBackend host;
  CalledOperators operators;
  EXPECT_EQ(Rehearse(assignments[0], {}, /*rows=*/false, host, {}), absl::OkStatus());
  EXPECT_EQ(operators.Take(), std::set<std::string>());
}

TEST_F(RehearsalTest, AUnitBeyondTheCardsMemoryIsNamed) {
  const std::vector<RankAssignment> assignments = Assign(Gpt2(), {{{8}, 1.0}});
  FakeCard card(1);
  card.SetMemoryCap(10'000, "n0/gpu0");
  SystemClock clock;
  DeviceLanes shared(clock, nullptr);
  StreamLane compute(shared, *card.StreamOf(Lane::kCompute)), collective(shared, *card.StreamOf(Lane::kCollective));
  std::array<DeviceLane*, kNumLanes> lanes{};
  lanes[static_cast<size_t>(Lane::kCompute)] = &compute;
  lanes[static_cast<size_t>(Lane::kCollective)] = &collective;
  const absl::Status status = Rehearse(assignments[0], {}, /*rows=*/false, card, lanes);
  card.SetMemoryCap(0, "n0/gpu0");
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_NE(status.message().find("n0/gpu0: a unit of the model"), std::string::npos) << status;
}

}  // namespace
}  // namespace motley::engine
