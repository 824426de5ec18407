// Streams of people and of nodes, joined by the coordinator; nodes come by TLS.
#include "coordinator/rpc/carries.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "common/checkpoint/checkpoint_folders.h"
#include "tests/coordinator/rpc/members_fixture.h"

namespace motley::coordinator {
namespace {

using ::testing::HasSubstr;

using Stream = grpc::ClientReaderWriter<v1::CarryMessage, v1::CarryMessage>;

constexpr char kDigest[] = "digest of a manifest";
const std::string kName = CheckpointFolderName(40, 3);

// One end, of a person or a node.
class End {
 public:
  template <typename Stub>
  explicit End(Stub& stub) {
    context_.set_deadline(absl::ToChronoTime(absl::Now() + Patience(absl::Seconds(60))));
    stream_ = stub.Carry(&context_);
  }
  bool Write(const v1::CarryMessage& message) { return stream_->Write(message); }
  // Without anything: the stream is over.
  v1::CarryMessage Read() {
    v1::CarryMessage message;
    stream_->Read(&message);
    return message;
  }
  grpc::Status Finish() {
    v1::CarryMessage message;
    while (stream_->Read(&message)) {
    }
    return stream_->Finish();
  }
  void Cancel() { context_.TryCancel(); }
  void SayDone() { stream_->WritesDone(); }

 private:
  grpc::ClientContext context_;
  std::unique_ptr<Stream> stream_;
};

class CarriesTest : public MembersTest {
 protected:
  CarriesTest() : key_(Key()) {
    for (const char* node : {"n1", "n2"}) identities_.emplace(node, Member(node));
  }
  // A worker whose disk has the manifest and these files.
  std::unique_ptr<FakeWorker> JoinWith(const std::string& node, const std::vector<std::string>& files,
                                       int protocol = kSessionProtocol) {
    FakeWorker::Options options;
    options.protocol = protocol;
    options.on_holdings = [this, node, files](const v1::HoldingsRequest& request, v1::Holdings* holdings) {
      v1::HeldCheckpoint* held = holdings->add_checkpoints();
      held->set_name(kName);
      held->set_manifest_sha256(kDigest);
      held->set_mark(key_.MarkOf(JobUid(request.job_uid()), Epoch(3), 40, kDigest));
      held->set_epoch(3);
      held->set_step(40);
      for (const char* name : {"rank-0.bin", "rank-1.bin"}) {
        v1::HeldFile* file = held->add_files();
        file->set_name(name);
        file->set_bytes(100);
        file->set_node(std::string(name) == "rank-0.bin" ? "n1" : "n2");
        file->set_here(std::count(files.begin(), files.end(), name) > 0);
      }
      return true;
    };
    options.on_carry = [this, node](const v1::CarryRequest& request) {
      if (refuses_) {
        const auto stub = StubOf(TlsNodeCredentials(identities_.at(node)));
        End end(*stub);
        v1::CarryMessage first;
        first.set_carry_id(request.carry_id());
        end.Write(first);
        end.Write(EndOf(absl::StatusCode::kNotFound, "by the node"));
        end.Finish();
        return;
      }
      absl::MutexLock lock(&mutex_);
      asked_.emplace_back(node, request);
    };
    return Join(node, As(identities_.at(node), std::move(options)));
  }
  void SubmitLocal() {
    JobConfig config = MakeConfig(10);
    config.checkpoint.folder.clear();
    config.checkpoint.storage = "local";
    ASSERT_TRUE(Submit("a", config).ok());
  }
  std::pair<std::string, v1::CarryRequest> Asked() {
    absl::MutexLock lock(&mutex_);
    const auto some = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !asked_.empty(); };
    if (!mutex_.AwaitWithTimeout(absl::Condition(&some), Patience(absl::Seconds(30)))) {
      ADD_FAILURE() << "no node was asked";
      return {};
    }
    auto first = asked_.front();
    asked_.erase(asked_.begin());
    return first;
  }
  static v1::CarryMessage Begin(const std::string& file, const std::vector<std::string>& not_from = {},
                                const std::string& job = "a") {
    v1::CarryMessage message;
    message.mutable_begin()->set_job_id(job);
    message.mutable_begin()->set_file(file);
    for (const std::string& node : not_from) message.mutable_begin()->add_not_from(node);
    return message;
  }
  std::unique_ptr<End> Person(const v1::CarryMessage& begin) {
    auto end = std::make_unique<End>(*stub_);
    end->Write(begin);
    return end;
  }
  std::unique_ptr<End> Node(const std::string& node, const std::string& carry_id) {
    stubs_.push_back(StubOf(TlsNodeCredentials(identities_.at(node))));
    auto end = std::make_unique<End>(*stubs_.back());
    v1::CarryMessage first;
    first.set_carry_id(carry_id);
    end->Write(first);
    return end;
  }
  grpc::Status Refused(const v1::CarryMessage& begin) { return Person(begin)->Finish(); }
  // Both ends of one that is under way.
  struct Pair {
    std::unique_ptr<End> person, node;
  };
  Pair Joined(const std::string& file = "rank-1.bin", const std::string& node = "n2") {
    Pair pair;
    pair.person = Person(Begin(file));
    const auto [asked, request] = Asked();
    EXPECT_EQ(asked, node);
    pair.node = Node(node, request.carry_id());
    const v1::CarryMessage begun = pair.person->Read();
    EXPECT_EQ(begun.begun().node(), node);
    return pair;
  }
  static v1::CarryMessage ReadOf(int64_t block) {
    v1::CarryMessage message;
    message.mutable_read()->add_blocks(block);
    return message;
  }
  static v1::CarryMessage Part(int64_t block, const std::string& bytes) {
    v1::CarryMessage message;
    message.mutable_part()->set_block(block);
    message.mutable_part()->set_bytes(bytes);
    return message;
  }
  static v1::CarryMessage EndOf(absl::StatusCode code, const std::string& error) {
    v1::CarryMessage message;
    message.mutable_end()->set_code(static_cast<int>(code));
    message.mutable_end()->set_error(error);
    return message;
  }

