// CheckCluster against workers that are well, silent, wrong or lying.
#include <gmock/gmock.h>

#include "common/base/version.h"
#include "tests/common/base/patience.h"
#include "tests/coordinator/rpc/cluster.h"

namespace motley::coordinator {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class CheckCluster : public ClusterTest {
 protected:
  struct Checked {
    grpc::Status status;
    v1::ClusterCheck result;
    std::vector<std::string> doings;
    // The texts of all rows in this state.
    std::string Text(v1::Finding::State state) const {
      std::string text;
      for (const v1::Finding& finding : result.findings()) {
        if (finding.state() == state) text += finding.what() + ": " + finding.text() + "\n";
      }
      return text;
    }
    std::string ok() const { return Text(v1::Finding::STATE_OK); }
    std::string warning() const { return Text(v1::Finding::STATE_WARNING); }
    std::string wrong() const { return Text(v1::Finding::STATE_WRONG); }
  };
  Checked Check(const v1::CheckClusterRequest& request = {}) {
    Checked checked;
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + Patience(absl::Seconds(60))));
    auto reader = stub_->CheckCluster(&context, request);
    for (v1::CheckClusterUpdate update; reader->Read(&update);) {
      if (update.has_result()) checked.result = update.result();
      if (update.has_doing()) checked.doings.push_back(update.doing());
    }
    checked.status = reader->Finish();
    EXPECT_TRUE(checked.status.ok() || checked.status.error_code() == grpc::StatusCode::INVALID_ARGUMENT)
        << checked.status.error_message();
    return checked;
  }
  static v1::CheckClusterRequest Paths() {
    v1::CheckClusterRequest request;
    request.set_data_path("/data");
    request.set_checkpoint_folder("/folder");
    return request;
  }
  // Limits that a worker which does not answer costs.
  void Shorten() {
    config_.driver.examination.reach = config_.driver.examination.write = config_.driver.examination.read_data = absl::Seconds(2);
    Start();
  }
};

TEST_F(CheckCluster, AllIsWell) {
  auto a = Join("a"), b = Join("b", {.devices = 2}), c = Join("c");
  const Checked checked = Check(Paths());
  EXPECT_EQ(checked.wrong() + checked.warning(), "");
  EXPECT_EQ(checked.result.version(), kVersion);
  EXPECT_EQ(checked.result.protocol(), kProtocol);
  EXPECT_THAT(checked.ok(), HasSubstr("node b: ready, 2 devices, version"));
  EXPECT_THAT(checked.ok(), HasSubstr("every node reaches every other at its data address (6 ways)"));
  EXPECT_THAT(checked.ok(), HasSubstr("links: 100.0 MB/s"));
  EXPECT_THAT(checked.ok(), HasSubstr("data: /data: 100000 bytes, the same on 3 nodes"));
  EXPECT_THAT(checked.ok(), HasSubstr("folder: /folder: all 3 nodes write it"));
  ASSERT_EQ(checked.result.links_size(), 6);
  for (const v1::Link& link : checked.result.links()) {
    EXPECT_EQ(link.error(), "");
    EXPECT_EQ(link.bytes_per_second(), 1e8);
    EXPECT_EQ(link.connect_seconds(), 0.0005);
  }
  EXPECT_FALSE(checked.doings.empty());
  EXPECT_EQ(Check().wrong(), "") << "and again";
}

