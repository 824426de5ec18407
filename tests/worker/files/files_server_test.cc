#include "worker/files/files_server.h"

#include <gmock/gmock.h>
#include <grpcpp/client_context.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/checkpoint/checkpoint.h"
#include "common/checkpoint/checkpoint_folders.h"
#include "common/rpc/channel.h"
#include "common/rpc/tls_credentials.h"
#include "common/wire/files.h"
#include "proto/motley/v1/files.grpc.pb.h"
#include "tests/common/base/patience.h"
#include "tests/common/base/temp_folder.h"
#include "tests/worker/files/files_giver.h"
#include "worker/files/files_reader.h"
#include "worker/files/job_folder.h"

namespace motley::worker {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

const JobUid kUid(std::string(32, '1')), kAnotherUid(std::string(32, '2'));
constexpr char kName[] = "step-00000040-gen-3";

class FilesServerTest : public ::testing::Test {
 protected:
  FilesServerTest() {
    server_->SetSecret("secret");
    checkpoints_ = LocalCheckpoints(local_.path(), JobId("job"), kUid);
    for (size_t i = 0; i < 2 * static_cast<size_t>(kCheckpointBlockBytes) + 1000; ++i) {
      bytes_ += static_cast<char>(i * 31 + i / 4096);
    }
    Write(absl::StrCat(kName, "/rank-0.bin"), bytes_);
  }
  void Write(const std::string& name, const std::string& bytes) const {
    const fs::path path = fs::path(checkpoints_) / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << bytes;
  }
  int64_t NowMs() const { return absl::ToUnixMillis(clock_.WallNow()); }
  FilesTicket Ticket() const { return MakeFilesTicket("secret", reader_.digest, kUid, NowMs() + 1000); }
  std::string Address() const { return absl::StrCat("127.0.0.1:", server_->port()); }

  // What comes, by block.
  absl::StatusOr<std::map<int64_t, std::string>> Read(const std::string& file, const std::vector<int64_t>& blocks,
                                                      const FilesTicket& ticket, const std::string& checkpoint = kName,
                                                      const JobId& job = JobId("job")) const {
    const CheckpointHolder holder = {NodeName("b"), Address(), identity_.digest, ticket, true, {}};
    std::map<int64_t, std::string> read;
    const absl::Status status =
        ReadBlocks(holder, {reader_, job, checkpoint}, file, blocks, [&](int64_t block, std::string_view bytes) {
          read[block] = std::string(bytes);
          return absl::OkStatus();
        });
    if (!status.ok()) return status;
    return read;
  }
  absl::StatusOr<std::map<int64_t, std::string>> Read(const std::string& file, const std::vector<int64_t>& blocks) const {
    return Read(file, blocks, Ticket());
  }
  // By a name that is none, or of what is not there.
  void ExpectRefused(absl::StatusCode code, const std::string& file, const std::string& checkpoint = kName,
                     const JobId& job = JobId("job")) const {
    const auto read = Read(file, {0}, Ticket(), checkpoint, job);
    EXPECT_EQ(read.status().code(), code) << checkpoint << "/" << file << ": " << read.status();
    EXPECT_THAT(std::string(read.status().message()), Not(HasSubstr(local_.path())));
  }

