#include "planner/split/group_split.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planner/costs/memory_model.h"
#include "planner/split/group_tables.h"
#include "tests/planner/lowering/lowering_fixture.h"
#include "tests/planner/offline_fixture.h"
#include "tests/planner/split/whole_model.h"

namespace motley::planner {
namespace {

using ::testing::HasSubstr;

int64_t PeakOf(const Setting& setting, const GroupQuestion& question, const GroupMember& member) {
  const RankDuty duty = DutyOf(setting, question, member.device, member.share, member.recompute.all());
  if (member.batch == 0) return MemoryOf(setting.costs, duty, 0, 0, 0).total();
  return MemoryOf(setting.costs, duty, member.batch / member.microbatch, member.microbatch, member.batch % member.microbatch)
      .total();
}

// What every answer must keep.
void CheckAnswer(const Setting& setting, const GroupQuestion& question, const GroupAnswer& answer) {
  ASSERT_EQ(answer.members.size(), question.devices.size());
  int64_t batch = 0;
  double shares = 0;
  for (size_t i = 0; i < answer.members.size(); ++i) {
    const GroupMember& member = answer.members[i];
    EXPECT_EQ(member.device, question.devices[i]);
    EXPECT_GE(member.batch, question.least_batch);
    batch += member.batch;
    shares += member.share;
    EXPECT_LE(PeakOf(setting, question, member), setting.UsableBytes(member.device)) << "device " << member.device;
    if (member.batch == 0) continue;
    EXPECT_GE(member.microbatch, 1);
    EXPECT_LE(member.microbatch, member.batch);
    EXPECT_TRUE(member.recompute.all() ? question.allow_recompute : question.allow_keep);
    EXPECT_LE(member.microbatch, question.largest_microbatch > 0 ? question.largest_microbatch : question.batch);
    if (question.even_shards) {
      EXPECT_DOUBLE_EQ(member.share, 1.0 / static_cast<double>(answer.members.size()));
    }
  }
  EXPECT_EQ(batch, question.batch);
  EXPECT_NEAR(shares, 1, 1e-9);
  EXPECT_GT(answer.forward_seconds, 0);
  EXPECT_GT(answer.backward_seconds, answer.forward_seconds);
}

// More freedom is never slower, in the model's own seconds: uneven shards are allowed, not asked for. Slow links make collectives
// that run for every microbatch count, and skewed ones take longer.
TEST(GroupSplitTest, FreeSharesAreNeverSlowerThanEvenOnes) {
  Cluster cluster = Nodes({{"A10G"}, {"A10G"}, {"T4"}, {"T4"}});
  for (ClusterNode& node : cluster.nodes) node.nic_bytes_per_second = 1e9;
  const auto setting = MakeSetting(cluster, WorkOf(MediumModel(8, false), 16));
  for (const ScheduleFamily schedule : {ScheduleFamily::kLayered, ScheduleFamily::k1F1B, ScheduleFamily::kGPipe}) {
    for (const int zero : {1, 2, 3}) {
      GroupQuestion question = WholeModel(*setting);
      question.schedule = schedule;
      question.zero_stage = zero;
      const auto free = SplitGroup(*setting, question);
      question.even_shards = true;
      const auto even = SplitGroup(*setting, question);
      ASSERT_TRUE(free.ok() && even.ok()) << free.status() << even.status();
      EXPECT_LE(free->forward_seconds + free->backward_seconds, (even->forward_seconds + even->backward_seconds) * (1 + 1e-4))
          << ScheduleName(schedule) << ", ZeRO " << zero;
    }
  }
}

TEST(GroupSplitTest, FasterDevicesGetMoreSamples) {
  const auto setting = MakeSetting(SmallWorkload(64));
  const GroupQuestion question = WholeModel(*setting);
  const auto answer = SplitGroup(*setting, question);
  ASSERT_TRUE(answer.ok()) << answer.status();
  CheckAnswer(*setting, question, *answer);
  EXPECT_GT(answer->members[0].batch, answer->members[2].batch);
  EXPECT_EQ(answer->members[2].batch, answer->members[3].batch);
}

TEST(GroupSplitTest, EveryOptionIsHonoured) {
  const auto setting = MakeSetting(SmallWorkload(48));
  for (int option = 0; option < 9; ++option) {
    GroupQuestion question = WholeModel(*setting);
    if (option == 0) question.even_shards = true;
    if (option == 1) question.least_batch = 4;
    if (option == 2) question.largest_microbatch = 3;
    if (option == 3) question.allow_keep = false;
    if (option == 4) question.allow_recompute = false;
    if (option >= 5 && option <= 7) question.zero_stage = option - 5;
    if (option == 8) question.powers_of_two = true;
    const auto answer = SplitGroup(*setting, question);
    ASSERT_TRUE(answer.ok()) << option << ": " << answer.status();
    CheckAnswer(*setting, question, *answer);
    if (option != 8) continue;
    for (const GroupMember& member : answer->members) {
      const bool power = (member.microbatch & (member.microbatch - 1)) == 0;
      EXPECT_TRUE(power || member.microbatch == member.batch) << member.microbatch;
    }
  }
}

TEST(GroupSplitTest, EverySchedulesMemoryIsTheLedgers) {
  // Little room: 3 billion parameters in 4 cards, so that memory decides.
  const auto setting = MakeSetting(LargeWorkload(3, 32));
  for (const ScheduleFamily schedule : {ScheduleFamily::kLayered, ScheduleFamily::kGPipe, ScheduleFamily::k1F1B}) {
    GroupQuestion question = WholeModel(*setting);
    question.schedule = schedule;
    const auto answer = SplitGroup(*setting, question);
    ASSERT_TRUE(answer.ok()) << answer.status();
    CheckAnswer(*setting, question, *answer);
  }
}

TEST(GroupSplitTest, SharesAreUnevenOnlyWhereMemoryNeedsIt) {
  const auto roomy = MakeSetting(SmallWorkload(24));
  const auto even = SplitGroup(*roomy, WholeModel(*roomy));
  ASSERT_TRUE(even.ok()) << even.status();
  for (const GroupMember& member : even->members) EXPECT_DOUBLE_EQ(member.share, 0.25);
  // 90 GB of the cards' 120 GB: the A6000 must hold more than the others.
  const auto tight = MakeSetting(LargeWorkload(5.4, 8));
  const GroupQuestion question = WholeModel(*tight);
  const auto uneven = SplitGroup(*tight, question);
  ASSERT_TRUE(uneven.ok()) << uneven.status();
  CheckAnswer(*tight, question, *uneven);
  EXPECT_GT(uneven->members[0].share, 0.3);
}

TEST(GroupSplitTest, SaysWhatIsMissing) {
  const auto setting = MakeSetting(LargeWorkload(20, 8));
  const auto answer = SplitGroup(*setting, WholeModel(*setting));
  EXPECT_EQ(answer.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(answer.status().message()), HasSubstr("GiB on all of them together"));
}

TEST(GroupSplitTest, RefusesQuestionsWithoutAnswer) {
  const auto setting = MakeSetting(SmallWorkload(2));
  GroupQuestion question = WholeModel(*setting);
  question.least_batch = 1;
  EXPECT_EQ(SplitGroup(*setting, question).status().code(), absl::StatusCode::kResourceExhausted);
  question = WholeModel(*setting);
  question.offload.activations = true;
  const absl::Status no_host = SplitGroup(*setting, question).status();
  EXPECT_EQ(no_host.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(no_host.message()), HasSubstr("node n1"));
  question = WholeModel(*setting);
  question.devices.clear();
  EXPECT_EQ(SplitGroup(*setting, question).status().code(), absl::StatusCode::kInvalidArgument);
  question = WholeModel(*setting);
  question.layers = 0;
  EXPECT_EQ(SplitGroup(*setting, question).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(GroupSplitTest, StageListsMicrobatchesAndLeavesOutWhoIsNotNeeded) {
  const auto setting = MakeSetting(SmallWorkload(8));
  GroupAnswer answer;
  answer.members = {{0, 7, 3, OpSet::All(), 0.5}, {1, 0, 0, OpSet::None(), 0.5}, {2, 0, 0, OpSet::None(), 0}};
  const StagePlan stage = ToStage(*setting, answer, 3);
  ASSERT_EQ(stage.units.size(), 2u);
  EXPECT_EQ(stage.units[0].microbatches, (std::vector<int64_t>{3, 3, 1}));
  EXPECT_EQ(stage.units[0].ranks[0].device.value(), "n1/gpu0");
  EXPECT_EQ(stage.units[0].ranks[0].device_model, "A6000");
  EXPECT_EQ(stage.units[0].ranks[0].recompute, OpSet::All());
  EXPECT_TRUE(stage.units[1].microbatches.empty());
  EXPECT_EQ(stage.zero_stage, 3);
}

}  // namespace
}  // namespace motley::planner
