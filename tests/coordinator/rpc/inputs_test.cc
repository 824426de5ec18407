// Inputs of jobs, sent by somebody and passed on from node to node; nodes are played.
#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "common/job/job_input.h"
#include "common/session/files_ticket.h"
#include "tests/coordinator/rpc/replan_fixture.h"

namespace motley::coordinator {
namespace {

using ::testing::HasSubstr;

using Stream = grpc::ClientReaderWriter<v1::CarryMessage, v1::CarryMessage>;

const JobInput kWords{std::string(64, 'a'), "words.txt"};

class Inputs : public Replan {
 protected:
  JobConfig Config() {
    JobConfig config = MakeConfig(10);
    config.data.path = PathOf(kWords);
    return config;
  }
  // One whose disk has these inputs; what it is told to bring it brings at once, or fails to.
  FakeWorker::Options WithDisk(const std::string& node) {
    FakeWorker::Options options;
    options.on_holdings = [this, node](const v1::HoldingsRequest& request, v1::Holdings* holdings) {
      absl::MutexLock lock(&mutex_);
      secrets_[node] = request.files_secret();
      for (const std::string& input : request.inputs()) {
        if (disks_[node].contains(input)) holdings->add_inputs(input);
      }
      holdings->set_free_bytes(node == "n2" ? 2000 : 1000);
      holdings->set_part_bytes(parts_[node]);
      return true;
    };
    options.on_copy = [this, node](const v1::CopyRequest& request, v1::FetchProgress* end) {
      absl::MutexLock lock(&mutex_);
      asked_.emplace_back(node, request);
      end->set_input(request.input());
      if (const auto error = errors_.find(node); error != errors_.end()) {
        end->set_done(false);
        end->set_error(error->second);
        return;
      }
      const bool whole =
          request.source().verify() || (!request.source().holders().empty() && request.source().holders(0).manifest());
      end->set_done(whole);  // else it comes as it comes there
      if (whole) disks_[node].insert(request.input());
    };
    options.on_carry = [this, node](const v1::CarryRequest& request) {
      absl::MutexLock lock(&mutex_);
      carries_.emplace_back(node, request);
    };
    return options;
  }
  void Put(const std::string& node) {
    absl::MutexLock lock(&mutex_);
    disks_[node].insert(kWords.id);
  }
  struct Offer {
    grpc::ClientContext context;
    std::unique_ptr<Stream> stream;
  };
  std::unique_ptr<Offer> Give(const std::string& job, const std::string& input, const std::vector<std::string>& not_to = {},
                              const std::vector<std::string>& on_nodes = {}) {
    auto offer = std::make_unique<Offer>();
    offer->context.set_deadline(absl::ToChronoTime(absl::Now() + Patience(absl::Seconds(60))));
    offer->stream = stub_->Carry(&offer->context);
    v1::CarryMessage begin;
    begin.mutable_begin()->set_job_id(job);
    begin.mutable_begin()->set_input(input);
    begin.mutable_begin()->set_path("/home/me/words.txt");
    for (const std::string& node : on_nodes) begin.mutable_begin()->add_on_nodes(node);
    for (const std::string& node : not_to) begin.mutable_begin()->add_not_from(node);
    offer->stream->Write(begin);
    return offer;
  }
  grpc::Status Refused(const std::string& job, const std::string& input, const std::vector<std::string>& not_to = {}) {
    const auto offer = Give(job, input, not_to);
    v1::CarryMessage message;
    EXPECT_FALSE(offer->stream->Read(&message)) << message.ShortDebugString();
    return offer->stream->Finish();
  }
  std::pair<std::string, v1::CarryRequest> Carried() {
    absl::MutexLock lock(&mutex_);
    const auto some = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !carries_.empty(); };
    EXPECT_TRUE(mutex_.AwaitWithTimeout(absl::Condition(&some), Patience(absl::Seconds(30))));
    if (carries_.empty()) return {};
    auto first = carries_.front();
    carries_.erase(carries_.begin());
    return first;
  }
  std::vector<std::pair<std::string, v1::CopyRequest>> asked() {
    absl::MutexLock lock(&mutex_);
    return asked_;
  }
  void WaitForReason(const std::string& job, const std::string& part) {
    bool said = false;
    Watch(job, [&](const v1::JobUpdate& update) {
      return said = update.has_job() && update.job().reason().find(part) != std::string::npos;
    });
    EXPECT_TRUE(said) << "'" << part << "' was not said, but: " << GetJob(job).reason();
  }