  const NumberKey key_;
  std::map<std::string, NodeIdentity> identities_;
  std::atomic<bool> refuses_ = false;  // a node that is asked, at once
  absl::Mutex mutex_;
  std::vector<std::pair<std::string, v1::CarryRequest>> asked_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<v1::WorkerService::Stub>> stubs_;
};

TEST_F(CarriesTest, WhatOneEndSaysTheOtherHears) {
  const auto n1 = JoinWith("n1", {"rank-0.bin"}), n2 = JoinWith("n2", {"rank-1.bin"});
  SubmitLocal();
  const auto person = Person(Begin("rank-1.bin"));
  const auto [asked, request] = Asked();
  EXPECT_EQ(asked, "n2") << "who has it";
  EXPECT_EQ(request.job_id(), "a");
  EXPECT_EQ(request.job_uid(), GetJob("a").uid());
  EXPECT_EQ(request.checkpoint(), kName);
  EXPECT_EQ(request.file(), "rank-1.bin");
  const auto node = Node("n2", request.carry_id());
  const v1::CarryBegun begun = person->Read().begun();
  EXPECT_EQ(begun.node(), "n2");
  EXPECT_EQ(begun.checkpoint(), kName);
  EXPECT_EQ(begun.manifest_sha256(), kDigest);
  EXPECT_EQ(begun.mark().size(), 32u);
  for (int64_t block = 0; block < 3; ++block) {
    ASSERT_TRUE(person->Write(ReadOf(block)));
    EXPECT_EQ(node->Read().read().blocks(0), block);
    for (int part = 0; part < 50; ++part) ASSERT_TRUE(node->Write(Part(block, std::string(100'000, static_cast<char>(part)))));
    v1::CarryMessage answered;
    answered.set_answered(true);
    ASSERT_TRUE(node->Write(answered));
    for (int part = 0; part < 50; ++part) {
      const v1::CarryMessage came = person->Read();
      EXPECT_EQ(came.part().block(), block);
      EXPECT_EQ(came.part().bytes(), std::string(100'000, static_cast<char>(part)));
    }
    EXPECT_TRUE(person->Read().answered());
  }
  EXPECT_TRUE(person->Write(EndOf(absl::StatusCode::kOk, "")));
  EXPECT_TRUE(person->Finish().ok());
  EXPECT_TRUE(node->Finish().ok());
}

TEST_F(CarriesTest, EachEndHearsHowTheOtherEnds) {
  const auto n1 = JoinWith("n1", {"rank-0.bin"}), n2 = JoinWith("n2", {"rank-1.bin"});
  SubmitLocal();
  {
    const Pair pair = Joined();
    pair.node->Write(Part(0, "some"));
    pair.node->Write(EndOf(absl::StatusCode::kNotFound, "it is not here"));
    EXPECT_EQ(pair.person->Read().part().bytes(), "some");
    const grpc::Status end = pair.person->Finish();
    EXPECT_EQ(end.error_code(), grpc::StatusCode::NOT_FOUND);
    EXPECT_EQ(end.error_message(), "it is not here");
  }
  {
    const Pair pair = Joined();
    pair.node->Cancel();
    const grpc::Status end = pair.person->Finish();
    EXPECT_EQ(end.error_code(), grpc::StatusCode::UNAVAILABLE);
    EXPECT_EQ(end.error_message(), "node n2 broke it off");
  }
  {
    const Pair pair = Joined();
    pair.person->Cancel();
    EXPECT_EQ(pair.node->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  }
  {
    const Pair pair = Joined();
    pair.node->Write(ReadOf(0));
    EXPECT_EQ(pair.person->Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT) << "nodes do not read here";
  }
  {
    const Pair pair = Joined();
    pair.person->Write(Begin("rank-1.bin"));
    EXPECT_EQ(pair.person->Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  }
  {
    const Pair pair = Joined();
    pair.node->Write(Part(0, std::string((1 << 20) + 1, 'x')));
    EXPECT_EQ(pair.person->Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  }
}

TEST_F(CarriesTest, OthersAreAskedThanThoseThatFailed) {
  const auto n1 = JoinWith("n1", {"rank-0.bin", "rank-1.bin"}), n2 = JoinWith("n2", {"rank-1.bin"});
  SubmitLocal();
  const auto of = [&](const std::string& file, const std::vector<std::string>& not_from) {
    const auto person = Person(Begin(file, not_from));
    return Asked().first;
  };
  EXPECT_EQ(of("rank-1.bin", {}), "n1");
  EXPECT_EQ(of("rank-1.bin", {"n1"}), "n2");
  EXPECT_EQ(of("", {"n1"}), "n2") << "the manifest";
  EXPECT_EQ(of("base-0123456789abcdef/base.json", {"n2"}), "n1");
  const grpc::Status none = Refused(Begin("rank-1.bin", {"n1", "n2"}));
  EXPECT_EQ(none.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(none.error_message(), "no other node that is here has rank-1.bin of checkpoint " + kName);
}

TEST_F(CarriesTest, WhatCannotBeCarriedIsSaid) {
  const auto n1 = JoinWith("n1", {"rank-0.bin"});
  SubmitLocal();
  EXPECT_EQ(Refused(Begin("", {}, "none")).error_code(), grpc::StatusCode::NOT_FOUND);
  const grpc::Status lacks = Refused(Begin(""));
  EXPECT_EQ(lacks.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(lacks.error_message(), absl::StrCat("no checkpoint of job a is whole on the nodes that are here; of ", kName,
                                                " lacks rank-1.bin of node n2"));
  v1::CarryMessage named = Begin("rank-0.bin");
  named.mutable_begin()->set_checkpoint("step-00000041-gen-3");
  EXPECT_EQ(Refused(named).error_message(), "no node that is here has checkpoint step-00000041-gen-3 any more");
  EXPECT_EQ(Refused(ReadOf(0)).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  const auto silent = std::make_unique<End>(*stub_);
  silent->SayDone();
  EXPECT_EQ(silent->Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  ASSERT_TRUE(Submit("shared", MakeConfig(10)).ok());
  const grpc::Status shared = Refused(Begin("", {}, "shared"));
  EXPECT_EQ(shared.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(shared.error_message(), HasSubstr("keeps its checkpoints in " + folder_));
}

TEST_F(CarriesTest, OnlyTheNodeThatWasToldMayCome) {
  const auto n1 = JoinWith("n1", {"rank-0.bin"}), n2 = JoinWith("n2", {"rank-1.bin"});
  SubmitLocal();
  EXPECT_EQ(Node("n1", "invented")->Finish().error_code(), grpc::StatusCode::NOT_FOUND);
  const auto person = Person(Begin("rank-1.bin"));
  const std::string id = Asked().second.carry_id();
  EXPECT_EQ(Node("n1", id)->Finish().error_code(), grpc::StatusCode::PERMISSION_DENIED);
  stubs_.push_back(StubOf(Nobodys()));
  EXPECT_EQ(End(*stubs_.back()).Finish().error_code(), grpc::StatusCode::UNAUTHENTICATED);
  const auto node = Node("n2", id);
  EXPECT_EQ(person->Read().begun().node(), "n2") << "it waited on";
  EXPECT_EQ(Node("n2", id)->Finish().error_code(), grpc::StatusCode::NOT_FOUND) << "a second time";
}

TEST_F(CarriesTest, TooManyAreToldToComeAgain) {
  const auto n1 = JoinWith("n1", {"rank-0.bin", "rank-1.bin"});
  SubmitLocal();
  std::vector<std::unique_ptr<End>> persons;
  for (size_t i = 0; i < kMostCarries; ++i) persons.push_back(Person(Begin("")));
  for (size_t i = 0; i < kMostCarries; ++i) Asked();
  const grpc::Status more = Refused(Begin(""));
  EXPECT_EQ(more.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  persons.back()->Cancel();
  persons.back()->Finish();
  persons.pop_back();
  refuses_ = true;
  grpc::Status again;
  do {  // its end is noticed a moment later
    again = Refused(Begin(""));
  } while (again.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(again.error_message(), "by the node");
}

// A coordinator that ends waits for none of them.
TEST_F(CarriesTest, EndWithTheCoordinator) {
  const auto n1 = JoinWith("n1", {"rank-0.bin"}), n2 = JoinWith("n2", {"rank-1.bin"});
  SubmitLocal();
  const Pair pair = Joined();
  const auto waiting = Person(Begin("rank-0.bin"));
  Asked();
  server_.reset();
  EXPECT_FALSE(pair.person->Finish().ok());
  EXPECT_FALSE(pair.node->Finish().ok());
  EXPECT_FALSE(waiting->Finish().ok());
}

}  // namespace
}  // namespace motley::coordinator
