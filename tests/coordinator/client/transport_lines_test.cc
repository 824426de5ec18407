#include "coordinator/client/transport_lines.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace motley::client {
namespace {

TransportUse Group(int number, Transport transport, const std::string& why = "") {
  return {number, {DeviceId("a/gpu0"), DeviceId("b/gpu0")}, transport, why, {}};
}
TransportUse Pair(int from, int to, Transport transport, const std::string& why = "") {
  return {{}, {DeviceId(absl::StrCat("n", from, "/gpu0")), DeviceId(absl::StrCat("n", to, "/gpu0"))}, transport, why, {}};
}
std::string Text(const std::vector<TransportUse>& uses, TransportsAre are = TransportsAre::kPlanned) {
  return absl::StrJoin(TransportLines(uses, are), "\n");
}
TransportUse Over(TransportUse use, const NcclLinks& links) {
  use.nccl_links = links;
  return use;
}

TEST(TransportLines, OneTransportIsOneWord) {
  EXPECT_EQ(Text({Group(0, Transport::kTcp), Pair(0, 1, Transport::kTcp)}), "tcp");
  EXPECT_EQ(Text({Group(0, Transport::kNccl), Group(1, Transport::kNone)}), "nccl");
  EXPECT_EQ(Text({Group(0, Transport::kNone)}), "") << "a rank that is alone";
  EXPECT_EQ(Text({Group(0, Transport::kTcp, "versions differ")}), "tcp (versions differ)");
}

TEST(TransportLines, AMixedJobSaysWhoAndWhy) {
  EXPECT_EQ(Text({Group(0, Transport::kNccl), Group(1, Transport::kNccl), Group(2, Transport::kTcp, "c/cpu0 has no NCCL"),
                  Group(3, Transport::kTcp), Pair(0, 1, Transport::kNccl), Pair(0, 2, Transport::kTcp, "c/cpu0 has no NCCL"),
                  Pair(1, 2, Transport::kTcp, "c/cpu0 has no NCCL")}),
            "nccl: groups 0, 1, hand-overs from n0/gpu0 to n1/gpu0\n"
            "tcp: group 3\n"
            "tcp: group 2, hand-overs of 2 pairs (c/cpu0 has no NCCL)");
}

TEST(TransportLines, AHundredDevicesAreAFewLines) {
  std::vector<TransportUse> uses;
  for (int g = 0; g < 32; ++g) uses.push_back(Group(g, Transport::kNccl));
  for (int r = 0; r < 128; ++r) {
    uses.push_back(Pair(r, r + 1, Transport::kTcp, absl::StrCat("n", 1000 + r / 8, "/cpu0 has no NCCL")));
  }
  EXPECT_EQ(Text(uses),
            "nccl: groups 0, 1, 2, 3 and 28 more\n"
            "tcp: hand-overs of 8 pairs (n1000/cpu0 has no NCCL)\n"
            "tcp: hand-overs of 8 pairs (n1001/cpu0 has no NCCL)\n"
            "tcp: hand-overs of 8 pairs (n1002/cpu0 has no NCCL)\n"
            "tcp: hand-overs of 104 pairs (other reasons, 13: -o json has them)");
}

TEST(TransportLines, WhatRanksHaveFoundSaysWhatNcclGoesOver) {
  const NcclLinks node{{"NVLink"}, {}, 24}, across{{"NVLink", "RoCE"}, {"mlx5_0", "mlx5_1"}, 8},
      slower{{"NVLink", "RoCE"}, {"mlx5_2"}, 2};
  const auto found = TransportsAre::kFound;
  EXPECT_EQ(Text({Over(Group(0, Transport::kNccl), {{"sockets"}, {"eth0"}, 1})}, found), "nccl over sockets (eth0), 1 channel");
  EXPECT_EQ(Text({Over(Group(0, Transport::kNccl), {{"shared memory"}, {}, 0})}, found), "nccl over shared memory");
  EXPECT_EQ(Text({Group(0, Transport::kNccl)}, found), "nccl over unknown links");
  EXPECT_EQ(Text({Group(0, Transport::kTcp)}, found), "tcp");
  EXPECT_EQ(Text({Over(Group(0, Transport::kNccl), across), Over(Group(1, Transport::kNccl), node),
                  Over(Group(2, Transport::kNccl), slower), Pair(0, 1, Transport::kNccl), Group(3, Transport::kTcp)},
                 found),
            "nccl over NVLink, 24 channels: group 1\n"
            "nccl over NVLink and RoCE (mlx5_0, mlx5_1, mlx5_2), 2 to 8 channels: groups 0, 2\n"
            "nccl over unknown links: hand-overs from n0/gpu0 to n1/gpu0\n"
            "tcp: group 3");
}

TEST(TransportSurprise, IsWhatWentAnotherWayThanPlanned) {
  TransportUse group = Group(0, Transport::kTcp, "w"), other = Group(1, Transport::kNccl), pair = Pair(0, 1, Transport::kTcp);
  EXPECT_EQ(TransportSurprise({group, other, pair}), "") << "nothing was planned";
  group.planned = other.planned = pair.planned = Transport::kNccl;
  EXPECT_EQ(TransportSurprise({group, other, pair}),
            "not as planned: group 0, hand-overs from n0/gpu0 to n1/gpu0: tcp instead of nccl");
  other.planned = Transport::kTcp;
  EXPECT_EQ(TransportSurprise({group, other}), "not as planned: group 1: nccl instead of tcp; group 0: tcp instead of nccl");
  group.planned = Transport::kTcp;
  other.planned = Transport::kNccl;
  EXPECT_EQ(TransportSurprise({group, other}), "");
}

}  // namespace
}  // namespace motley::client
