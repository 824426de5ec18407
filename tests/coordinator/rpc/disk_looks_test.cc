// What lies on the nodes' disks: listed, and deleted with its job, also where a node is away. Nodes are played.
#include <gmock/gmock.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "tests/common/base/patience.h"
#include "tests/coordinator/rpc/replan_fixture.h"

namespace motley::coordinator {
namespace {

using ::testing::HasSubstr;

class DiskLooks : public Replan {
 protected:
  // Lists what it has of jobs, "JOB UID", and deletes what it is told to.
  FakeWorker::Options WithDisk(const std::string& node) {
    FakeWorker::Options options;
    options.on_holdings = [this, node](const v1::HoldingsRequest& request, v1::Holdings* holdings) {
      absl::MutexLock lock(&mutex_);
      std::set<std::string>& disk = disks_[node];
      for (const v1::UnwantedFiles& unwanted : request.unwanted()) {
        std::erase_if(disk, [&](const std::string& has) {
          const bool meant = unwanted.job_uid().empty() ? has.starts_with(unwanted.job_id() + " ")
                                                        : has == absl::StrCat(unwanted.job_id(), " ", unwanted.job_uid());
          return meant && !has.ends_with(" " + unwanted.kept_uid());
        });
        *holdings->add_gone() = unwanted;
      }
      holdings->set_free_bytes(5000);
      for (const std::string& has : disk) {
        if (!request.list()) break;
        v1::ListedFiles* const listed = holdings->add_listed();
        listed->set_job_id(has.substr(0, has.find(' ')));
        listed->set_job_uid(has.substr(has.find(' ') + 1));
        listed->set_name("step-00000003-gen-1");
        listed->set_bytes(100);
      }
      return true;
    };
    return options;
  }
  void Put(const std::string& node, const std::string& job, const std::string& uid) {
    absl::MutexLock lock(&mutex_);
    disks_[node].insert(absl::StrCat(job, " ", uid));
  }
  std::set<std::string> Disk(const std::string& node) {
    absl::MutexLock lock(&mutex_);
    return disks_[node];
  }
  void WaitForDisk(const std::string& node, const std::set<std::string>& what) {
    absl::MutexLock lock(&mutex_);
    const auto is = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return disks_[node] == what; };
    EXPECT_TRUE(mutex_.AwaitWithTimeout(absl::Condition(&is), Patience(absl::Seconds(30)))) << node;
  }
  v1::FileListing List(const std::string& job = "") {
    v1::ListFilesRequest request;
    request.set_job_id(job);
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + Patience(absl::Seconds(60))));
    const auto reader = stub_->ListFiles(&context, request);
    v1::FileListing listing;
    for (v1::ListFilesUpdate update; reader->Read(&update);) {
      if (update.has_result()) listing = update.result();
    }
    EXPECT_TRUE(reader->Finish().ok());
    return listing;
  }
  grpc::Status DeleteFiles(const std::string& id, v1::DeleteJobResponse* response, const std::string& uid = "") {
    grpc::ClientContext context;
    v1::DeleteJobRequest request;
    request.set_job_id(id);
    request.set_files(true);
    request.set_job_uid(uid);
    return stub_->DeleteJob(&context, request, response);
  }
  // Ended, and these nodes have what it saved.
  std::string Ended(const std::string& id, const std::vector<std::string>& nodes) {
    EXPECT_TRUE(Submit(id, MakeLocalConfig(3)).ok());
    StopJob(id);
    const std::string uid = WaitForState(id, v1::JOB_STATE_STOPPED).uid();
    for (const std::string& node : nodes) Put(node, id, uid);
    return uid;
  }

  absl::Mutex mutex_;
  std::map<std::string, std::set<std::string>> disks_ ABSL_GUARDED_BY(mutex_);
};

TEST_F(DiskLooks, SaysWhoHasWhat) {
  const std::string uid = Ended("a", {"n1", "n2"});
  Put("n2", "gone", std::string(32, '9'));
  auto n1 = Join("n1", WithDisk("n1")), n2 = Join("n2", WithDisk("n2"));
  const v1::FileListing all = List();
  ASSERT_EQ(all.nodes_size(), 2);
  EXPECT_EQ(all.nodes(0).node(), "n1");
  EXPECT_EQ(all.nodes(0).free_bytes(), 5000);
  ASSERT_EQ(all.nodes(0).files_size(), 1);
  EXPECT_EQ(all.nodes(0).files(0).listed().job_uid(), uid);
  EXPECT_EQ(all.nodes(0).files(0).jobs_size(), 1);
  ASSERT_EQ(all.nodes(1).files_size(), 2);
  EXPECT_EQ(all.nodes(1).files(1).listed().job_id(), "gone");
  EXPECT_EQ(all.nodes(1).files(1).jobs_size(), 0) << "no job is known that it is of";
  EXPECT_EQ(List("gone").nodes(0).files_size(), 0);
  EXPECT_EQ(List("gone").nodes(1).files_size(), 1);
}

TEST_F(DiskLooks, AJobsFilesGoWithIt) {
  const std::string uid = Ended("a", {"n1"}), other = Ended("b", {"n1"});
  auto n1 = Join("n1", WithDisk("n1"));
  v1::DeleteJobResponse response;
  ASSERT_TRUE(DeleteFiles("a", &response).ok());
  EXPECT_EQ(response.later_size(), 0);
  WaitForDisk("n1", {absl::StrCat("b ", other)});
}

