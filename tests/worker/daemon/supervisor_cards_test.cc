// The supervisor and cards: what a rank on one is given, and whose fault its end is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "tests/common/base/patience.h"
#include "tests/worker/daemon/fake_cards.h"
#include "tests/worker/daemon/test_assignment.h"
#include "worker/daemon/supervisor.h"

namespace motley::worker {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using Kind = RankEventKind;

constexpr char kLost[] = "n1/gpu0: GPU is lost (fell off the bus)";
constexpr absl::Duration kNever = absl::Hours(1);

class SupervisorCardsTest : public ::testing::Test {
 protected:
  SupervisorCardsTest() : metrics_(registry_, "n1", {}), card_metrics_(registry_, "n1"), card_(fake_.Add()) {}

  // Looks come every `period`, besides those that are asked for.
  void Begin(absl::Duration period) {
    fake_.Write();
    watch_.reset();
    nvml_ = *NvmlLibrary::Open();
    OfferedDevice card;
    card.description = Assignment("").device;
    card.description.memory_bytes = 45 * kCardGiB;
    card.rank_binary = "/proc/self/exe";
    card.card_index = 0;
    watch_ = std::make_unique<CardWatch>(
        *nvml_, std::vector<OfferedDevice>{card}, card_metrics_, [this](const CardReport& report) { outbox_.Push(report); },
        period);
    SupervisorConfig config;
    config.devices = {card};
    config.cards = watch_.get();
    config.tick = absl::Milliseconds(10);
    supervisor_ = std::make_unique<Supervisor>(config, clock_, outbox_, metrics_);
  }

  static RankAssignment Assignment(const std::string& behaviour) {
    RankAssignment assignment = TestAssignment(behaviour);
    assignment.device.kind = DeviceKind::kCuda;
    assignment.device.card.uuid = "GPU-0abc0";
    return assignment;
  }
  // The next report of the type; an empty one after 20 s.
  template <typename Report>
  Report Next() {
    const absl::Duration deadline = clock_.Now() + Patience(absl::Seconds(20));
    while (clock_.Now() < deadline) {
      outbox_.Wait(absl::Milliseconds(100), /*for_reports=*/true);
      const std::optional<WorkerReport> report = outbox_.TryPop();
      if (report && std::holds_alternative<Report>(*report)) return std::get<Report>(*report);
    }
    ADD_FAILURE() << "the report did not come";
    return {};
  }
  // The first word that is not "ready".
  RankReport End() {
    RankReport report = Next<RankReport>();
    return report.kind == Kind::kReady ? Next<RankReport>() : report;
  }

  SystemClock clock_;
  MetricsRegistry registry_;
  WorkerMetrics metrics_;
  CardMetrics card_metrics_;
  Outbox outbox_;
  FakeCards fake_;
  nlohmann::json& card_;
  std::unique_ptr<NvmlLibrary> nvml_;
  std::unique_ptr<CardWatch> watch_;
  std::unique_ptr<Supervisor> supervisor_;
};

TEST_F(SupervisorCardsTest, ARankSeesItsCardAlone) {
  setenv("CUDA_VISIBLE_DEVICES", "7", 1);
  Begin(kNever);
  supervisor_->Start({{Assignment("card")}});
  EXPECT_EQ(Next<LogReport>().text, "CUDA_VISIBLE_DEVICES=GPU-0abc0");
  unsetenv("CUDA_VISIBLE_DEVICES");
}

TEST_F(SupervisorCardsTest, ALostCardEndsARankThatWaitsForIt) {
  Begin(absl::Milliseconds(50));
  supervisor_->Start({{Assignment("until-stopped")}});
  EXPECT_EQ(Next<RankReport>().kind, Kind::kReady);
  card_["lost"] = true;
  fake_.Write();
  EXPECT_EQ(Next<CardReport>().lost, "GPU is lost (fell off the bus)") << "before its consequences";
  const RankReport end = Next<RankReport>();
  EXPECT_EQ(end.kind, Kind::kDied);
  EXPECT_EQ(end.message, kLost);
}

TEST_F(SupervisorCardsTest, TheFirstCauseIsTheCardAndNotWhatItsRankSays) {
  for (const char* behaviour : {"fail-when-stopped", "exit-when-stopped"}) {
    Begin(kNever);
    supervisor_->Start({{Assignment(behaviour)}});
    EXPECT_EQ(Next<RankReport>().kind, Kind::kReady);
    card_["lost"] = true;
    fake_.Write();
    supervisor_->Stop({JobId("job"), Epoch(1), /*save=*/true, "so that the rank ends"});
    const RankReport end = Next<RankReport>();
    EXPECT_EQ(end.kind, Kind::kDied);
    EXPECT_THAT(end.message, StartsWith(std::string(kLost) + "; the rank"));
    EXPECT_THAT(end.message, HasSubstr(behaviour[0] == 'f' ? "said: " : "exited with status 3"));
    supervisor_.reset();
    card_["lost"] = false;
  }
}

TEST_F(SupervisorCardsTest, ALostCardGetsNoRank) {
  card_["lost"] = true;
  Begin(kNever);
  supervisor_->Start({{Assignment("train")}});
  const RankReport end = End();
  EXPECT_EQ(end.kind, Kind::kDied) << "the job goes on without it";
  EXPECT_EQ(end.message, kLost);
}

TEST_F(SupervisorCardsTest, ACardThatOthersFilledGetsNoRank) {
  Begin(kNever);
  card_["processes"] = {{{"pid", 4711}, {"bytes", 30 * kCardGiB}}};
  fake_.Write();
  supervisor_->Start({{Assignment("train")}});
  const RankReport end = End();
  EXPECT_EQ(end.kind, Kind::kFailed) << "it repeats by itself";
  EXPECT_THAT(end.message, StartsWith("n1/gpu0: others hold 30.0 GiB of the card's memory now"));
}

TEST_F(SupervisorCardsTest, AMeasurementOnAFilledCardSaysSo) {
  Begin(kNever);
  card_["processes"] = {{{"pid", 4711}, {"bytes", 30 * kCardGiB}}};
  fake_.Write();
  ProfileCommand command;
  command.job = JobId("job");
  command.epoch = Epoch(1);
  command.ranks = {Assignment("train")};
  command.compute_devices = {DeviceId("n1/gpu0")};
  supervisor_->Profile(command);
  EXPECT_THAT(Next<ProfileReport>().error, HasSubstr("the ranks could not be started: n1/gpu0: others hold 30.0 GiB"));
}

TEST_F(SupervisorCardsTest, AProfileSaysHowItsCardWas) {
  card_["throttle"] = nvml::kSwPowerCap;
  Begin(absl::Milliseconds(10));
  ProfileCommand command;
  command.job = JobId("job");
  command.epoch = Epoch(1);
  command.ranks = {Assignment("measure-long")};
  command.compute_devices = {DeviceId("n1/gpu0")};
  supervisor_->Profile(command);
  const auto report = Next<ProfileReport>();
  ASSERT_EQ(report.compute.size(), 1u) << report.error;
  EXPECT_EQ(report.compute[0].load.sm_clock_mhz, 1410);
  EXPECT_DOUBLE_EQ(report.compute[0].load.watts, 120.5);
  EXPECT_TRUE(report.compute[0].load.at_power_limit);
}

}  // namespace
}  // namespace motley::worker
