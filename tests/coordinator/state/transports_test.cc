#include "coordinator/state/transports.h"

#include <gtest/gtest.h>

namespace motley::coordinator {
namespace {

struct Row {
  DeviceKind kind = DeviceKind::kCuda;
  int nccl_version = 22809;
};

// Groups of ranks 0 and 1, of all, and of rank 2 alone; rank 0 hands over to the last.
std::vector<RankAssignment> Ranks(const std::vector<Row>& rows) {
  std::vector<RankAssignment> ranks(rows.size());
  for (size_t r = 0; r < rows.size(); ++r) {
    ranks[r].rank = static_cast<int>(r);
    ranks[r].device.id = DeviceId("n" + std::to_string(r) + "/d");
    ranks[r].device.kind = rows[r].kind;
    ranks[r].device.card.nccl_version = rows[r].kind == DeviceKind::kCuda ? rows[r].nccl_version : 0;
    ranks[r].device.card.uuid = "GPU-" + std::to_string(r);
    ranks[r].program.groups = {{0, 1}, {2, 0, 1}, {2}};
  }
  SendActivation send;
  send.peer = static_cast<int>(rows.size()) - 1;
  ranks[0].program.instructions = {{send, {}}};
  return ranks;
}

std::string Text(const std::vector<TransportUse>& uses) {
  std::string text;
  for (const TransportUse& use : uses) {
    text += use.group ? std::to_string(*use.group) : "pair";
    for (const DeviceId& device : use.devices) text += " " + device.value();
    text += " " + std::string(TransportName(use.transport));
    if (use.planned) text += " for " + std::string(TransportName(*use.planned));
    text += (use.why_not_nccl.empty() ? "" : " (" + use.why_not_nccl + ")") + "\n";
  }
  return text;
}

TEST(PlannedTransports, SaysNothingWithoutACard) {
  EXPECT_EQ(Text(PlannedTransports(Ranks({{DeviceKind::kCpu}, {DeviceKind::kEmulated}, {DeviceKind::kCpu}}))), "");
}

TEST(PlannedTransports, CardsOfOneBuildUseNccl) {
  EXPECT_EQ(Text(PlannedTransports(Ranks({{}, {}, {}}))),
            "0 n0/d n1/d nccl\n1 n2/d n0/d n1/d nccl\n2 n2/d none\npair n0/d n2/d nccl\n");
}

TEST(PlannedTransports, AMemberWithoutACardIsNamed) {
  EXPECT_EQ(Text(PlannedTransports(Ranks({{}, {}, {DeviceKind::kEmulated}}))),
            "0 n0/d n1/d nccl\n1 n2/d n0/d n1/d tcp (n2/d has no NCCL)\n2 n2/d none\npair n0/d n2/d tcp (n2/d has no NCCL)\n");
}

TEST(PlannedTransports, OtherBuildsHaveOtherVersions) {
  EXPECT_EQ(Text({PlannedTransports(Ranks({{}, {DeviceKind::kCuda, 22602}, {}}))[0]}),
            "0 n0/d n1/d tcp (NCCL 2.26.2 on n1/d, 2.28.9 on n0/d: ranks of different versions do not understand each other)\n");
}

TEST(PlannedTransports, ACardWhoseRankHasNoNcclIsNamed) {
  EXPECT_EQ(Text({PlannedTransports(Ranks({{}, {DeviceKind::kCuda, 0}, {}}))[0]}), "0 n0/d n1/d tcp (n1/d has no NCCL)\n");
}

TEST(FoundTransports, AreInOneOrderAndBesideWhatWasPlanned) {
  JobRun run;
  run.ranks_in_order = true;
  run.stage = Stage::kRunning;
  run.planned_transports = PlannedTransports(Ranks({{}, {}, {}}));
  const std::vector<DeviceId> pair = {DeviceId("n0/d"), DeviceId("n2/d")};
  run.transports = {{{}, pair, Transport::kTcp, "n2/d has no NCCL", {}},
                    {1, {DeviceId("x/d"), DeviceId("y/d")}, Transport::kTcp, "", {}},
                    {0, {DeviceId("n0/d"), DeviceId("n1/d")}, Transport::kNccl, "", {}}};
  EXPECT_EQ(Text(FoundTransports(run)),
            "0 n0/d n1/d nccl for nccl\n1 x/d y/d tcp\npair n0/d n2/d tcp for nccl (n2/d has no NCCL)\n");
  EXPECT_EQ(PlannedTransports(run), run.planned_transports);
  for (const Stage other : {Stage::kIdle, Stage::kProfiling, Stage::kPlanning}) {
    run.stage = other;
    EXPECT_EQ(Text(FoundTransports(run)) + Text(PlannedTransports(run)), "") << "of an epoch that is over";
  }
}

}  // namespace
}  // namespace motley::coordinator