// Also over a restart of the coordinator, which then does not know that node until it comes.
TEST_F(DiskLooks, ANodeThatIsAwayDeletesThemWhenItIsBack) {
  std::string uid;
  {
    auto n1 = Join("n1", WithDisk("n1")), n2 = Join("n2", WithDisk("n2"));
    uid = Ended("a", {"n1", "n2"});
    n2.reset();
    WaitForEvent("", "node_lost");
    v1::DeleteJobResponse response;
    ASSERT_TRUE(DeleteFiles("a", &response).ok());
    ASSERT_EQ(response.later_size(), 1);
    EXPECT_EQ(response.later(0), "n2");
    WaitForDisk("n1", {});
    EXPECT_FALSE(Disk("n2").empty());
    ASSERT_EQ(List().unwanted_size(), 1);
    EXPECT_EQ(List().unwanted(0).node(), "n2");
  }
  Start();
  auto n2 = Join("n2", WithDisk("n2"));
  WaitForDisk("n2", {});
  while (List().unwanted_size() > 0) {  // each asks the node; what it said is stored when its row is gone
  }
  Start();
  EXPECT_EQ(List().unwanted_size(), 0) << "it has said so, and that is kept";
}

// Of a job that was deleted without them, or by another coordinator's time; who has the id now keeps what is its own.
TEST_F(DiskLooks, WhatADeletedJobLeftGoesByItsId) {
  auto n1 = Join("n1", WithDisk("n1"));
  const std::string now = Ended("a", {"n1"});
  Put("n1", "gone", std::string(32, '9'));
  v1::DeleteJobResponse response;
  ASSERT_TRUE(DeleteFiles("gone", &response).ok());
  WaitForDisk("n1", {absl::StrCat("a ", now)});
  EXPECT_EQ(DeleteFiles("none", &response).error_code(), grpc::StatusCode::OK) << "nothing is as good as gone";
  EXPECT_EQ(DeleteFiles("No job's", &response).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(DeleteFiles("a", &response, "x").error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  // With a uid that one alone, though another job has the id.
  Put("n1", "a", std::string(32, '8'));
  ASSERT_TRUE(DeleteFiles("a", &response, std::string(32, '8')).ok());
  WaitForDisk("n1", {absl::StrCat("a ", now)});
  EXPECT_EQ(GetJob("a").uid(), now) << "it is there still";
}

// A node is told who has the id when it is back.
TEST_F(DiskLooks, WhoHasTheIdByThenKeepsItsOwn) {
  std::string now;
  {
    auto n1 = Join("n1", WithDisk("n1"));
    n1.reset();
    WaitForEvent("", "node_lost");
    v1::DeleteJobResponse response;
    ASSERT_TRUE(DeleteFiles("a", &response).ok());
    ASSERT_EQ(response.later_size(), 1);
    Put("n1", "a", std::string(32, '9'));
    now = Ended("a", {"n1"});
  }
  auto n1 = Join("n1", WithDisk("n1"));
  WaitForDisk("n1", {absl::StrCat("a ", now)});
}

TEST_F(DiskLooks, AFolderThatOthersSeeIsNotDeleted) {
  ASSERT_TRUE(Submit("a", MakeConfig(3)).ok());
  StopJob("a");
  WaitForState("a", v1::JOB_STATE_STOPPED);
  v1::DeleteJobResponse response;
  const grpc::Status refused = DeleteFiles("a", &response);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(refused.error_message(), HasSubstr("where others may write, too"));
}

class PathLooks : public ClusterTest {
 protected:
  v1::PathOnNodes Look(const std::string& path, grpc::Status* status = nullptr) {
    v1::LookAtPathRequest request;
    request.set_path(path);
    request.mutable_sample()->set_files(1);
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + Patience(absl::Seconds(60))));
    const auto reader = stub_->LookAtPath(&context, request);
    v1::PathOnNodes found;
    for (v1::LookAtPathUpdate update; reader->Read(&update);) {
      if (update.has_result()) found = update.result();
    }
    const grpc::Status end = reader->Finish();
    if (status != nullptr) *status = end;
    return found;
  }
};

TEST_F(PathLooks, SayWhatEachNodeHas) {
  EXPECT_EQ(Look("/data").nodes_size(), 0) << "nobody is here";
  auto a = Join("a", {.sampled = v1::SAMPLED_SAME}), b = Join("b", {.storage_error = "not beneath a root"}),
       c = Join("c", {.sampled = v1::SAMPLED_OTHER}), d = Join("d", {.protocol = kSessionProtocol - 1});
  const v1::PathOnNodes found = Look("/data");
  ASSERT_EQ(found.nodes_size(), 3) << "an older worker does not know the question";
  EXPECT_EQ(found.nodes(0).sampled(), v1::SAMPLED_SAME);
  EXPECT_EQ(found.nodes(1).sampled(), v1::SAMPLED_ABSENT);
  EXPECT_EQ(found.nodes(1).error(), "not beneath a root");
  EXPECT_EQ(found.nodes(2).sampled(), v1::SAMPLED_OTHER);
}

TEST_F(PathLooks, WrongRequestsAreRefused) {
  for (const char* path : {"", "data", "/data/*.txt"}) {
    grpc::Status status;
    Look(path, &status);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << path;
  }
}

}  // namespace
}  // namespace motley::coordinator
