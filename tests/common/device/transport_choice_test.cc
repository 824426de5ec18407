#include "common/device/transport_choice.h"

#include <gtest/gtest.h>

namespace motley {
namespace {

struct Rank {
  int nccl_version = 22809;
  std::string card{};
};

TransportChoice Choose(const std::vector<Rank>& ranks, const std::vector<int>& members) {
  std::vector<TransportMember> choosing;
  for (const int r : members) {
    const std::string card = ranks[r].card.empty() ? "GPU-" + std::to_string(r) : ranks[r].card;
    choosing.push_back({"n" + std::to_string(r) + "/gpu0", ranks[r].nccl_version, card});
  }
  return ChooseTransport(choosing);
}

TEST(TransportChoice, MembersWithOneNcclUseIt) {
  const TransportChoice choice = Choose({{}, {}, {0}}, {0, 1});
  EXPECT_EQ(choice.transport, Transport::kNccl);
  EXPECT_EQ(choice.why_not_nccl, "");
}

TEST(TransportChoice, WhoIsAloneUsesNothing) { EXPECT_EQ(Choose({{}, {}}, {1}).transport, Transport::kNone); }

TEST(TransportChoice, MembersWithoutNcclUseTcpWithoutAWord) {
  const TransportChoice choice = Choose({{0}, {0}}, {0, 1});
  EXPECT_EQ(choice.transport, Transport::kTcp);
  EXPECT_EQ(choice.why_not_nccl, "");
}

TEST(TransportChoice, AMemberWithoutNcclIsNamed) {
  const TransportChoice choice = Choose({{}, {0}, {}, {0}}, {0, 1, 2, 3});
  EXPECT_EQ(choice.transport, Transport::kTcp);
  EXPECT_EQ(choice.why_not_nccl, "n1/gpu0, n3/gpu0 have no NCCL");
  EXPECT_EQ(Choose({{}, {0}}, {0, 1}).why_not_nccl, "n1/gpu0 has no NCCL");
}

TEST(TransportChoice, VersionsThatDifferAreNamed) {
  const TransportChoice choice = Choose({{}, {22105}, {}}, {0, 1, 2});
  EXPECT_EQ(choice.transport, Transport::kTcp);
  EXPECT_EQ(choice.why_not_nccl,
            "NCCL 2.21.5 on n1/gpu0, 2.28.9 on n0/gpu0, n2/gpu0: ranks of different versions do not understand each other");
  EXPECT_EQ(Choose({{}, {22105}, {}}, {0, 2}).transport, Transport::kNccl);  // the others are none of its business
}

TEST(TransportChoice, TwoRanksOnOneCardNeedALaterNccl) {
  const TransportChoice choice = Choose({{22809, "GPU-a"}, {22809, "GPU-a"}, {}}, {0, 1, 2});
  EXPECT_EQ(choice.transport, Transport::kTcp);
  EXPECT_EQ(choice.why_not_nccl,
            "n0/gpu0, n1/gpu0 are on one card (GPU-a), which NCCL 2.28.9 cannot serve; 2.30.0 is the first that can");
  EXPECT_EQ(Choose({{23004, "GPU-a"}, {23004, "GPU-a"}}, {0, 1}).transport, Transport::kNccl);
}

TEST(TransportChoice, VersionsReadAsNvidiaWritesThem) {
  EXPECT_EQ(NcclVersionText(22809), "2.28.9");
  EXPECT_EQ(NcclVersionText(23004), "2.30.4");
  EXPECT_EQ(NcclVersionText(2708), "2.7.8");
}

}  // namespace
}  // namespace motley
