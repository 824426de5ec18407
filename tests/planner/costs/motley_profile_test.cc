#include "planner/costs/motley_profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "planner/costs/costs.h"
#include "planner/costs/latency_book.h"
#include "tests/common/model/published_configs.h"
#include "tests/planner/cluster_fixture.h"
#include "tests/planner/costs/costs_fixture.h"

namespace motley::planner {
namespace {

using ::testing::HasSubstr;

MotleyProfile Whole() {
  MotleyProfile profile;
  profile.source = "a test";
  profile.models["mine"] = SmallModel();
  MeasuredCard card;
  card.model = "mine";
  card.card = "L4";
  card.seq_len = 32;
  card.dtype = DType::kFloat32;
  card.layer = {{1, 2},      {0.1 / 3, 0.1}, {0.2, 0.4},   {1000, 2000}, {50, 60}, {0.12, 0.2},
                {0.1, 0.25}, 0.25,           {0.02, 0.04}, {0.1, 0.15},  {40, 55}};
  card.embedding = MeasuredSeries{{1, 4}, {0.01, 0.02}, {0.03, 0.04}, {10, 40}, {}};
  card.head = MeasuredSeries{{1, 2}, {0.05, 0.06}, {0.07, 0.08}, {}, {}, {0.07, 0.08}, {0.001, 0.001}};
  card.optimizer = MeasuredOptimizer{1e-9 / 3, 0.001};
  card.context_bytes = 12345;
  card.load = {1035, 71.5, 72, true, false, true};
  profile.cards = {card, card};
  profile.cards[1].card = "P40";
  profile.cards[1].layer.forward_seconds = {0.3, 0.4};
  profile.cards[1].embedding.reset();
  profile.cards[1].head.reset();
  profile.cards[1].optimizer.reset();
  profile.cards[1].context_bytes.reset();
  profile.cards[1].load = {};
  return profile;
}

absl::StatusOr<MotleyProfile> Read(const std::string& text) { return ReadMotleyProfile(nlohmann::json::parse(text), "p.json"); }
std::string ProfileError(const std::string& text) {
  const absl::Status status = Read(text).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
  return std::string(status.message());
}
// A file with one layer that has these further keys.
std::string With(const std::string& more, const std::string& root = "", int version = 2) {
  return absl::StrCat(R"({"motley_profile": )", version, ", ", root,
                      R"("layers": [{"model": "m", "card": "L4", "dtype": "fp32", "seq_len": 8,
            "samples": [1], "forward_seconds": [1], "backward_seconds": [1])",
                      more, "}]}");
}

TEST(MotleyProfile, IsReadBack) {
  const MotleyProfile profile = Whole();
  const auto read = Read(ToJson(profile));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->source, profile.source);
  EXPECT_EQ(read->models, profile.models);
  ASSERT_EQ(read->cards.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(read->cards[i].card, profile.cards[i].card);
    EXPECT_EQ(read->cards[i].seq_len, 32);
    EXPECT_EQ(read->cards[i].layer, profile.cards[i].layer);
    EXPECT_EQ(read->cards[i].embedding, profile.cards[i].embedding);
    EXPECT_EQ(read->cards[i].head, profile.cards[i].head);
    EXPECT_EQ(read->cards[i].optimizer, profile.cards[i].optimizer);
    EXPECT_EQ(read->cards[i].context_bytes, profile.cards[i].context_bytes);
    EXPECT_EQ(read->cards[i].load, profile.cards[i].load);
  }
  EXPECT_EQ(ToJson(*read), ToJson(profile));
}

TEST(MotleyProfile, ModelsThatArePlannedAloneHaveAShapeToo) {
  const auto read = Read(With("", absl::StrCat(R"("models": {"m": )", kGemma2Config, "}, ")));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->models.at("m").head_dim, 256);
}

TEST(MotleyProfile, BytesAreCheckedBesideTheirSamples) {
  const auto bytes = [](const std::string& list) { return ProfileError(With(R"(, "saved_bytes": )" + list)); };
  EXPECT_THAT(bytes("[1, 2]"), HasSubstr("layers[0].saved_bytes: must be a list of as many numbers as samples, 1"));
  EXPECT_THAT(bytes("[-1]"), HasSubstr("bytes must be whole numbers from 0"));
  EXPECT_THAT(bytes("[1.5]"), HasSubstr("bytes must be whole numbers from 0"));
  EXPECT_THAT(ProfileError(With(R"(, "head": {"samples": [1, 2], "forward_seconds": [1, 1], "backward_seconds": [1, 1],
                           "workspace_bytes": [5, 4]})")),
              HasSubstr("layers[0].head.workspace_bytes: more samples cannot need fewer bytes, 4 after 5"));
}