  absl::Mutex mutex_;
  std::map<std::string, std::set<std::string>> disks_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, int64_t> parts_ ABSL_GUARDED_BY(mutex_);  // what came of it before
  std::map<std::string, std::string> secrets_ ABSL_GUARDED_BY(mutex_), errors_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::pair<std::string, v1::CopyRequest>> asked_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::pair<std::string, v1::CarryRequest>> carries_ ABSL_GUARDED_BY(mutex_);
};

TEST_F(Inputs, ComeFromTheNodeThatHasThem) {
  Put("n1");
  auto n1 = Join("n1", WithDisk("n1")), n2 = Join("n2", WithDisk("n2"));
  ASSERT_TRUE(Submit("a", Config()).ok());
  const auto ranks = n2->WaitForStart();
  ASSERT_FALSE(ranks.empty());
  EXPECT_EQ(ranks[0].spec().data().path(), PathOf(kWords)) << "each node knows where it is there";
  ASSERT_EQ(asked().size(), 1u);
  const auto [node, request] = asked()[0];
  EXPECT_EQ(node, "n2");
  EXPECT_EQ(request.input(), kWords.id);
  EXPECT_EQ(std::vector<std::string>(request.files().begin(), request.files().end()), std::vector<std::string>{kWords.id})
      << "stays";
  ASSERT_EQ(request.source().holders_size(), 1);
  const v1::CheckpointHolder& holder = request.source().holders(0);
  EXPECT_EQ(holder.node(), "n1");
  EXPECT_EQ(holder.certificate(), "certificate of n1");
  const FilesTicket ticket{JobUid(holder.ticket().job_uid()), holder.ticket().expires_unix_ms(), holder.ticket().proof()};
  EXPECT_EQ(ticket.job_uid.value(), kWords.id) << "of this input alone";
  absl::MutexLock lock(&mutex_);
  EXPECT_TRUE(Admits(secrets_["n1"], ticket, "certificate of n2", absl::ToUnixMillis(absl::Now())));
}

TEST_F(Inputs, ComeFromWhoSubmits) {
  auto n1 = Join("n1", WithDisk("n1")), n2 = Join("n2", WithDisk("n2"));
  ASSERT_TRUE(Submit("a", Config()).ok());
  WaitForReason("a", "words.txt lies on no node that is here; 'motley submit' with the same file and --id a sends it");
  const auto offer = Give("a", kWords.id);
  const auto [node, request] = Carried();
  EXPECT_EQ(node, "n2") << "which has the most room";
  EXPECT_EQ(request.input(), kWords.id);
  EXPECT_EQ(request.kept_inputs_size(), 1);
  EXPECT_EQ(request.path(), "/home/me/words.txt");
  const grpc::Status second = Refused("a", kWords.id);
  EXPECT_EQ(second.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(second.error_message(), "it is being sent to node n2");
  const auto stub = v1::WorkerService::NewStub(OpenChannel(server_->workers_address()));
  grpc::ClientContext context;
  const auto taker = stub->Carry(&context);
  v1::CarryMessage message;
  message.set_carry_id(request.carry_id());
  taker->Write(message);
  ASSERT_TRUE(offer->stream->Read(&message));
  EXPECT_EQ(message.begun().node(), "n2");
  message.mutable_read()->set_file("words.txt");
  message.mutable_read()->add_blocks(0);
  taker->Write(message);
  ASSERT_TRUE(offer->stream->Read(&message));
  EXPECT_EQ(message.read().file(), "words.txt");
  message.mutable_part()->set_bytes("all of it");
  offer->stream->Write(message);
  ASSERT_TRUE(taker->Read(&message));
  EXPECT_EQ(message.part().bytes(), "all of it");
  Put("n1");  // as it came to n2
  Put("n2");
  message.mutable_end();
  taker->Write(message);
  EXPECT_TRUE(offer->stream->Finish().ok());
  // The other one has it from that node, and the job trains on both.
  ASSERT_FALSE(n1->WaitForStart().empty());
  EXPECT_EQ(n1->ranks()[0].device_ids_size(), 2);
  ASSERT_EQ(asked().size(), 1u);
  EXPECT_EQ(asked()[0].first, "n1");
  ASSERT_EQ(asked()[0].second.source().holders_size(), 1);
  EXPECT_EQ(asked()[0].second.source().holders(0).node(), "n2");
  EXPECT_FALSE(asked()[0].second.source().holders(0).manifest()) << "as it came there";
  EXPECT_EQ(Refused("a", kWords.id).error_code(), grpc::StatusCode::ALREADY_EXISTS);
}

// It takes the blocks from there, and nobody sends them.
TEST_F(Inputs, WhoHasItElsewhereTakesIt) {
  auto n1 = Join("n1", WithDisk("n1")), n2 = Join("n2", WithDisk("n2"));
  ASSERT_TRUE(Submit("a", Config()).ok());
  const auto offer = Give("a", kWords.id, {}, {"n1"});
  EXPECT_EQ(Carried().first, "n1") << "though n2 has more room";
}

// An upload that broke off, with the coordinator perhaps, goes on where it was.
TEST_F(Inputs, GoOnWhereTheMostOfThemLies) {
  auto n1 = Join("n1", WithDisk("n1")), n2 = Join("n2", WithDisk("n2"));
  {
    absl::MutexLock lock(&mutex_);
    parts_["n1"] = 70;
    parts_["n2"] = 30;
  }
  ASSERT_TRUE(Submit("a", Config()).ok());
  const auto offer = Give("a", kWords.id);
  EXPECT_EQ(Carried().first, "n1") << "though n2 has more room";
}

// What was begun from the one to which it came ends with it, and whoever comes next may give it to any of them.
TEST_F(Inputs, AnUploadThatBreaksOffIsBegunAnew) {
  auto n1 = Join("n1", WithDisk("n1")), n2 = Join("n2", WithDisk("n2"));
  ASSERT_TRUE(Submit("a", Config()).ok());
  auto offer = Give("a", kWords.id);
  EXPECT_EQ(Carried().first, "n2");
  WaitForReason("a", "words.txt is sent to node n2, from there node n1 has 0 %");
  offer->context.TryCancel();
  EXPECT_FALSE(offer->stream->Finish().ok());
  WaitForReason("a", "words.txt lies on no node that is here");
  {
    absl::MutexLock lock(&mutex_);
    const auto called_off = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return asked_.back().second.copy_id().empty(); };
    EXPECT_TRUE(mutex_.AwaitWithTimeout(absl::Condition(&called_off), Patience(absl::Seconds(30))));
  }
  const auto again = Give("a", kWords.id, {"n2"});
  EXPECT_EQ(Carried().first, "n1");
}

TEST_F(Inputs, OthersPassAJobWhoseDataIsNowhere) {
  auto n1 = Join("n1", WithDisk("n1"));
  ASSERT_TRUE(Submit("a", Config()).ok());
  ASSERT_TRUE(Submit("b", MakeConfig(10)).ok());
  const auto ranks = n1->WaitForStart();
  ASSERT_FALSE(ranks.empty());
  EXPECT_EQ(ranks[0].job_id(), "b");
  EXPECT_EQ(GetJob("a").state(), v1::JOB_STATE_QUEUED);
  EXPECT_THAT(GetJob("a").reason(), HasSubstr("words.txt lies on no node that is here"));
}

TEST_F(Inputs, WhatIsNotAskedForIsRefused) {
  auto n1 = Join("n1", WithDisk("n1"));
  ASSERT_TRUE(Submit("a", Config()).ok());
  EXPECT_EQ(Refused("none", kWords.id).error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(Refused("a", std::string(64, 'b')).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(Refused("a", kWords.id, {"n1"}).error_code(), grpc::StatusCode::NOT_FOUND);
  StopJob("a");
  WaitForState("a", v1::JOB_STATE_STOPPED);
  EXPECT_EQ(Refused("a", kWords.id).error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  JobConfig here = Config();
  here.data.path = "here:/home/me/words.txt";
  const grpc::Status refused = Submit("b", here);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(refused.error_message(), HasSubstr("is of the machine that submits, from which 'motley submit' sends it"));
}

TEST_F(Inputs, WithoutNodesItIsSaid) {
  ASSERT_TRUE(Submit("a", Config()).ok());
  const grpc::Status nobody = Refused("a", kWords.id);
  EXPECT_EQ(nobody.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(nobody.error_message(), HasSubstr("no node is here that can take it"));
}

// The job goes on without it, and its people hear why.
TEST_F(Inputs, ANodeThatCannotTakeItIsLeftOut) {
  Put("n1");
  {
    absl::MutexLock lock(&mutex_);
    errors_["n2"] = "there is no room for it here";
  }
  auto n1 = Join("n1", WithDisk("n1")), n2 = Join("n2", WithDisk("n2"));
  ASSERT_TRUE(Submit("a", Config()).ok());
  ASSERT_FALSE(n1->WaitForStart().empty());
  EXPECT_EQ(n1->ranks()[0].device_ids_size(), 1) << "n2 is not of it";
  EXPECT_EQ(WaitForEvent("a", "input_failed"),
            "node n2 could not take words.txt: there is no room for it here; it is tried again, and the job goes on without that "
            "node meanwhile");
}

// It is asked first, brings the input, and is taken in then.
TEST_F(Inputs, ANewcomerBringsItFirst) {
  Put("n1");
  auto n1 = Join("n1", WithDisk("n1"));
  ASSERT_TRUE(Submit("a", Config()).ok());
  const auto ranks = n1->WaitForStart();
  ASSERT_FALSE(ranks.empty());
  n1->SendAll(v1::RankEvent::KIND_READY);
  n1->Step(1);
  auto n2 = Join("n2", WithDisk("n2"));
  const auto both = n2->WaitForStart(ranks[0].epoch());
  ASSERT_FALSE(both.empty());
  ASSERT_EQ(asked().size(), 1u);
  EXPECT_EQ(asked()[0].first, "n2");
}

// Who is said to give something else looks at what it has, and is asked again when that is right.
TEST_F(Inputs, AnAccusedHolderLooksAtWhatItHas) {
  Put("n1");
  auto options = WithDisk("n2");
  options.on_copy = [this](const v1::CopyRequest& request, v1::FetchProgress* end) {
    absl::MutexLock lock(&mutex_);
    asked_.emplace_back("n2", request);
    end->set_input(request.input());
    v1::DamagedFile* const damaged = end->add_damaged_files();
    damaged->set_node("n1");
    damaged->set_file("words.txt");
    disks_["n2"].insert(request.input());
  };
  auto n1 = Join("n1", WithDisk("n1")), n2 = Join("n2", options);
  ASSERT_TRUE(Submit("a", Config()).ok());
  ASSERT_FALSE(n1->WaitForStart().empty());
  const auto all = asked();
  const auto looks = std::find_if(all.begin(), all.end(), [](const auto& each) { return each.first == "n1"; });
  ASSERT_NE(looks, all.end());
  EXPECT_TRUE(looks->second.source().verify());
  EXPECT_EQ(looks->second.input(), kWords.id);
  EXPECT_EQ(std::count_if(all.begin(), all.end(), [](const auto& each) { return each.first == "n1"; }), 1)
      << "the same accuser is not heard again";
}

}  // namespace
}  // namespace motley::coordinator
