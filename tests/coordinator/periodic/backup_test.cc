#include "coordinator/periodic/backup.h"

#include <sys/stat.h>

#include "tests/coordinator/core/core_fixture.h"

namespace motley::coordinator {
namespace {

class BackupTest : public CoreTest {
 protected:
  // What the executor would do beside the loop, done when the test says so.
  struct Aside : public Executor {
    void Run(std::function<void()> work, std::function<void()> done) override {
      waiting.push_back([work, done] { work(), done(); });
    }
    void Finish() {
      for (const auto& each : std::exchange(waiting, {})) each();
    }
    std::vector<std::function<void()>> waiting;
  };
  BackupTest() {
    config_.backup_folder = folder_ + "/kept";
    config_.backup_every = absl::Seconds(60);
    std::filesystem::create_directory(config_.backup_folder);
    chmod(config_.backup_folder.c_str(), 0700);
    core_ = std::make_unique<Core>(config_, clock_, *store_, aside_, registry_, [](std::function<void()> task) { task(); });
  }
  ~BackupTest() override { core_.reset(); }
  void Change() { core_->Emit(EventRecord()); }
  void Turn() {
    BackUp(*core_);
    aside_.Finish();
  }
  int Kept() const {
    return static_cast<int>(
        std::distance(std::filesystem::directory_iterator(config_.backup_folder), std::filesystem::directory_iterator()));
  }
  int Events(const char* kind) {
    int count = 0;
    for (const EventRecord& event : *store_->EventsAfter(JobId(), 0, 1000)) count += event.kind == kind;
    return count;
  }
  Aside aside_;
};

TEST_F(BackupTest, EveryMinuteWhereSomethingChanged) {
  Turn();
  EXPECT_EQ(Kept(), 1);
  Change();
  clock_.Advance(absl::Seconds(59));
  Turn();
  EXPECT_EQ(Kept(), 1);
  clock_.Advance(absl::Seconds(1));
  Turn();
  EXPECT_EQ(Kept(), 2);
  clock_.Advance(absl::Hours(1));
  Turn();
  EXPECT_EQ(Kept(), 2) << "nothing changed";
}

TEST_F(BackupTest, OneAtATime) {
  BackUp(*core_);
  Change();
  clock_.Advance(absl::Minutes(5));
  BackUp(*core_);
  EXPECT_EQ(aside_.waiting.size(), 1u);
}

TEST_F(BackupTest, OneThatDoesNotEndIsSaid) {
  BackUp(*core_);
  clock_.Advance(absl::Minutes(6));
  BackUp(*core_);
  BackUp(*core_);
  EXPECT_EQ(Events(kind::kBackupFailed), 1);
  aside_.Finish();
  EXPECT_EQ(Events(kind::kBackupWorks), 1);
}

TEST_F(BackupTest, AFailureIsSaidOnceAndItsEnd) {
  std::filesystem::remove(config_.backup_folder);
  for (int minute = 0; minute < 5; ++minute) {
    Turn();
    clock_.Advance(absl::Minutes(1));
  }
  EXPECT_EQ(Events(kind::kBackupFailed), 1);
  std::filesystem::create_directory(config_.backup_folder);
  chmod(config_.backup_folder.c_str(), 0700);
  Turn();
  EXPECT_EQ(Events(kind::kBackupWorks), 1);
  EXPECT_EQ(Kept(), 1);
}

TEST_F(BackupTest, WithoutAFolderThereIsNone) {
  config_.backup_folder.clear();
  BackUp(*core_);
  EXPECT_TRUE(aside_.waiting.empty());
}

}  // namespace
}  // namespace motley::coordinator
