// The files process, spawned as the worker does it: this test program itself (main_test.cc).
#include "worker/daemon/files_child.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/session/files_ticket.h"
#include "common/wire/session.h"
#include "tests/common/base/patience.h"
#include "tests/worker/daemon/test_assignment.h"
#include "tests/worker/files/files_giver.h"
#include "tests/worker/files/saved_checkpoint.h"
#include "worker/daemon/frame.h"
#include "worker/daemon/spawn.h"

namespace motley::worker {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class FilesChild {
 public:
  FilesChild(const std::string& local, const std::string& node, const std::string& address = "127.0.0.1")
      : process_(Spawn("/proc/self/exe", {kFilesChildWord, local, address, node}, {}, {}).value()) {}
  ~FilesChild() { Close(); }
  // Its exit status.
  int Close() {
    if (process_.pid < 0) return -1;
    process_.socket.Reset();
    int status = 0;
    waitpid(process_.pid, &status, 0);
    process_.pid = -1;
    return status;
  }
  void Tell(const CoordinatorCommand& command) {
    ASSERT_TRUE(WriteAll(process_.socket.get(), EncodeFrame(wire::ToProto(command).SerializeAsString())).ok());
  }
  // What it says next.
  template <typename Report>
  Report Next() {
    const absl::Time end = absl::Now() + Patience(absl::Seconds(30));
    while (absl::Now() < end) {
      const auto frame = decoder_.Next();
      v1::WorkerMessage message;
      if (frame.ok() && frame->has_value() && message.ParseFromString(**frame)) {
        const std::optional<WorkerReport> report = wire::FromProto(message);
        if (report && std::holds_alternative<Report>(*report)) return std::get<Report>(*report);
        ADD_FAILURE() << message.ShortDebugString();
        return {};
      }
      pollfd ready = {process_.socket.get(), POLLIN, 0};
      poll(&ready, 1, 100);
      char buffer[1 << 12];
      const ssize_t n = recv(process_.socket.get(), buffer, sizeof(buffer), MSG_DONTWAIT);
      if (n > 0) decoder_.Append(std::string_view(buffer, static_cast<size_t>(n)));
      if (n == 0) break;
    }
    ADD_FAILURE() << "no answer";
    return {};
  }
  pid_t pid() const { return process_.pid; }

 private:
  SpawnedProcess process_;
  FrameDecoder decoder_;
};

class FilesChildTest : public ::testing::Test {
 protected:
  HoldingsCommand Ask(const std::string& check) const { return {saved_.job, Epoch(5), saved_.uid, check, "secret"}; }
  HoldingsReport Asked(FilesChild& child) const {
    child.Tell(Ask("check"));
    return child.Next<HoldingsReport>();
  }
  // That goes on from what the first child's node has.
  StartCommand Start(const HoldingsReport& giver, const HoldingsReport& reader, const std::vector<std::string>& files) const {
    StartCommand command;
    command.ranks = {TestAssignment("", 5, 0), TestAssignment("", 5, 1)};
    for (RankAssignment& rank : command.ranks) {
      rank.job = saved_.job;
      rank.job_uid = saved_.uid;
      rank.model = saved_.manifest.model;
      rank.ownership = saved_.ownership;
    }
    const int64_t expires = absl::ToUnixMillis(absl::Now() + absl::Hours(1));
    command.source = {saved_.name,
                      ManifestDigest(saved_.text),
                      "",
                      {{NodeName("a"), absl::StrCat("127.0.0.1:", giver.port), giver.certificate,
                        MakeFilesTicket("secret", reader.certificate, saved_.uid, expires), true, files}}};
    return command;
  }

