#include "planner/lowering/program_communicators.h"

#include <gtest/gtest.h>

#include "planner/costs/nccl_buffers.h"
#include "planner/pricing/price.h"
#include "tests/planner/lowering/lowering_fixture.h"

namespace motley::planner {
namespace {

// n0 has three cards that reach each other by PCIe, n1 has one; the last of n1 has no NCCL.
Cluster TwoNodes() {
  Cluster cluster = Nodes({{"L4", "L4", "L4"}, {"L4", "P40"}});
  cluster.kinds[0].nccl = NcclPath::kPcie;
  return cluster;
}

const NcclSpread kPairInside{NcclPath::kPcie, 2, 1}, kPairAcross{NcclPath::kHost, 1, 2};

int64_t BytesOf(const Program& program, const Program& evaluation = {}) {
  return NcclBytes(TwoNodes(), {0, 1, 2, 3, 4}, program, evaluation);
}

Program OfRank(int rank, std::vector<std::vector<int32_t>> groups) {
  Program program;
  program.rank = rank;
  program.world = 5;
  program.groups = std::move(groups);
  return program;
}

TEST(ProgramCommunicators, OfGroupsThoseThatTheRankIsIn) {
  EXPECT_EQ(BytesOf(OfRank(0, {{0}, {1, 2}})), 0);
  EXPECT_EQ(BytesOf(OfRank(0, {{0, 1, 2}})), kNcclKernelBytes + NcclGroupBytes(NcclSpread{NcclPath::kPcie, 3, 1}));
  EXPECT_EQ(BytesOf(OfRank(0, {{0, 1, 3}})), kNcclKernelBytes + NcclGroupBytes(NcclSpread{NcclPath::kPcie, 2, 2}));
  EXPECT_EQ(BytesOf(OfRank(3, {{0, 1, 3}})), kNcclKernelBytes + NcclGroupBytes(NcclSpread{NcclPath::kHost, 1, 2}));
}

TEST(ProgramCommunicators, WhatGoesByTcpHasNone) {
  EXPECT_EQ(BytesOf(OfRank(0, {{0, 1, 4}})), 0);
  EXPECT_EQ(BytesOf(OfRank(4, {{3, 4}})), 0);
}

TEST(ProgramCommunicators, EachGroupHasItsOwn) {
  const int64_t one = NcclGroupBytes(NcclSpread{NcclPath::kPcie, 2, 1});
  EXPECT_EQ(BytesOf(OfRank(0, {{0, 1}, {1, 0}, {2, 3}})), kNcclKernelBytes + 2 * one);
}

TEST(ProgramCommunicators, EachDirectionWithEachPeerHasItsOwn) {
  Program program = OfRank(1, {});
  for (const int microbatch : {0, 1}) program.instructions.push_back({ReceiveActivation{0, microbatch, 0, 1, 0}, {}});
  program.instructions.push_back({SendActivation{0, 0, 0, 1, 2}, {}});
  program.instructions.push_back({SendActivation{0, 1, 0, 1, 3}, {}});
  program.instructions.push_back({ReceiveGradient{0, 0, 0, 1, 2}, {}});
  program.instructions.push_back({SendGradient{0, 0, 0, 1, 4}, {}});
  const int64_t trained = kNcclKernelBytes + 2 * NcclPairBytes(kPairInside, true) + NcclPairBytes(kPairInside, false) +
                          NcclPairBytes(kPairAcross, false);
  EXPECT_EQ(BytesOf(program), trained) << "from 0 and 2, to 2, to 3; 4 has no NCCL";
  Program evaluation = OfRank(1, {});
  evaluation.instructions.push_back({ReceiveActivation{0, 0, 0, 1, 0}, {}});
  EXPECT_EQ(BytesOf(program, evaluation), trained);
  evaluation.instructions.push_back({ReceiveActivation{0, 1, 0, 1, 3}, {}});
  EXPECT_EQ(BytesOf(program, evaluation), trained + NcclPairBytes(kPairAcross, true));
}

// Three stages of one card each, two of them in a node: of one kind, and each has another number.
TEST(ProgramCommunicators, APlansRanksHaveWhatTheirProgramsNeed) {
  Cluster cluster = Nodes({{"T4", "T4"}, {"T4"}});
  cluster.kinds[0].nccl = NcclPath::kPcie;
  PlanRequest request;
  request.runnable = true;
  auto setting = Setting::Create(std::move(cluster), WorkOf(MediumModel(6, false), 4), request, nullptr);
  ASSERT_TRUE(setting.ok()) << setting.status();
  const std::vector<int64_t> ones(4, 1);
  const Plan plan = PlanOf(**setting, ScheduleFamily::k1F1B,
                           {{{StageOf(**setting, 0, {ones}, {{0, 1}}, 0), StageOf(**setting, 1, {ones}, {{2, 3}}, 0),
                              StageOf(**setting, 2, {ones}, {{4, 5}}, 0)}}});
  const auto priced = Price(**setting, plan);
  ASSERT_TRUE(priced.ok()) << priced.status();
  const int64_t both_inside = NcclPairBytes(kPairInside, true) + NcclPairBytes(kPairInside, false);
  const int64_t both_across = NcclPairBytes(kPairAcross, true) + NcclPairBytes(kPairAcross, false);
  const std::vector<int64_t> pairs = {both_inside, both_inside + both_across, both_across};
  for (size_t s = 0; s < pairs.size(); ++s) {
    const RankPrediction& predicted = priced->plan.pipelines[0].stages[s].units[0].ranks[0].predicted;
    EXPECT_EQ(predicted.memory.context, (*setting)->costs.ContextBytes(0) + kNcclKernelBytes + pairs[s]) << s;
    EXPECT_EQ(predicted.peak_bytes, predicted.memory.total());
  }
}

}  // namespace
}  // namespace motley::planner
