#include "common/fault.h"

#include <gtest/gtest.h>

namespace motley {
namespace {

TEST(FaultTest, IsKeptByTheStatus) {
  for (const Fault fault : {Fault::kOurs, Fault::kPeer, Fault::kStorage, Fault::kDamage}) {
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

}  // namespace
}  // namespace motley
