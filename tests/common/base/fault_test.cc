#include "common/base/fault.h"

#include <gtest/gtest.h>

namespace motley {
namespace {

TEST(FaultTest, IsKeptByTheStatus) {
  for (const Fault fault : {Fault::kOurs, Fault::kPeer, Fault::kStorage, Fault::kDamage, Fault::kNode, Fault::kMemory}) {
    const absl::Status status = WithFault(absl::UnavailableError("why"), fault);
    EXPECT_EQ(FaultOf(status), fault);
    EXPECT_EQ(status.message(), "why");
    EXPECT_EQ(ParseFault(FaultName(fault)), fault);
  }
  EXPECT_EQ(ParseFault("nobody"), std::nullopt);
}

TEST(FaultTest, WhatNobodyClaimedIsOursExceptDamage) {
  EXPECT_EQ(FaultOf(absl::DataLossError("cut off")), Fault::kDamage);
  EXPECT_EQ(FaultOf(absl::UnavailableError("a peer, or a disk?")), Fault::kOurs);
  EXPECT_TRUE(WithFault(absl::OkStatus(), Fault::kPeer).ok());
}

TEST(FaultTest, DamageCarriesTheCheckpoint) {
  const absl::Status damaged = WithDamagedCheckpoint(absl::DataLossError("altered"), "/c/step-00000040-gen-3");
  EXPECT_EQ(DamagedCheckpointOf(damaged), "/c/step-00000040-gen-3");
  EXPECT_EQ(FaultOf(damaged), Fault::kDamage);
  EXPECT_EQ(DamagedCheckpointOf(WithDamagedCheckpoint(WithFault(absl::UnavailableError("x"), Fault::kStorage), "/c")), "");
  EXPECT_TRUE(WithDamagedCheckpoint(absl::OkStatus(), "/c").ok());
}

TEST(FaultTest, BlameIsAField) {
  const absl::Status blamed = WithBlamedDevice(WithFault(absl::UnavailableError("gone"), Fault::kStorage), "n2/gpu0");
  EXPECT_EQ(BlamedDeviceOf(blamed), "n2/gpu0");
  EXPECT_EQ(FaultOf(blamed), Fault::kStorage);
  EXPECT_EQ(BlamedDeviceOf(WithBlamedDevice(absl::UnavailableError("gone"), "")), "");
  EXPECT_TRUE(WithBlamedDevice(absl::OkStatus(), "n2/gpu0").ok());
}

}  // namespace
}  // namespace motley
