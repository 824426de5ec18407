#include "worker/daemon/card_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/worker/daemon/fake_cards.h"

namespace motley::worker {
namespace {

using ::testing::HasSubstr;

constexpr absl::Duration kLong = absl::Seconds(60);  // looks come when they are asked for
const DeviceId kDevice("n1/gpu0");

class CardWatchTest : public ::testing::Test {
 protected:
  CardWatchTest() : metrics_(registry_, "n1"), card_(fake_.Add()) {}

  void Start(int64_t used_by_others = 0) {
    fake_.Write();
    auto nvml = NvmlLibrary::Open();
    ASSERT_TRUE(nvml.ok()) << nvml.status();
    nvml_ = *std::move(nvml);
    OfferedDevice device;
    device.description.id = kDevice;
    device.description.card.used_by_others_bytes = used_by_others;
    device.description.card.power_limit_watts = 72;
    device.card_index = 0;
    OfferedDevice cpu;
    cpu.description.id = DeviceId("n1/cpu0");
    watch_ = std::make_unique<CardWatch>(
        *nvml_, std::vector<OfferedDevice>{cpu, device}, metrics_,
        [this](const CardReport& report) {
          absl::MutexLock lock(&mutex_);
          reports_.push_back(report);
        },
        kLong);
    ASSERT_EQ(Look(), "");
  }
  std::string Look() {
    fake_.Write();
    return watch_->LookAgain(kDevice, kLong);
  }
  std::vector<CardReport> Reports() {
    absl::MutexLock lock(&mutex_);
    return reports_;
  }

