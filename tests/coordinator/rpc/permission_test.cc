#include "coordinator/rpc/permission.h"

#include <gmock/gmock.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/coordinator/rpc/cluster.h"

namespace motley::coordinator {
namespace {

using testing::HasSubstr;

constexpr char kStop[] = "/motley.v1.Motley/StopJob", kDrain[] = "/motley.v1.Motley/DrainNode",
               kSubmit[] = "/motley.v1.Motley/SubmitJob", kList[] = "/motley.v1.Motley/ListJobs",
               kCarry[] = "/motley.v1.Motley/Carry";

class PermissionTest : public testing::Test {
 protected:
  PermissionTest() {
    JobRecord& job = state_.jobs[JobId("hers")];
    job.owner_uid = 1001, job.owner = "alice";
    state_.jobs[JobId("old")];
  }
  std::string Refused(const Person& person, std::string_view method, const std::string& job = "") {
    const absl::Status status = CheckPermission(state_, person, method, job);
    EXPECT_TRUE(status.ok() || absl::IsPermissionDenied(status)) << status;
    return std::string(status.message());
  }

  ClusterState state_;
  const Person alice_{1001, "alice", false}, bob_{1002, "bob", false}, admin_{1003, "root", true}, nobody_;
};

TEST_F(PermissionTest, AnOwnerActsOnWhatIsTheirs) {
  EXPECT_EQ(Refused(alice_, kStop, "hers"), "");
  EXPECT_EQ(Refused(bob_, kStop, "hers"),
            "StopJob: hers is alice's job, and you are bob; its owner may do that, and members of group motley-admin");
  EXPECT_EQ(Refused(admin_, kStop, "hers"), "");
  EXPECT_NE(Refused(bob_, kCarry, "hers"), "") << "neither by an export, nor to begin with its weights";
  EXPECT_EQ(Refused(alice_, kCarry, "hers"), "");
  EXPECT_THAT(Refused(alice_, kStop, "old"), HasSubstr("old is a job of nobody that is known"));
  EXPECT_EQ(Refused(bob_, kStop, "no such job"), "") << "the method says so";
}

TEST_F(PermissionTest, TheClusterIsTheAdmins) {
  EXPECT_EQ(Refused(alice_, kDrain), "DrainNode: you are alice; that is for members of group motley-admin");
  EXPECT_EQ(Refused(admin_, kDrain), "");
}

TEST_F(PermissionTest, WhoIsNotKnownLooks) {
  EXPECT_EQ(Refused(nobody_, kList), "");
  for (const char* method : {kSubmit, kStop, kDrain}) {
    EXPECT_THAT(Refused(nobody_, method, "hers"), HasSubstr("who comes by TCP is not known and may only look")) << method;
  }
  EXPECT_EQ(Refused(alice_, kSubmit), "");
}

TEST_F(PermissionTest, WhatTheTableDoesNotHoldIsTheAdmins) { EXPECT_NE(Refused(alice_, "/motley.v1.Motley/Invented"), ""); }

TEST(PersonTest, AUnixSocketSaysWhoIsThere) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  EXPECT_EQ(UidOf(ends[0]), getuid());
  close(ends[0]), close(ends[1]);
  const int tcp = socket(AF_INET, SOCK_STREAM, 0);
  EXPECT_EQ(UidOf(tcp), std::nullopt);
  close(tcp);
  EXPECT_EQ(UidOf(-1), std::nullopt);
}

TEST(PersonTest, NamesAndRights) {
  EXPECT_TRUE(PersonOf(geteuid()).admin) << "the coordinator's own account";
  EXPECT_TRUE(PersonOf(0).admin);
  EXPECT_EQ(PersonOf(0).name, "root");
  const Person stranger = PersonOf(3'999'999'999);
  EXPECT_EQ(stranger.name, "3999999999") << "an account without a name has its number";
  EXPECT_FALSE(stranger.admin);
}

// Whoever runs the tests is the coordinator's own account; by TCP nobody is known.
class OwnersTest : public ClusterTest {
 protected:
  OwnersTest() {
    config_.owners = true;
    config_.listen = "127.0.0.1:0";
    config_.workers_listen = "";
    Start();
    by_socket_ = v1::Motley::NewStub(OpenChannel(server_->socket_address()));
  }
  std::unique_ptr<v1::Motley::Stub> by_socket_;
};

TEST_F(OwnersTest, AJobIsItsSubmittersAndByTcpOneLooks) {
  EXPECT_EQ(Submit("a", MakeConfig(3)).error_code(), grpc::StatusCode::PERMISSION_DENIED) << "by TCP";
  stub_.swap(by_socket_);
  v1::Job job;
  ASSERT_TRUE(Submit("a", MakeConfig(3), &job).ok());
  EXPECT_EQ(job.owner(), PersonOf(getuid()).name);
  stub_.swap(by_socket_);
  EXPECT_EQ(GetJob("a").owner(), PersonOf(getuid()).name) << "by TCP one may look";
  EXPECT_EQ(StopJob("a").error_code(), grpc::StatusCode::PERMISSION_DENIED);
  Start();
  by_socket_ = v1::Motley::NewStub(OpenChannel(server_->socket_address()));
  EXPECT_EQ(GetJob("a").owner(), PersonOf(getuid()).name) << "it is stored";
  stub_.swap(by_socket_);
  EXPECT_TRUE(StopJob("a").ok());
}

// Whoever reads another's weights may be given them by that one alone: as by an export.
TEST_F(OwnersTest, WeightsOnDisksAreTheirOwners) {
  stub_.swap(by_socket_);
  JobConfig local = MakeConfig(3);
  local.checkpoint.folder.clear();
  ASSERT_TRUE(Submit("a", local).ok());
  local.checkpoint.initial = "a";
  EXPECT_TRUE(Submit("b", local).ok()) << "its owner's";
}

TEST_F(OwnersTest, ByTcpNobodyHasNodesLookAtPaths) {
  grpc::ClientContext context;
  v1::CheckClusterRequest request;
  auto reader = stub_->CheckCluster(&context, request);
  v1::CheckClusterUpdate update;
  while (reader->Read(&update)) {
  }
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::PERMISSION_DENIED);
}

TEST_F(OwnersTest, ByTcpNobodyHasNodesTrain) {
  grpc::ClientContext context;
  v1::ProbeMemoryRequest request;
  auto reader = stub_->ProbeMemory(&context, request);
  v1::ProbeMemoryUpdate update;
  while (reader->Read(&update)) {
  }
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::PERMISSION_DENIED);
}

using NoOwnersTest = ClusterTest;

TEST_F(NoOwnersTest, WithoutOwnersWhoeverGetsInMayDoAll) {
  v1::Job job;
  ASSERT_TRUE(Submit("a", MakeConfig(3), &job).ok());
  EXPECT_EQ(job.owner(), "");
  EXPECT_TRUE(StopJob("a").ok());
}

}  // namespace
}  // namespace motley::coordinator