  const TempFolder local_;
  std::string checkpoints_, bytes_;
  FakeClock clock_;
  const FilesIdentity identity_ = NewFilesIdentity(), reader_ = NewFilesIdentity();
  const std::unique_ptr<FilesServer> server_ = FilesServer::Start(local_.path(), "127.0.0.1", identity_, clock_).value();
};

TEST_F(FilesServerTest, GivesWholeBlocksAndTheLastOne) {
  const auto read = Read("rank-0.bin", {0, 2});
  ASSERT_TRUE(read.ok()) << read.status();
  constexpr size_t kBlock = static_cast<size_t>(kCheckpointBlockBytes);
  ASSERT_EQ(read->size(), 2u);
  EXPECT_TRUE(read->at(0) == bytes_.substr(0, kBlock));
  EXPECT_TRUE(read->at(2) == bytes_.substr(2 * kBlock));
}

TEST_F(FilesServerTest, GivesAManifestWhole) {
  const std::string text(static_cast<size_t>(kCheckpointBlockBytes) + 1000, 'm');
  Write(absl::StrCat(kName, "/manifest.json"), text);
  const auto read = Read("", {0});
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE(read->at(0) == text);
}

TEST_F(FilesServerTest, GivesFilesOfABaseWhole) {
  const std::string base = "base-0123456789abcdef", text(static_cast<size_t>(kCheckpointBlockBytes) + 1000, 't');
  Write(base + "/base.json", "{}");
  Write(base + "/files/additional_chat_templates/tool.jinja", text);
  EXPECT_EQ(Read(base + "/base.json", {0})->at(0), "{}");
  EXPECT_TRUE(Read(base + "/files/additional_chat_templates/tool.jinja", {0})->at(0) == text);
  Write("other/base.json", "{}");
  Write(base + "/job-x", "x");
  fs::create_symlink("/etc/hostname", fs::path(checkpoints_) / base / "files/link");
  for (const char* name : {"other/base.json", "base-0123456789abcdef/job-x", "base-0123456789abcdef/files/../base.json",
                           "base-0123456789abcdef", "base-0123456789abcdef/"}) {
    ExpectRefused(absl::StatusCode::kInvalidArgument, name);
  }
  ExpectRefused(absl::StatusCode::kNotFound, base + "/files/link");
  ExpectRefused(absl::StatusCode::kNotFound, "base-0123456789abcde0/base.json");
}

TEST_F(FilesServerTest, GivesWhatWasNotGivenItsNameYet) {
  Write(absl::StrCat(TemporaryCheckpointFolderName(40, 3, kUid), "/rank-1.bin"), "unpublished");
  EXPECT_EQ(Read("rank-1.bin", {0})->at(0), "unpublished");
  Write(absl::StrCat(kName, "/rank-1.bin"), "published");
  EXPECT_EQ(Read("rank-1.bin", {0})->at(0), "published");
}

TEST_F(FilesServerTest, LetsNobodyInWithoutATicketOfTheirOwn) {
  EXPECT_TRUE(Read("rank-0.bin", {2}).ok());
  const auto refused = [&](const FilesTicket& ticket) {
    return absl::IsPermissionDenied(Read("rank-0.bin", {2}, ticket).status());
  };
  EXPECT_TRUE(refused({})) << "none";
  EXPECT_TRUE(refused(MakeFilesTicket("secret", identity_.digest, kUid, NowMs() + 1000))) << "another reader's";
  EXPECT_TRUE(refused(MakeFilesTicket("other", reader_.digest, kUid, NowMs() + 1000))) << "for another node";
  FilesTicket ticket = MakeFilesTicket("secret", reader_.digest, kAnotherUid, NowMs() + 1000);
  EXPECT_EQ(Read("rank-0.bin", {2}, ticket).status().code(), absl::StatusCode::kNotFound) << "of a job that has nothing here";
  ticket.job_uid = kUid;
  EXPECT_TRUE(refused(ticket)) << "of another job";
  ticket = Ticket();
  clock_.Advance(absl::Seconds(2));
  EXPECT_TRUE(refused(ticket)) << "over";
  ticket.expires_unix_ms = NowMs() + 1000;
  EXPECT_TRUE(refused(ticket)) << "made longer";
  server_->SetSecret("another");
  EXPECT_TRUE(refused(Ticket())) << "of the secret before";
}

TEST_F(FilesServerTest, WithoutASecretNobodyIsLetIn) {
  const std::unique_ptr<FilesServer> fresh = FilesServer::Start(local_.path(), "127.0.0.1", identity_, clock_).value();
  const FilesTicket ticket = MakeFilesTicket("", reader_.digest, kUid, NowMs() + 1000);
  const CheckpointHolder holder = {NodeName("b"), absl::StrCat("127.0.0.1:", fresh->port()), identity_.digest, ticket, true, {}};
  EXPECT_TRUE(absl::IsPermissionDenied(ReadBlocks(holder, {reader_, JobId("job"), kName}, "rank-0.bin", {0},
                                                  [](int64_t, std::string_view) { return absl::OkStatus(); })));
}

// One call of a client with these credentials, and its first part.
grpc::Status CallOnce(const std::string& address, const v1::ReadRequest& request,
                      const std::shared_ptr<grpc::ChannelCredentials>& credentials) {
  const auto stub = v1::Files::NewStub(OpenChannel(address, DirectArguments(), credentials));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
  const auto stream = stub->Read(&context, request);
  v1::ReadPart part;
  while (stream->Read(&part)) {
  }
  return stream->Finish();
}

TEST_F(FilesServerTest, LetsNobodyInWithoutACertificate) {
  v1::ReadRequest request;
  request.set_job_id("job");
  request.set_checkpoint(kName);
  request.set_file("rank-0.bin");
  request.add_blocks(0);
  *request.mutable_ticket() = wire::ToProto(Ticket());
  const auto believing = [](const std::vector<Certificate>&) { return absl::OkStatus(); };
  EXPECT_TRUE(CallOnce(Address(), request, TlsUnsignedCredentials(reader_.key, reader_.certificate, believing)).ok());
  EXPECT_FALSE(CallOnce(Address(), request, TlsCredentialsJudging(believing)).ok());
  EXPECT_FALSE(CallOnce(Address(), request, grpc::InsecureChannelCredentials()).ok());
}

TEST_F(FilesServerTest, TakesNamesAndNoPaths) {
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  for (const std::string& file :
       {std::string("../rank-0.bin"), std::string("/etc/passwd"), std::string("rank-0.bin/"), std::string("rank-.bin"),
        std::string("rank-0.bin\0", 11), std::string("rank--1.bin"), std::string("manifest.json"), std::string("mark"),
        std::string(".."), std::string("rank-1234567890.bin")}) {
    ExpectRefused(kInvalid, file);
  }
  for (const std::string& checkpoint :
       {std::string(""), std::string("."), std::string(".."), absl::StrCat("../checkpoints/", kName), absl::StrCat(kName, "/"),
        absl::StrCat("/", kName), TemporaryCheckpointFolderName(40, 3, kUid), CheckpointFolderName(40, 3, kUid),
        std::string("step-40-gen-3"), std::string("step-00000040"), absl::StrCat("x", kName)}) {
    ExpectRefused(kInvalid, "rank-0.bin", checkpoint);
  }
  for (const std::string& job : {std::string(""), std::string(".."), std::string("../jobs/job"), std::string("job/")}) {
    ExpectRefused(kInvalid, "rank-0.bin", kName, JobId(job));
  }
  ExpectRefused(absl::StatusCode::kNotFound, "rank-0.bin", kName, JobId("another"));
  ExpectRefused(absl::StatusCode::kNotFound, "rank-7.bin");
  ExpectRefused(absl::StatusCode::kNotFound, "rank-0.bin", "step-00000060-gen-3");
}

TEST_F(FilesServerTest, FollowsNoLink) {
  const std::string secret = local_.Write("secret/rank-0.bin", "not the job's"), folder = checkpoints_ + "/" + kName;
  fs::create_symlink(secret, folder + "/rank-1.bin");
  fs::create_symlink("rank-0.bin", folder + "/rank-2.bin");
  fs::create_directory_symlink(local_ / "secret", checkpoints_ + "/step-00000060-gen-3");
  ASSERT_EQ(mkfifo((folder + "/rank-3.bin").c_str(), 0600), 0);
  fs::create_directory(folder + "/rank-4.bin");
  for (const char* file : {"rank-1.bin", "rank-2.bin", "rank-3.bin", "rank-4.bin"}) {
    ExpectRefused(absl::StatusCode::kNotFound, file);
  }
  ExpectRefused(absl::StatusCode::kNotFound, "rank-0.bin", "step-00000060-gen-3");
  fs::rename(checkpoints_, checkpoints_ + "-moved");
  fs::create_directory_symlink(checkpoints_ + "-moved", checkpoints_);
  ExpectRefused(absl::StatusCode::kNotFound, "rank-0.bin");
}

TEST_F(FilesServerTest, HasNoBlockBeyondTheEnd) {
  const auto beyond = Read("rank-0.bin", {1, 3});
  EXPECT_EQ(beyond.status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_THAT(std::string(beyond.status().message()), HasSubstr("rank-0.bin of step-00000040-gen-3 has 3 blocks here"));
  EXPECT_EQ(Read("rank-0.bin", {-1}).status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(Read("rank-0.bin", {int64_t{1} << 60}).status().code(), absl::StatusCode::kOutOfRange);
}

TEST_F(FilesServerTest, MoreReadersThanItServesAreToldToComeAgain) {
  // More than connections hold: who does not read on keeps its place.
  constexpr int64_t kBlocks = 64;
  ASSERT_EQ(truncate((checkpoints_ + "/" + kName + "/rank-0.bin").c_str(), kBlocks * kCheckpointBlockBytes), 0);
  v1::ReadRequest request;
  *request.mutable_ticket() = wire::ToProto(Ticket());
  request.set_job_id("job");
  request.set_checkpoint(kName);
  request.set_file("rank-0.bin");
  for (int64_t block = 0; block < kBlocks; ++block) request.add_blocks(block);
  struct Slow {
    std::unique_ptr<v1::Files::Stub> stub;
    grpc::ClientContext context;
    std::unique_ptr<grpc::ClientReader<v1::ReadPart>> stream;
  };
  std::vector<std::unique_ptr<Slow>> slow;
  for (int i = 0; i < kMostReaders; ++i) {
    slow.push_back(std::make_unique<Slow>());
    slow.back()->stub = v1::Files::NewStub(
        OpenChannel(Address(), DirectArguments(),
                    TlsUnsignedCredentials(reader_.key, reader_.certificate, [](const auto&) { return absl::OkStatus(); })));
    slow.back()->stream = slow.back()->stub->Read(&slow.back()->context, request);
    v1::ReadPart part;
    ASSERT_TRUE(slow.back()->stream->Read(&part));
  }
  EXPECT_TRUE(absl::IsResourceExhausted(Read("rank-0.bin", {0}).status()));
  slow.front()->context.TryCancel();
  (void)slow.front()->stream->Finish();
  const absl::Time end = absl::Now() + Patience(absl::Seconds(20));
  while (!Read("rank-0.bin", {0}).ok()) ASSERT_LT(absl::Now(), end);
  for (size_t i = 1; i < slow.size(); ++i) {
    slow[i]->context.TryCancel();
    (void)slow[i]->stream->Finish();
  }
}

TEST_F(FilesServerTest, AnAddressOfAnotherMachineIsSaid) {
  const auto started = FilesServer::Start(local_.path(), "192.0.2.1", identity_, clock_);
  EXPECT_TRUE(absl::IsUnavailable(started.status()));
  EXPECT_THAT(std::string(started.status().message()), HasSubstr("worker.data_address 192.0.2.1"));
}

}  // namespace
}  // namespace motley::worker
