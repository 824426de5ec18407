// Tests that need a card: the first that the process sees. Without one they are skipped by name.
#pragma once

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <memory>

#include "worker/engine/device/cuda_backend.h"

namespace motley::engine {

inline bool HasCard() {
  int driver = 0, cards = 0;
  return cudaDriverGetVersion(&driver) == cudaSuccess && driver > 0 && cudaGetDeviceCount(&cards) == cudaSuccess && cards > 0;
}

inline DeviceDescription TheCard() {
  DeviceDescription card;
  card.id = DeviceId("n0/gpu0");
  card.kind = DeviceKind::kCuda;
  return card;
}

class CardTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!HasCard()) GTEST_SKIP() << "no GPU";
    auto opened = OpenBackend(TheCard(), "127.0.0.1");
    ASSERT_TRUE(opened.ok()) << opened.status();
    card_ = *std::move(opened);
  }
  DeviceBackend& card() { return *card_; }

 private:
  std::unique_ptr<DeviceBackend> card_;
};

}  // namespace motley::engine
