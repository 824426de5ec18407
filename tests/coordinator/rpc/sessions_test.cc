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

TEST_F(Sessions, ACloneIsSaidOnceHoweverOftenItTries) {
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + Patience(absl::Seconds(30))));
  v1::ListEventsRequest request;
  request.set_follow(true);
  const auto events = stub_->ListEvents(&context, request);
  auto n1 = Join("n1");
  int said = 0;
  v1::Event event;
  for (int64_t incarnation = 2; incarnation <= 6; ++incarnation) {
    FakeWorker::Options other;
    other.incarnation = incarnation;  // it is started again each time
    FakeWorker clone(server_->workers_address(), "n1", other);
    EXPECT_EQ(clone.WaitForEnd().error_code(), grpc::StatusCode::ALREADY_EXISTS);
    while (said == 0 && events->Read(&event)) said += event.kind() == "node_cloned";
    EXPECT_NE(event.message().find("a second worker that says to be node n1 came from"), std::string::npos) << event.message();
  }
  FakeWorker::Options silent;
  silent.heartbeats = false;
  auto n2 = Join("n2", silent);  // it is lost once the clones have been looked at again
  while (events->Read(&event) && event.kind() != "node_lost") said += event.kind() == "node_cloned";
  EXPECT_EQ(event.node(), "n2");
  EXPECT_EQ(said, 1);
  context.TryCancel();
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

TEST_F(Sessions, AProtocolOfTheFutureOrOfLongAgoIsRefused) {
  for (const int protocol : {kSessionProtocol + 1, kSessionProtocol - 2, 0}) {  // 0: it says none
    FakeWorker::Options other;
    other.protocol = protocol;
    FakeWorker worker(server_->workers_address(), "n1", other);
    EXPECT_EQ(worker.WaitForEnd().error_code(), grpc::StatusCode::UNIMPLEMENTED) << protocol;
  }
  FakeWorker::Options of_before;
  of_before.protocol = kSessionProtocol - 1;
  auto admitted = Join("n1", of_before);
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