TEST(MotleyProfile, VersionOneHasLayersAlone) {
  const std::string text = With(R"(, "head": "for people", "context_bytes": -1)");
  EXPECT_THAT(ProfileError(text), HasSubstr("layers[0].head: must be an object"));
  std::string first = text;
  first.replace(first.find("2,"), 1, "1");
  const auto read = Read(first);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_FALSE(read->cards[0].head.has_value());
}

TEST(MotleyProfile, VersionFourHasHalvesAndAPart) {
  const std::string halves = R"(, "backward_input_seconds": [0.6], "backward_weight_seconds": [0.5])";
  const std::string part = R"(, "part": 0.25, "part_forward_seconds": [0.3], "part_backward_seconds": [0.35])";
  const auto read = Read(With(halves + part, "", 4));
  ASSERT_TRUE(read.ok()) << read.status();
  const MeasuredSeries& layer = read->cards[0].layer;
  EXPECT_EQ(layer.backward_input_seconds, std::vector<double>{0.6});
  EXPECT_EQ(layer.backward_weight_seconds, std::vector<double>{0.5});
  EXPECT_EQ(layer.part, 0.25);
  EXPECT_EQ(layer.part_forward_seconds, std::vector<double>{0.3});
  EXPECT_EQ(layer.part_backward_seconds, std::vector<double>{0.35});
  for (const int version : {2, 3}) {
    EXPECT_THAT(ProfileError(With(halves, "", version)), HasSubstr("layers[0]: unknown key 'backward_input_seconds'"));
    EXPECT_TRUE(Read(With("", "", version)).ok());
  }
  EXPECT_THAT(ProfileError(With(R"(, "backward_inputs_seconds": [1])", "", 4)),
              HasSubstr("did you mean 'backward_input_seconds'?"));
}

TEST(MotleyProfile, VersionFiveHasTheForwardsWorkspace) {
  const std::string both = R"(, "workspace_bytes": [7], "forward_workspace_bytes": [5])";
  const auto read = Read(With(both, "", 5));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->cards[0].layer.forward_workspace_bytes, std::vector<int64_t>{5});
  EXPECT_THAT(ProfileError(With(both, "", 4)), HasSubstr("layers[0]: unknown key 'forward_workspace_bytes'"));
}

TEST(MotleyProfile, VersionSixHasTheLoad) {
  const std::string load = R"(, "load": {"sm_clock_mhz": 1035, "at_power_limit": true})";
  const auto read = Read(With(load, "", 6));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->cards[0].load, (CardLoad{.sm_clock_mhz = 1035, .at_power_limit = true}));
  EXPECT_THAT(ProfileError(With(load, "", 5)), HasSubstr("layers[0]: unknown key 'load'"));
  EXPECT_THAT(ProfileError(With(R"(, "load": {"watts": -1})", "", 6)), HasSubstr("layers[0].load.watts: must be a number"));
  EXPECT_THAT(ProfileError(With(R"(, "load": {"at_power_limit": 1})", "", 6)), HasSubstr("must be true or false"));
}

TEST(MotleyProfile, HalvesGoTogetherAndSoDoesAPart) {
  const auto error = [](const std::string& more) { return ProfileError(With(more, "", 4)); };
  EXPECT_THAT(error(R"(, "backward_input_seconds": [1])"), HasSubstr("layers[0]: backward_input_seconds and"));
  EXPECT_THAT(error(R"(, "backward_input_seconds": [1, 2], "backward_weight_seconds": [1])"),
              HasSubstr("layers[0].backward_input_seconds: must be a list of as many numbers as samples, 1"));
  EXPECT_THAT(error(R"(, "part": 0.25)"), HasSubstr("part, part_forward_seconds and part_backward_seconds go together"));
  EXPECT_THAT(error(R"(, "part_forward_seconds": [1], "part_backward_seconds": [1])"), HasSubstr("go together"));
  EXPECT_THAT(error(R"(, "part": 0.25, "part_forward_seconds": [1])"), HasSubstr("go together"));
  for (const char* part : {"0", "1", "-0.5", "\"half\""}) {
    EXPECT_THAT(error(absl::StrCat(R"(, "part": )", part, R"(, "part_forward_seconds": [1], "part_backward_seconds": [1])")),
                HasSubstr("layers[0].part: must be a number above 0 and below 1"));
  }
}