  FakeCards fake_;
  MetricsRegistry registry_;
  CardMetrics metrics_;
  nlohmann::json& card_;
  std::unique_ptr<NvmlLibrary> nvml_;
  absl::Mutex mutex_;
  std::vector<CardReport> reports_;
  std::unique_ptr<CardWatch> watch_;
};

TEST_F(CardWatchTest, WhatTheCardDoesIsInTheMetrics) {
  card_["used"] = 3 * kCardGiB;
  card_["throttle"] = nvml::kSwPowerCap;
  card_["xids"] = {31, 43};
  Start(3 * kCardGiB);
  const std::string text = registry_.ToText();
  for (const char* line :
       {"motley_device_utilization_ratio{device=\"gpu0\",node=\"n1\"} 0.87",
        "motley_device_power_watts{device=\"gpu0\",node=\"n1\"} 120.5",
        "motley_device_temperature_celsius{device=\"gpu0\",node=\"n1\"} 45",
        "motley_device_memory_used_bytes{device=\"gpu0\",node=\"n1\"} 3221225472",
        "motley_device_throttled{device=\"gpu0\",node=\"n1\",reason=\"power_cap\"} 1",
        "motley_device_throttled{device=\"gpu0\",node=\"n1\",reason=\"thermal\"} 0",
        "motley_device_ecc_errors_total{device=\"gpu0\",node=\"n1\"} 0",
        "motley_device_xid_errors_total{device=\"gpu0\",node=\"n1\"} 2", "motley_device_lost{device=\"gpu0\",node=\"n1\"} 0"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
  EXPECT_TRUE(Reports().empty()) << "programs' errors and a power limit are no fault of the card";
  EXPECT_EQ(watch_->Lost(DeviceId("n1/cpu0")), "");
  EXPECT_TRUE(registry_.status().ok()) << registry_.status();
}

TEST_F(CardWatchTest, ACardThatFallsOffTheBusIsLostForGood) {
  Start();
  card_["lost"] = true;
  EXPECT_EQ(Look(), "n1/gpu0: GPU is lost (fell off the bus)");
  ASSERT_EQ(Reports().size(), 1u);
  EXPECT_EQ(Reports()[0].device, kDevice);
  EXPECT_EQ(Reports()[0].lost, "GPU is lost (fell off the bus)");
  EXPECT_EQ(watch_->reports()[0].lost, Reports()[0].lost) << "the next hello has it";
  EXPECT_EQ(watch_->MayStart(kDevice, 1).code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(registry_.ToText(), HasSubstr("motley_device_lost{device=\"gpu0\",node=\"n1\"} 1"));
  card_["lost"] = false;
  EXPECT_EQ(Look(), "n1/gpu0: GPU is lost (fell off the bus)") << "until the worker starts again";
  EXPECT_EQ(Reports().size(), 1u);
}

TEST_F(CardWatchTest, ErrorsOfTheCardItselfLoseIt) {
  Start();
  card_["xids"] = {13, 79};
  EXPECT_EQ(Look(), "n1/gpu0: GPU failed: it fell off the bus (Xid 79)");
  EXPECT_EQ(LostByXid(48), "GPU failed: a memory error that ECC could not correct (Xid 48)");
  EXPECT_EQ(LostByXid(31), "") << "a program's wrong address";
}

TEST_F(CardWatchTest, AnUncorrectableErrorLosesTheCard) {
  Start();
  card_["ecc"] = 1;
  EXPECT_EQ(Look(), "n1/gpu0: its memory had 1 error since the driver was loaded that ECC could not correct");
  EXPECT_THAT(registry_.ToText(), HasSubstr("motley_device_ecc_errors_total{device=\"gpu0\",node=\"n1\"} 1"));
}

TEST_F(CardWatchTest, AnErrorThatTheCardContainedIsReported) {
  card_["capability"] = 80;
  Start();
  card_["ecc"] = 1;
  card_["xids"] = {48, 94};
  EXPECT_EQ(Look(), "");
  ASSERT_EQ(Reports().size(), 1u);
  EXPECT_THAT(Reports()[0].health, HasSubstr("1 error since the driver was loaded that ECC could not correct, but the card"));
  card_["xids"] = {48, 94, 95};
  EXPECT_EQ(Look(), "n1/gpu0: GPU failed: a memory error that ECC could not contain (Xid 95)");
}

// Of the rest before, of the boost and of what little the end asks for, nothing is kept.
TEST_F(CardWatchTest, ALoadIsWhatTheCardEndsAt) {
  Start();
  watch_->BeginLoad(kDevice);
  watch_->BeginLoad(DeviceId("n1/cpu0"));
  const auto look_at = [&](int clock, int milliwatts, unsigned long long throttle) {
    card_["clock"] = clock;
    card_["power"] = milliwatts;
    card_["throttle"] = throttle;
    EXPECT_EQ(Look(), "");
  };
  look_at(300, 16000, 0);
  look_at(2040, 68000, 0);
  look_at(1035, 71800, nvml::kSwPowerCap);
  look_at(2040, 40000, nvml::kSwThermal);
  EXPECT_EQ(watch_->EndLoad(kDevice),
            (CardLoad{.sm_clock_mhz = 1035, .watts = 71.8, .power_limit_watts = 72, .at_power_limit = true}));
  EXPECT_EQ(watch_->EndLoad(kDevice), CardLoad()) << "it has ended";
  EXPECT_EQ(watch_->EndLoad(DeviceId("n1/cpu0")), CardLoad());
}

TEST_F(CardWatchTest, ACardThatSlowsDownIsReportedOnce) {
  Start();
  card_["throttle"] = nvml::kSwThermal;
  EXPECT_EQ(Look(), "");
  EXPECT_EQ(Look(), "");
  ASSERT_EQ(Reports().size(), 1u);
  EXPECT_EQ(Reports()[0].health, "slowed down: heat");
  card_["throttle"] = 0;
  EXPECT_EQ(Look(), "");
  ASSERT_EQ(Reports().size(), 2u);
  EXPECT_EQ(Reports()[1].health, "");
}

TEST_F(CardWatchTest, MemoryThatOthersTookIsSeenBeforeARankStarts) {
  fake_.all["names"] = {{"4711", "/usr/bin/python3"}};
  card_["processes"] = {{{"pid", 4711}, {"bytes", kCardGiB}}};
  Start(2 * kCardGiB);  // one of them in a container that hides its processes
  const int64_t offered = 45 * kCardGiB;
  EXPECT_TRUE(watch_->MayStart(kDevice, offered).ok());
  EXPECT_TRUE(Reports().empty());
  card_["processes"][0]["bytes"] = 4 * kCardGiB;
  fake_.Write();
  EXPECT_TRUE(watch_->MayStart(kDevice, offered).ok()) << "within the tenth that plans leave";
  ASSERT_EQ(Reports().size(), 1u);
  EXPECT_EQ(Reports()[0].used_by_others_bytes, 5 * kCardGiB);
  card_["processes"][0]["bytes"] = 20 * kCardGiB;
  fake_.Write();
  const absl::Status full = watch_->MayStart(kDevice, offered);
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(full.message()),
              HasSubstr("others hold 21.0 GiB of the card's memory now, and held 2.0 GiB when the worker offered 45.0 GiB; "
                        "26.5 GiB are left (python3 (process 4711) 20.0 GiB): end what holds it"));
}

TEST_F(CardWatchTest, OwnRanksAreNotOthers) {
  Start();
  const pid_t rank = fork();
  if (rank == 0) {
    while (true) pause();
  }
  card_["processes"] = {{{"pid", rank}, {"bytes", 40 * kCardGiB}}};
  fake_.Write();
  EXPECT_TRUE(watch_->MayStart(kDevice, 45 * kCardGiB).ok());
  EXPECT_TRUE(Reports().empty());
  kill(rank, SIGKILL);
  waitpid(rank, nullptr, 0);
}

TEST_F(CardWatchTest, WhereProcessesAreHiddenNothingIsKnown) {
  card_.erase("processes");
  Start();
  EXPECT_TRUE(watch_->MayStart(kDevice, 45 * kCardGiB).ok());
}

}  // namespace
}  // namespace motley::worker
