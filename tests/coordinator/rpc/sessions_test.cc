// Who may hold a session, or a port, and for how long.
#include "tests/coordinator/rpc/cluster.h"

namespace motley::coordinator {
namespace {

class Sessions : public ClusterTest {};

TEST_F(Sessions, ASecondWorkerOfOneNameIsRefused) {
  auto n1 = Join("n1");
  FakeWorker::Options other;
  other.incarnation = 2;
  FakeWorker second(server_->workers_address(), "n1", other);
  const grpc::Status status = second.WaitForEnd();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::ALREADY_EXISTS) << status.error_message();
  EXPECT_NE(status.error_message().find("'n1'"), std::string::npos);
}

TEST_F(Sessions, ASetUpWhoseQuestionWasLostWithItsStreamBeginsAgain) {
  FakeWorker::Options silent;
  silent.answer_storage = false;
  auto n1 = Join("n1", silent);
  ASSERT_TRUE(Submit("a", MakeConfig(4)).ok());
  Watch("a", [](const v1::JobUpdate& update) { return update.has_job() && update.job().state() == v1::JOB_STATE_PROFILING; });
  auto again = Join("n1");  // the same worker: the old stream is replaced
  EXPECT_FALSE(again->WaitForStart().empty());
}

TEST_F(Sessions, AnotherVersionIsRefused) {
  FakeWorker::Options old;
  old.version = "0.0.1";
  FakeWorker worker(server_->workers_address(), "n1", old);
  EXPECT_EQ(worker.WaitForEnd().error_code(), grpc::StatusCode::FAILED_PRECONDITION);
}

TEST_F(Sessions, ASilentWorkerIsLostWhenItsLeaseRunsOut) {
  FakeWorker::Options silent;
  silent.heartbeats = false;
  auto n1 = Join("n1", silent);
  const grpc::Status status = n1->WaitForEnd();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_NE(status.error_message().find("silent for"), std::string::npos) << status.error_message();
}

TEST_F(Sessions, ATakenPortIsSaid) {
  Config second = config_;
  second.socket = "";
  second.listen = server_->address();
  second.state_folder = folder_ + "/other";
  const auto server = Server::Start(second);
  EXPECT_EQ(server.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(std::string(server.status().message()).find("Address already in use"), std::string::npos);
}

TEST_F(Sessions, ATakenMetricsPortIsSaid) {
  Config second = config_;
  second.socket = "";
  second.metrics = server_->address();
  second.state_folder = folder_ + "/other";
  EXPECT_EQ(Server::Start(second).status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(Sessions, ASharedStateFolderIsRefused) {
  const auto server = Server::Start(config_);
  EXPECT_EQ(server.status().code(), absl::StatusCode::kUnavailable) << server.status();
}

}  // namespace
}  // namespace motley::coordinator