TEST(MotleyProfile, ErrorsNameThePath) {
  EXPECT_THAT(ProfileError(R"({"motley_profile": 7, "layers": []})"), HasSubstr("p.json: motley_profile must be 1 to 6"));
  EXPECT_THAT(ProfileError(R"({"motley_profile": "2", "layers": []})"), HasSubstr("motley_profile must be"));
  EXPECT_THAT(ProfileError(R"({"motley_profile": 2})"), HasSubstr("layers must be a list"));
  EXPECT_THAT(ProfileError(With("", R"("models": 3, )")), HasSubstr("models must be an object"));
  EXPECT_THAT(ProfileError(With("", R"("models": {"m": {"model_type": "mixtral"}}, )")), HasSubstr("p.json: models.m"));
  EXPECT_THAT(ProfileError(With(R"(, "embedding": {"samples": [1]})")),
              HasSubstr("layers[0].embedding.forward_seconds: must be a list"));
  EXPECT_THAT(ProfileError(With(R"(, "optimizer": 3)")), HasSubstr("layers[0].optimizer: must be an object"));
  EXPECT_THAT(ProfileError(With(R"(, "optimizer": {"seconds_per_element": -1, "launch_seconds": 0})")),
              HasSubstr("layers[0].optimizer.seconds_per_element: must be a number of seconds"));
  EXPECT_THAT(ProfileError(With(R"(, "optimizer": {"seconds_per_element": 1})")), HasSubstr("optimizer.launch_seconds"));
  EXPECT_THAT(ProfileError(With(R"(, "context_bytes": -5)")), HasSubstr("layers[0].context_bytes: must be a whole number"));
  EXPECT_THAT(ProfileError(With(R"(, "context_bytes": 1.5)")), HasSubstr("context_bytes"));
}

TEST(MotleyProfile, TheBookChecksEverySeries) {
  const auto error = [](const std::string& text) { return std::string(LatencyBook::Parse(text, "p.json").status().message()); };
  EXPECT_THAT(error(With(R"(, "head": {"samples": [1], "forward_seconds": [-1], "backward_seconds": [1]})")),
              HasSubstr("p.json: layers[0].head.forward_seconds: the time of batch 1 must be above 0"));
  EXPECT_THAT(error(With(R"(, "embedding": {"samples": [2, 1], "forward_seconds": [1, 1], "backward_seconds": [1, 1]})")),
              HasSubstr("p.json: layers[0].embedding.forward_seconds: batch sizes must be above 0 and rise"));
  EXPECT_THAT(error(With(R"(, "backward_input_seconds": [1], "backward_weight_seconds": [-1])", "", 4)),
              HasSubstr("p.json: layers[0].backward_weight_seconds: the time of batch 1 must be above 0"));
  EXPECT_THAT(error(With(R"(, "head": {"samples": [1], "forward_seconds": [1], "backward_seconds": [1], "part": 0.5,
                         "part_forward_seconds": [0], "part_backward_seconds": [1]})",
                         "", 4)),
              HasSubstr("p.json: layers[0].head.part_forward_seconds: the time of batch 1 must be above 0"));
}

Workload SmallWork() {
  Workload workload;
  workload.model_name = "another/name.json";
  workload.model = SmallModel();
  workload.global_batch = 8;
  workload.seq_len = 32;
  return workload;
}

