// A peer is gone, and the message says so.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "common/base/fault.h"
#include "gtest/gtest.h"

namespace motley::engine {

inline void ExpectLost(const absl::Status& status, const std::string& text) {
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_EQ(FaultOf(status), Fault::kPeer) << status;
  EXPECT_NE(status.message().find(text), std::string::npos) << status;
}

}  // namespace motley::engine