  const SavedCheckpoint saved_;
  const TempFolder a_, b_;
};

TEST_F(FilesChildTest, SaysWhatItsDiskHas) {
  const std::string local = a_ / "new/files";
  FilesChild child(local, "a");
  HoldingsReport report = Asked(child);
  EXPECT_EQ(report.error, "");
  EXPECT_EQ(report.job, saved_.job);
  EXPECT_EQ(report.epoch, Epoch(5));
  EXPECT_EQ(report.check_id, "check");
  EXPECT_GT(report.port, 0);
  EXPECT_EQ(report.certificate.size(), 64u);
  EXPECT_GT(report.free_bytes, 0);
  EXPECT_TRUE(report.held.checkpoints.empty());
  const std::string folder = LocalCheckpoints(local, saved_.job, saved_.uid);
  for (fs::path path = folder; path != fs::path(local).parent_path(); path = path.parent_path()) {
    EXPECT_EQ(fs::status(path).permissions(), fs::perms::owner_all) << path;
  }
  EXPECT_TRUE(fs::is_empty(folder));
  EXPECT_EQ(getpriority(PRIO_PROCESS, static_cast<id_t>(child.pid())), 10);

  saved_.PutOn(local, {"rank-0.bin"});
  report = Asked(child);
  ASSERT_EQ(report.held.checkpoints.size(), 1u);
  EXPECT_EQ(report.held.checkpoints[0].name, saved_.name);
  EXPECT_EQ(report.held.checkpoints[0].manifest_digest, ManifestDigest(saved_.text));
  EXPECT_EQ(WEXITSTATUS(child.Close()), 0);
}

TEST_F(FilesChildTest, SaysWhyItCanKeepNothing) {
  FilesChild child(a_.path(), "a");
  HoldingsCommand ask = Ask("check");
  ask.job_uid = JobUid("../b");
  child.Tell(ask);
  EXPECT_EQ(child.Next<HoldingsReport>().error_code, absl::StatusCode::kInvalidArgument);
  ask = Ask("check");
  ask.job = JobId("..");
  child.Tell(ask);
  EXPECT_EQ(child.Next<HoldingsReport>().error_code, absl::StatusCode::kInvalidArgument);

  FilesChild no_address(b_.path(), "b", "192.0.2.1");
  EXPECT_THAT(Asked(no_address).error, HasSubstr("192.0.2.1"));
  const std::string file = a_.Write("file", "");
  FilesChild no_folder(file, "c");
  const HoldingsReport report = Asked(no_folder);
  EXPECT_NE(report.error_code, absl::StatusCode::kOk);
  EXPECT_THAT(report.error, HasSubstr(file));
  EXPECT_EQ(report.check_id, "check");
}

TEST_F(FilesChildTest, AFolderIsOneWorkersAlone) {
  auto first = std::make_unique<FilesChild>(a_.path(), "a");
  EXPECT_EQ(Asked(*first).error, "");
  FilesChild second(a_.path(), "b");
  for (int i = 0; i < 2; ++i) {
    const HoldingsReport report = Asked(second);
    EXPECT_EQ(report.error_code, absl::StatusCode::kFailedPrecondition);
    EXPECT_EQ(report.error,
              absl::StrCat("another worker keeps its files in ", a_.path(), "; give each worker a [files] local of its own"));
  }
  first.reset();
  EXPECT_EQ(Asked(second).error, "") << "it was the other's only as long as that lived";
}

TEST_F(FilesChildTest, BringsFromAnotherNodeWhatRanksGoOnFrom) {
  saved_.PutOn(a_.path(), saved_.files);
  FilesChild a(a_.path(), "a"), b(b_.path(), "b");
  const HoldingsReport giver = Asked(a), reader = Asked(b);
  b.Tell(Start(giver, reader, saved_.files));
  FetchReport report = b.Next<FetchReport>();
  const int64_t bytes = saved_.manifest.files[0].bytes + saved_.manifest.files[1].bytes;
  EXPECT_EQ(report.bytes, bytes);
  while (!report.done && report.error.empty()) report = b.Next<FetchReport>();
  EXPECT_EQ(report.error, "");
  EXPECT_EQ(report.job, saved_.job);
  EXPECT_EQ(report.epoch, Epoch(5));
  EXPECT_EQ(report.bytes_here, bytes);
  const std::string resume = ResumeFolder(b_.path(), saved_.job, saved_.uid, saved_.name);
  EXPECT_EQ(VerifyCheckpoint(resume, saved_.manifest), absl::OkStatus());

  // What is here is linked and not brought: where a rank may write nothing leads back.
  saved_.PutOn(b_.path(), saved_.files);
  b.Tell(Start(giver, reader, {}));
  report = b.Next<FetchReport>();
  while (!report.done && report.error.empty()) report = b.Next<FetchReport>();
  EXPECT_EQ(report.error, "");
  EXPECT_EQ(report.bytes, 0);
}

TEST_F(FilesChildTest, KeepsACopyAndDeletesIt) {
  saved_.PutOn(a_.path(), saved_.files);
  saved_.PutOn(b_.path(), {"rank-1.bin"});
  FilesChild a(a_.path(), "a"), b(b_.path(), "b");
  const HoldingsReport giver = Asked(a), reader = Asked(b);
  const CopyCommand copy{saved_.job,     Epoch(5), saved_.uid, "copy-1", Start(giver, reader, saved_.files).source,
                         {"rank-0.bin"}, 0};
  b.Tell(copy);
  b.Tell(copy);  // the limit alone: it does not begin again
  FetchReport report = b.Next<FetchReport>();
  while (!report.done && report.error.empty()) report = b.Next<FetchReport>();
  EXPECT_EQ(report.error, "");
  EXPECT_EQ(report.copy_id, "copy-1");
  EXPECT_EQ(report.bytes_here, saved_.manifest.files[0].bytes);
  const std::string folder = saved_.FolderOn(b_.path(), saved_.name);
  EXPECT_EQ(VerifyCheckpoint(folder, saved_.manifest), absl::OkStatus());
  b.Tell(DropCommand{
      saved_.job, Epoch(5), saved_.uid, {{Epoch(SavedCheckpoint::kEpoch), SavedCheckpoint::kStep, ManifestDigest(saved_.text)}}});
  EXPECT_TRUE(Asked(b).held.checkpoints.empty());
  EXPECT_FALSE(fs::exists(folder));
}

TEST_F(FilesChildTest, ACopyIsCalledOff) {
  const FilesGiver silent([](grpc::ServerContext& context, const v1::ReadRequest&, FilesGiver::Writer&) {
    while (!context.IsCancelled()) std::this_thread::yield();
    return grpc::Status::CANCELLED;
  });
  saved_.PutOn(b_.path(), {"rank-1.bin"});
  FilesChild child(b_.path(), "b");
  CopyCommand copy{saved_.job, Epoch(5), saved_.uid, "copy-1", Start({}, {}, {}).source, {"rank-0.bin"}, 0};
  copy.source.holders = {silent.Holder("a", saved_.files)};
  child.Tell(copy);
  FetchReport first;
  for (int tries = 0; tries < 3 && first.bytes == 0; ++tries) first = child.Next<FetchReport>();
  EXPECT_GT(first.bytes, 0);
  copy.bytes_per_second = 1000;
  child.Tell(copy);  // another limit: it does not begin again
  copy.files.clear();
  child.Tell(copy);
  EXPECT_EQ(Asked(child).error, "") << "and no word of the copy";
}

TEST_F(FilesChildTest, SaysWhatCouldNotBeBrought) {
  saved_.PutOn(a_.path(), {"rank-0.bin"});
  FilesChild a(a_.path(), "a"), b(b_.path(), "b");
  const HoldingsReport giver = Asked(a), reader = Asked(b);
  b.Tell(Start(giver, reader, saved_.files));
  FetchReport report = b.Next<FetchReport>();
  while (!report.done && report.error.empty()) report = b.Next<FetchReport>();
  EXPECT_FALSE(report.done);
  EXPECT_EQ(report.error_code, absl::StatusCode::kNotFound);
  EXPECT_THAT(report.error, HasSubstr("rank-1.bin of step-00000040-gen-3 could not be brought: node a: "));
}

TEST_F(FilesChildTest, WhatStartsFromNothingIsReadyAtOnce) {
  FilesChild child(a_.path(), "a");
  StartCommand start = Start({}, {}, {});
  start.source = {};
  child.Tell(start);
  const FetchReport report = child.Next<FetchReport>();
  EXPECT_TRUE(report.done);
  EXPECT_EQ(report.bytes, 0);
}

// A giver that says nothing: nobody waits for it whom a stop, or a later start, has reached.
TEST_F(FilesChildTest, AStopOrALaterStartEndsTheOneUnderWay) {
  const FilesGiver silent([](grpc::ServerContext& context, const v1::ReadRequest&, FilesGiver::Writer&) {
    while (!context.IsCancelled()) std::this_thread::yield();
    return grpc::Status::CANCELLED;
  });
  saved_.PutOn(b_.path(), {});
  FilesChild child(b_.path(), "b");
  StartCommand start = Start({}, {}, saved_.files);
  start.source.holders = {silent.Holder("a", saved_.files)};
  child.Tell(start);
  EXPECT_GT(child.Next<FetchReport>().bytes, 0);
  child.Tell(StopCommand{saved_.job, Epoch(4), false, "of an older generation", ""});
  child.Tell(StopCommand{JobId("another"), Epoch(5), false, "of another job", ""});
  child.Tell(StopCommand{saved_.job, Epoch(5), false, "", ""});
  EXPECT_EQ(Asked(child).error, "") << "and no report of the start before";

  child.Tell(start);
  EXPECT_GT(child.Next<FetchReport>().bytes, 0);
  start.source = {};
  for (RankAssignment& rank : start.ranks) rank.epoch = Epoch(6);
  child.Tell(start);
  const FetchReport report = child.Next<FetchReport>();
  EXPECT_TRUE(report.done);
  EXPECT_EQ(report.epoch, Epoch(6));
  EXPECT_EQ(WEXITSTATUS(child.Close()), 0);
}

}  // namespace
}  // namespace motley::worker