TEST(MotleyProfile, CostsTakeWhatWasMeasured) {
  const auto book = LatencyBook::Parse(ToJson(Whole()), "p.json");
  ASSERT_TRUE(book.ok()) << book.status();
  const Costs costs = *Costs::Create(ClusterOf({"L4", "P40"}), SmallWork(), &*book);
  EXPECT_FALSE(costs.provenance(0).estimated) << costs.provenance(0).source;
  EXPECT_DOUBLE_EQ(costs.BackwardSeconds(0, UnitKind::kLayer, 2), 0.4);
  EXPECT_DOUBLE_EQ(costs.ForwardSeconds(0, UnitKind::kEmbedding, 4), 0.02);
  EXPECT_DOUBLE_EQ(costs.BackwardSeconds(0, UnitKind::kHead, 1), 0.07);
  EXPECT_DOUBLE_EQ(costs.OptimizerSeconds(0, 3e6), 0.001 + 0.001);
  EXPECT_EQ(costs.OptimizerSeconds(0, 0), 0);
  EXPECT_EQ(costs.ContextBytes(0), 12345);
  EXPECT_DOUBLE_EQ(costs.BackwardInputSeconds(0, UnitKind::kLayer, 2), 0.2);
  EXPECT_DOUBLE_EQ(costs.BackwardWeightSeconds(0, UnitKind::kLayer, 1), 0.1);
  EXPECT_DOUBLE_EQ(costs.BackwardWeightSeconds(0, UnitKind::kHead, 2), 0.001);
  EXPECT_DOUBLE_EQ(costs.ForwardSeconds(0, UnitKind::kLayer, 2, 0.25), 0.04);
  EXPECT_DOUBLE_EQ(costs.BackwardSeconds(0, UnitKind::kLayer, 1, 0.25), 0.1);
  EXPECT_DOUBLE_EQ(costs.BackwardInputSeconds(0, UnitKind::kEmbedding, 4), 0.02) << "half, where it was not measured";
  // The other card's profile says nothing of these.
  EXPECT_FALSE(costs.provenance(1).estimated);
  EXPECT_GT(costs.ForwardSeconds(1, UnitKind::kEmbedding, 4), 0);
  EXPECT_GT(costs.OptimizerSeconds(1, 3e6), 0);
  EXPECT_EQ(costs.ContextBytes(1), int64_t{768} << 20);
}

TEST(MotleyProfile, AnotherSequenceIsEstimatedAndKeepsTheCardsOwn) {
  const auto book = LatencyBook::Parse(ToJson(Whole()), "p.json");
  ASSERT_TRUE(book.ok()) << book.status();
  Workload workload = SmallWork();
  workload.seq_len = 64;
  const Costs costs = *Costs::Create(ClusterOf({"L4"}), workload, &*book);
  EXPECT_TRUE(costs.provenance(0).estimated);
  EXPECT_DOUBLE_EQ(costs.OptimizerSeconds(0, 3e6), 0.002);
  EXPECT_EQ(costs.ContextBytes(0), 12345);
  EXPECT_NE(costs.ForwardSeconds(0, UnitKind::kEmbedding, 4), 0.02);
  EXPECT_EQ(costs.BackwardInputSeconds(0, UnitKind::kLayer, 2), costs.BackwardSeconds(0, UnitKind::kLayer, 2) / 2)
      << "halves of another work are not brought over";
  EXPECT_EQ(costs.BackwardInputSeconds(0, UnitKind::kHead, 2), costs.BackwardSeconds(0, UnitKind::kHead, 2) / 2);
  // In another precision the context stays, the optimizer does not.
  workload.dtype = DType::kFloat16;
  const Costs half = *Costs::Create(ClusterOf({"L4"}), workload, &*book);
  EXPECT_EQ(half.ContextBytes(0), 12345);
  EXPECT_NE(half.OptimizerSeconds(0, 3e6), 0.002);
}

TEST(MotleyProfile, TheShapeTellsModelsApartAndNotTheName) {
  const auto book = LatencyBook::Parse(ToJson(Whole()), "p.json");
  ASSERT_TRUE(book.ok()) << book.status();
  Workload other = SmallWork();
  other.model_name = "mine";
  other.model.intermediate_size *= 2;
  EXPECT_TRUE(Costs::Create(ClusterOf({"L4"}), other, &*book)->provenance(0).estimated);
  Workload longer = SmallWork();
  longer.model.max_positions *= 2;
  EXPECT_FALSE(Costs::Create(ClusterOf({"L4"}), longer, &*book)->provenance(0).estimated);
  Workload encoder = SmallWork();
  encoder.causal = false;
  EXPECT_TRUE(Costs::Create(ClusterOf({"L4"}), encoder, &*book)->provenance(0).estimated);
}

}  // namespace
}  // namespace motley::planner
