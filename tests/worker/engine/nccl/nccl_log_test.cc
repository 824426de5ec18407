// Excerpts of logs that people have published.
#include "worker/engine/nccl/nccl_log.h"

#include <gtest/gtest.h>

namespace motley::engine {
namespace {

constexpr bool kGroup = false, kPair = true;

// Reference: NVIDIA/nccl issue 1232.
TEST(NcclLogTest, SocketsAndSharedMemory) {
  NcclLog log;
  const std::string interfaces =
      "node0:13571:13571 [0] NCCL INFO NET/Socket : Using [0]eth0:10.0.0.1<0>\n"
      "node0:13571:13571 [0] NCCL INFO Using network Socket\n";
  const std::string made =
      "node0:13571:13571 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/Socket/0\n"
      "node0:13571:13571 [0] NCCL INFO Channel 00 : 2[1] -> 0[0] via SHM/direct/direct\n"
      "node0:13571:13571 [0] NCCL INFO Connected all trees\n"
      "node0:13571:13571 [0] NCCL INFO 4 coll channels, 0 nvls channels, 4 p2p channels, 2 p2p channels per peer\n";
  EXPECT_EQ(log.LinksOf(interfaces + made, kGroup), (NcclLinks{{"shared memory", "sockets"}, {"eth0"}, 4}));
  EXPECT_EQ(log.LinksOf(made, kPair), (NcclLinks{{"shared memory", "sockets"}, {"eth0"}, 2})) << "interfaces are named once";
}

// Reference: NVIDIA/nccl issue 1358, NVIDIA/nccl-tests issue 224.
TEST(NcclLogTest, RoceBySeveralPorts) {
  NcclLog log;
  EXPECT_EQ(
      log.LinksOf("server1:730585:730605 [1] NCCL INFO NET/IB : Using [0]mlx5_0:1/RoCE [1]mlx5_3:1/RoCE [2]mlx5_4:1/RoCE "
                  "[3]mlx5_5:1/RoCE [RO]; OOB ens3f0:10.158.112.21<0>\n"
                  "lambda-server-1:13353:13386 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] [send] via NET/IB/0/GDRDMA\n"
                  "lambda-server-1:13353:13386 [0] NCCL INFO Channel 01/0 : 0[0] -> 1[1] [send] via NET/IB/1/GDRDMA\n"
                  "lambda-server-1:13353:13422 [0] NCCL INFO Channel 02/1 : 0[0] -> 1[1] [send] via NET/IB/0/GDRDMA/Shared\n",
                  kPair),
      (NcclLinks{{"RoCE"}, {"mlx5_0", "mlx5_3"}, 0}));
}

// Reference: NVIDIA/nccl-tests issues 228 and 252.
TEST(NcclLogTest, InfiniBandAlsoOfAPlugin) {
  NcclLog log;
  EXPECT_EQ(log.LinksOf("user:5181:5232 [2] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_2:1/IB [RO]; OOB "
                        "ibs85f0:192.168.1.10<0>\n"
                        "kolyoz1:27225:27907 [3] NCCL INFO Channel 03/0 : 7[3] -> 3[3] [receive] via NET/IBext_v8/1/GDRDMA\n",
                        kGroup),
            (NcclLinks{{"InfiniBand"}, {"mlx5_2"}, 0}));
  EXPECT_EQ(
      NcclLog().LinksOf("a:1:2 [0] NCCL INFO Channel 00/0 : 1[0] -> 0[0] [receive] via NET/AWS Libfabric/0/GDRDMA\n", kGroup),
      (NcclLinks{{"AWS Libfabric"}, {}, 0}));
}

// Reference: NVIDIA/nccl issue 1189. A pattern's first type is that between the cards of a node.
TEST(NcclLogTest, CardsThatReachEachOther) {
  const std::string pattern =
      "H20-GPU-05:1789225:1789736 [1] NCCL INFO Pattern 4, crossNic 1, nChannels 4, bw 24.000000/24.000000, ";
  const std::string made =
      "job-worker-0:5663:5809 [0] NCCL INFO Channel 04/0 : 0[0] -> 7[7] via P2P/CUMEM\n"
      "H20-GPU-06:4015540:4015653 [1] NCCL INFO 8 coll channels, 0 collnet channels, 0 nvls channels, 8 p2p channels, 2 p2p "
      "channels per peer\n";
  EXPECT_EQ(NcclLog().LinksOf(pattern + "type NVL/PIX, sameChannels 0\n" + made, kGroup), (NcclLinks{{"NVLink"}, {}, 8}));
  EXPECT_EQ(NcclLog().LinksOf(pattern + "type PHB/PIX, sameChannels 0\n" + made, kGroup), (NcclLinks{{"PCIe"}, {}, 8}));
  EXPECT_EQ(NcclLog().LinksOf(made, kGroup), (NcclLinks{{"P2P"}, {}, 8}));
}

// As NCCL 2.30.7 wrote it on an H200, for two ranks of one process on it.
TEST(NcclLogTest, TwoRanksOnOneCard) {
  NcclLog log;
  const std::string said =
      "vm:1013:1013 [0] NCCL INFO NET/IB : Using [RO]; OOB lo:127.0.0.1<0>\n"
      "vm:1013:1013 [0] NCCL INFO NET/Socket : Using [0]lo:127.0.0.1<0>\n"
      "vm:1013:1344 [0] NCCL INFO Using network Socket\n"
      "vm:1013:1344 [0] NCCL INFO comm 0x7f5fa4325420 rank 0 nRanks 2 nNodes 1 localRanks 2 localRank 0 MNNVL 0\n"
      "vm:1013:1344 [0] NCCL INFO Pattern 4, crossNic 0, nChannels 32, bw 60.000000/60.000000, type LOC/PIX, sameChannels 1\n"
      "vm:1013:1344 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] via P2P/direct pointer\n"
      "vm:1013:1345 [0] NCCL INFO Channel 00/0 : 1[0] -> 0[0] via P2P/direct pointer\n"
      "vm:1013:1344 [0] NCCL INFO 8 coll channels, 8 collnet channels, 0 nvls channels, 8 p2p channels, 2 p2p channels per "
      "peer\n";
  EXPECT_EQ(log.LinksOf(said, kGroup), (NcclLinks{{"one card"}, {}, 8}));
  EXPECT_EQ(log.LinksOf(said, kPair), (NcclLinks{{"one card"}, {}, 2}));
}

// Reference: NVIDIA/nccl issue 1412.
TEST(NcclLogTest, AMemberInsideItsNodeKnowsOfTheNetwork) {
  NcclLog log;
  const std::string inside =
      "swat1-04:2017630:2017675 [6] NCCL INFO comm 0x8ec0ac0 rank 6 nRanks 16 nNodes 2 localRanks 8 localRank 6 MNNVL 0\n"
      "swat1-04:2017630:2017675 [6] NCCL INFO Channel 00/0 : 6[6] -> 3[3] via P2P/IPC\n";
  EXPECT_EQ(log.LinksOf("swat1-04:2017630:2017675 [6] NCCL INFO NET/Socket : Using [0]eno1:10.1.2.3<0>\n"
                        "swat1-04:2017630:2017675 [6] NCCL INFO Using network Socket\n" +
                            inside,
                        kGroup),
            (NcclLinks{{"P2P", "sockets"}, {"eno1"}, 0}));
}

TEST(NcclLogTest, WhatSaysNothingIsUnknown) {
  EXPECT_EQ(NcclLog().LinksOf("", kGroup), std::nullopt);
  EXPECT_EQ(
      NcclLog().LinksOf("a:1:2 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.1<0>\nNET/IB : Using [x]:/ []a [7\n via \n", kPair),
      std::nullopt);
  EXPECT_EQ(NcclLog().LinksOf("a:1:2 [0] NCCL INFO Channel 00/0 : 0 -> 1 via NET/\n", kGroup), std::nullopt);
}

}  // namespace
}  // namespace motley::engine