// Only where no folder is named: jobs that name one have no part in them.
TEST_F(CheckCluster, TheNodesDisksAreLookedAt) {
  FakeWorker::Options roomy, broken;
  roomy.on_holdings = [](const v1::HoldingsRequest&, v1::Holdings* holdings) {
    holdings->set_free_bytes(310'000'000'000);
    return true;
  };
  broken.on_holdings = [](const v1::HoldingsRequest&, v1::Holdings* holdings) {
    holdings->set_error("/data/files is read-only");
    return true;
  };
  auto a = Join("a", roomy), b = Join("b", broken);
  EXPECT_THAT(Check().ok(), HasSubstr("disks: room for checkpoints and data of jobs without a common folder: 310.0 GB on a"));
  EXPECT_THAT(Check().warning(), HasSubstr("disks: node b: /data/files is read-only; jobs that name no checkpoint.folder"));
  EXPECT_THAT(Check(Paths()).ok() + Check(Paths()).warning(), Not(HasSubstr("disks")));
  JobConfig local = MakeConfig(10);
  local.checkpoint.folder.clear();
  ASSERT_TRUE(Submit("local", local).ok());
  EXPECT_THAT(Check().wrong(), HasSubstr("disks: node b: /data/files is read-only")) << "a job waits for it";
}

TEST_F(CheckCluster, ZeroNodes) {
  const Checked checked = Check(Paths());
  EXPECT_THAT(checked.wrong(), HasSubstr("nodes: none has joined; start motley-worker"));
  EXPECT_EQ(checked.result.links_size(), 0);
}

TEST_F(CheckCluster, AWorkerThatDoesNotAnswer) {
  Shorten();
  auto a = Join("a"), b = Join("b"), c = Join("c", {.answer_storage = false, .answer_reach = false});
  const Checked checked = Check(Paths());
  EXPECT_THAT(checked.wrong(), HasSubstr("by c; look at their logs"));
  EXPECT_THAT(checked.wrong(), HasSubstr("folder: /folder: no answer"));
  EXPECT_THAT(checked.wrong(), HasSubstr("data: /data: no answer"));
  EXPECT_THAT(checked.ok(), HasSubstr("2 ways measured"));
}

TEST_F(CheckCluster, OneNodeIsNotReachedByAnother) {
  auto a = Join("a", {.unreachable = "b"}), b = Join("b");
  const Checked checked = Check();
  EXPECT_THAT(checked.wrong(), HasSubstr("ports of b: tried from a: connection timed out; look at worker.data_address"));
  EXPECT_THAT(checked.ok(), HasSubstr("1 way measured"));
}

TEST_F(CheckCluster, NobodySpeaksForOthers) {
  auto a = Join("a", {.lies_about = "c"}), b = Join("b"), c = Join("c", {.lies_about = "c"});
  const Checked checked = Check();
  // c says of itself what only others can say; a says about c what is its own, and says it too late.
  EXPECT_EQ(checked.wrong(), "");
  ASSERT_EQ(checked.result.links_size(), 6);
  for (const v1::Link& link : checked.result.links()) EXPECT_EQ(link.error(), "") << link.from() << " " << link.to();
}

TEST_F(CheckCluster, ReportsWithoutAnExaminationAreDropped) {
  auto a = Join("a"), b = Join("b");
  v1::WorkerMessage message;
  message.mutable_reach_result()->set_check_id("doctor-00000000-reach");
  message.mutable_reach_result()->add_answers()->set_node("b");
  message.mutable_reach_result()->mutable_answers(0)->set_error("nonsense");
  a->Send(message);
  message.mutable_storage_check_result()->set_check_id("doctor-00000000-read");
  a->Send(message);
  EXPECT_EQ(Check().wrong(), "");
}

TEST_F(CheckCluster, ALostNodeAndARefusedWorker) {
  auto a = Join("a"), b = Join("b");
  b->Drop();
  EXPECT_FALSE(b->WaitForEnd().ok());
  FakeWorker newer(server_->workers_address(), "c", {.protocol = kSessionProtocol + 1});
  EXPECT_EQ(newer.WaitForEnd().error_code(), grpc::StatusCode::UNIMPLEMENTED);
  Checked checked;
  for (int i = 0; i < 100 && checked.wrong().find("node b: lost") == std::string::npos; ++i) checked = Check();
  EXPECT_THAT(checked.wrong(), HasSubstr("node b: lost"));
  EXPECT_THAT(checked.wrong(), HasSubstr("start motley-worker on it again"));
  EXPECT_THAT(checked.wrong(), HasSubstr("worker c: refused"));
  EXPECT_THAT(checked.wrong(), HasSubstr("upgrade the coordinator"));
  auto c = Join("c");
  EXPECT_THAT(Check().wrong(), Not(HasSubstr("worker c:"))) << "it has come with the right one";
}

TEST_F(CheckCluster, AWrongClockIsANote) {
  auto a = Join("a"), b = Join("b", {.clock_ahead_ms = 90'000});
  Checked checked;
  for (int i = 0; i < 1000 && checked.warning().empty(); ++i) checked = Check();  // until it has said its time
  EXPECT_THAT(checked.warning(), HasSubstr("clock of b: "));
  EXPECT_THAT(checked.warning(), HasSubstr("ahead of the coordinator's"));
  EXPECT_EQ(checked.wrong(), "");
}

TEST_F(CheckCluster, TwoAtOnceComeOneAfterTheOther) {
  auto a = Join("a"), b = Join("b");
  std::vector<Checked> checked(4);
  std::vector<std::thread> clients;
  for (Checked& one : checked) clients.emplace_back([this, &one] { one = Check(Paths()); });
  for (std::thread& client : clients) client.join();
  for (const Checked& one : checked) {
    EXPECT_EQ(one.wrong() + one.warning(), "");
    EXPECT_GT(one.result.findings_size(), 4);
  }
}

TEST_F(CheckCluster, AClientThatGoesEndsItsExamination) {
  auto a = Join("a", {.answer_storage = false});
  {
    grpc::ClientContext context;
    auto reader = stub_->CheckCluster(&context, Paths());
    v1::CheckClusterUpdate update;
    while (reader->Read(&update) && update.doing().find("writes into") == std::string::npos) {
    }
    EXPECT_THAT(update.doing(), HasSubstr("every node writes into /folder"));
    context.TryCancel();
    reader->Finish();
  }
  EXPECT_EQ(Check().wrong(), "") << "in its turn at once, not after 30 s";
  EXPECT_TRUE(a->WaitForForgotten()) << "tokens are removed";
}

TEST_F(CheckCluster, PathsAreAbsolute) {
  v1::CheckClusterRequest request;
  request.set_data_path("text");
  EXPECT_EQ(Check(request).status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  request.set_data_path("/data/*.txt");
  EXPECT_THAT(Check(request).status.error_message(), HasSubstr("data_path: '/data/*.txt' is a pattern"));
  request.set_data_path("/" + std::string(5000, 'x'));
  EXPECT_THAT(Check(request).status.error_message(), HasSubstr("data_path must be an absolute path"));
  request = {};
  request.set_validation_path("text");
  EXPECT_THAT(Check(request).status.error_message(), HasSubstr("validation_path must be an absolute path"));
  request = {};
  request.set_initial("another-job");
  EXPECT_THAT(Check(request).status.error_message(), HasSubstr("initial must be an absolute path"));
}

}  // namespace
}  // namespace motley::coordinator
