// How the communicator over NCCL ends: aborts, lost peers, networks that break, programs that differ.
#include <gtest/gtest.h>

#include <thread>

#include "absl/synchronization/notification.h"
#include "common/base/fault.h"
#include "tests/worker/engine/nccl/card_ranks.h"
#include "tests/worker/engine/transport/expect_lost.h"
#include "worker/engine/transport/nccl_mesh.h"

namespace motley::engine {
namespace {

class NcclFailuresTest : public testing::Test {
 protected:
  void SetUp() override { TheFakeNccl().Reset(); }
  void TearDown() override { TheFakeNccl().Reset(); }
};

absl::Status Gather(CardRank& one) {
  std::vector<float> array(100, 1);
  return one.communicator().AllGather(0, array.data(), DType::kFloat32, OwnersOf({0, 50, 100}));
}

TEST_F(NcclFailuresTest, AbortFromAnotherThreadEndsABlockedCall) {
  absl::Notification over;
  WithCards(2, [&](CardRank& one) {
    ASSERT_TRUE(one.connected.ok()) << one.connected.status();
    if (one.rank == 1) return over.WaitForNotification();  // never calls
    std::thread other([&one] { one.communicator().Abort("the compute lane failed"); });
    ExpectLost(Gather(one), "all-gather: the compute lane failed");
    other.join();
    ExpectLost(Gather(one), "all-gather: the compute lane failed");
    ExpectLost(one.communicator().Health(), "the compute lane failed");
    EXPECT_FALSE(one.communicator().GatherScalars({0}).ok());
    over.Notify();
  });
}

TEST_F(NcclFailuresTest, AbortOfOneRankEndsTheOthersBlockedCalls) {
  WithCards(3, [&](CardRank& one) {
    ASSERT_TRUE(one.connected.ok()) << one.connected.status();
    std::vector<float> array(90, 1);
    if (one.rank == 2) return one.communicator().Abort("told to");
    HealthWatch watch(one.communicator());
    const absl::Status status = one.communicator().ReduceScatter(0, array.data(), DType::kFloat32, OwnersOf({0, 30, 60, 90}));
    ExpectLost(status, "lost n");
    ExpectLost(watch.FirstError(), "lost n");
  });
}

// Its process is gone: NCCL's kernels on the others wait for ever, the connections close.
TEST_F(NcclFailuresTest, APeerThatDiesInsideACallIsNamed) {
  TheFakeNccl().DieInNextCall("group-0", 1);
  WithCards(2, [&](CardRank& one) {
    ASSERT_TRUE(one.connected.ok()) << one.connected.status();
    if (one.rank == 1) {
      ExpectLost(Gather(one), "this rank died");
      return;
    }
    HealthWatch watch(one.communicator());
    ExpectLost(Gather(one), "all-gather: lost n1/gpu0: the other end closed the connection");
    ExpectLost(watch.FirstError(), "lost n1/gpu0: the other end closed the connection");
  });
}

TEST_F(NcclFailuresTest, ANetworkThatBreaksNamesTheGroupAndItsMembers) {
  absl::Notification over;
  WithCards(2, [&](CardRank& one) {
    ASSERT_TRUE(one.connected.ok()) << one.connected.status();
    if (one.rank == 1) return over.WaitForNotification();
    HealthWatch watch(one.communicator());
    std::thread network([] { TheFakeNccl().Fail("group-0", ncclRemoteError); });
    // Enqueuing finds it, or the watch.
    const absl::Status status = Gather(one);
    ExpectLost(status, "NCCL of group 0 (n0/gpu0, n1/gpu0): ");
    ExpectLost(status, ": remote process exited or there was a network error");
    ExpectLost(watch.FirstError(), "NCCL of group 0 (n0/gpu0, n1/gpu0)");
    network.join();
    over.Notify();
  });
}

TEST_F(NcclFailuresTest, DifferentProgramsAreNoticedAndOurFault) {
  WithCards(2, [&](CardRank& one) {
    ASSERT_TRUE(one.connected.ok()) << one.connected.status();
    std::vector<float> array(100);
    // Rank 1 believes in other shares.
    const Owners owners = one.rank == 0 ? OwnersOf({0, 50, 100}) : OwnersOf({0, 100, 100});
    const absl::Status status = one.communicator().AllGather(0, array.data(), DType::kFloat32, owners);
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
    EXPECT_EQ(FaultOf(status), Fault::kOurs) << status;
    EXPECT_NE(status.message().find("all-gather of 50 float32"), std::string::npos) << status;
    EXPECT_NE(status.message().find("broadcast of 100 float32 from 0"), std::string::npos) << status;
  });
}

TEST_F(NcclFailuresTest, APeerThatIsLostWhileNcclConnectsIsNamed) {
  // Rank 1's NCCL cannot make its communicator.
  NcclApi broken = TheFakeNccl().library.api;
  broken.ncclCommInitRankConfig = [](ncclComm_t*, int, ncclUniqueId, int, ncclConfig_t*) { return ncclSystemError; };
  WithCards(
      2,
      [](CardRank& one) {
        ExpectLost(one.connected.status(), one.rank == 0 ? "lost n1/gpu0: the other end closed the connection"
                                                         : "NCCL of group 0 (n0/gpu0, n1/gpu0): making its communicator");
      },
      [&](CommunicatorOptions& options) {
        if (options.rank == 1) options.nccl.api = &broken;
      });
}

TEST_F(NcclFailuresTest, NobodyWantsItAnyMoreWhileNcclConnects) {
  NcclApi waiting = TheFakeNccl().library.api;
  waiting.ncclCommGetAsyncError = [](ncclComm_t, ncclResult_t* error) {
    *error = ncclInProgress;
    return ncclSuccess;
  };
  std::atomic<int> cancelled = 0;
  WithCards(
      2,
      [&](CardRank& one) {
        // The second one may see the first leave.
        if (absl::IsCancelled(one.connected.status())) ++cancelled;
        EXPECT_TRUE(absl::IsCancelled(one.connected.status()) || absl::IsUnavailable(one.connected.status()))
            << one.connected.status();
      },
      [&](CommunicatorOptions& options) {
        options.nccl.api = &waiting;
        options.stopped = [] { return TheFakeNccl().LiveComms() > 0; };  // from the first NCCL communicator on
      });
  EXPECT_GE(cancelled, 1);
}

// A receive is in its stream and nothing comes: NCCL's word ends it, silence does not.
TEST_F(NcclFailuresTest, AReceiveThatNeverEndsIsNamedWhenNcclKnows) {
  absl::Notification over;
  WithCards(
      2,
      [&](CardRank& one) {
        ASSERT_TRUE(one.connected.ok()) << one.connected.status();
        if (one.rank == 1) return over.WaitForNotification();  // never sends
        HealthWatch watch(one.communicator());
        std::thread network([&] {
          absl::SleepFor(absl::Milliseconds(200));
          EXPECT_TRUE(one.communicator().Health().ok()) << "nobody knows yet";
          TheFakeNccl().Fail("hand-over-1-0", ncclRemoteError);
        });
        char byte = 0;
        EXPECT_FALSE(one.communicator().Receive(1, &byte, 1).ok());
        network.join();
        ExpectLost(watch.FirstError(), "NCCL of hand-overs from n1/gpu0 to n0/gpu0");
        over.Notify();
      },
      [](CommunicatorOptions& options) { (options.rank == 1 ? options.sends_to : options.receives_from) = {1 - options.rank}; });
}

TEST_F(NcclFailuresTest, ManyCommunicatorsHaveMoreTimeToBeMade) {
  CommunicatorOptions options;
  options.devices.resize(1);
  EXPECT_EQ(NcclConnectLimit(options), options.nccl_timeout);
  options.devices.resize(16);
  options.groups.resize(30);
  EXPECT_EQ(NcclConnectLimit(options), 3 * options.nccl_timeout);
}

TEST_F(NcclFailuresTest, AnNcclThatNeverEndsIsAbortedAtTheDeadline) {
  std::atomic<int> at_the_deadline = 0;
  WithCards(
      2,
      [&](CardRank& one) {
        ASSERT_TRUE(one.connected.ok()) << one.connected.status();
        const FakeNcclBehaviour endless{.in_progress_polls = 1'000'000};
        if (one.rank == 0) TheFakeNccl().Behave(&endless);
        ASSERT_TRUE(one.communicator().GatherScalars({0}).ok());
        const absl::Status status = Gather(one);
        ExpectLost(status, "all-gather: ");
        // The second one may see the first leave.
        const bool by_itself = status.message().find("enqueuing: nothing came for 1s") != std::string::npos;
        EXPECT_TRUE(by_itself || status.message().find("lost n") != std::string::npos) << status;
        if (by_itself) ++at_the_deadline;
      },
      [](CommunicatorOptions& options) { options.deadline = absl::Seconds(1); });
  EXPECT_GE(at_the_deadline, 1);
}

}  // namespace
}  // namespace motley::engine
