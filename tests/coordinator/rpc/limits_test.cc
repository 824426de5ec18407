// How much may come in and go out at once: requests, workers' messages, lists, texts of errors.
#include <fstream>
#include <set>

#include "absl/strings/str_cat.h"
#include "coordinator/rpc/page.h"
#include "coordinator/rpc/report_limits.h"
#include "coordinator/rpc/status.h"
#include "tests/common/base/patience.h"
#include "tests/coordinator/rpc/cluster.h"

namespace motley::coordinator {
namespace {

class Limits : public ClusterTest {
 protected:
  std::vector<v1::LogLine> Lines(const std::string& job) {
    grpc::ClientContext context;
    v1::TailLogsRequest request;
    request.set_job_id(job);
    auto reader = stub_->TailLogs(&context, request);
    std::vector<v1::LogLine> lines;
    for (v1::LogLine line; reader->Read(&line);) lines.push_back(line);
    return lines;
  }
  void WaitForLine(const std::string& job, const std::string& text) {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + Patience(absl::Seconds(60))));
    v1::TailLogsRequest request;
    request.set_job_id(job);
    request.set_follow(true);
    auto reader = stub_->TailLogs(&context, request);
    v1::LogLine line;
    while (reader->Read(&line) && line.text() != text) {
    }
    EXPECT_EQ(line.text(), text);
    context.TryCancel();
  }
  static int64_t ResidentMebibytes() {
    std::ifstream file("/proc/self/status");
    int64_t kibibytes = 0;
    for (std::string line; std::getline(file, line);) {
      if (line.rfind("VmRSS:", 0) == 0) kibibytes = std::stoll(line.substr(6));
    }
    return kibibytes / 1024;
  }
};

TEST_F(Limits, AJobThatIsTooLongNamesItsLargestField) {
  JobConfig config = MakeConfig(1);
  config.model.config_json += std::string(300 << 10, ' ');
  const grpc::Status status = Submit("a", config);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_NE(status.error_message().find("model.config_json has"), std::string::npos) << status.error_message();
  EXPECT_TRUE(Submit("a", MakeConfig(1)).ok());
}

// A request that no client has read.
TEST_F(Limits, WhatOnlyAShellReadsIsNoPathOfAJob) {
  JobConfig config = MakeConfig(1);
  config.data.path = "hf://datasets/x";
  config.checkpoint.folder = "/home/ada/~/ck";
  const grpc::Status status = Submit("a", config);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_NE(status.error_message().find("data.path: 'hf://datasets/x' is a URL"), std::string::npos) << status.error_message();
  EXPECT_NE(status.error_message().find("checkpoint.folder: '/home/ada/~/ck' holds a folder '~'"), std::string::npos)
      << status.error_message();
}

TEST_F(Limits, JobsThatWaitHaveABoundTogether) {
  config_.waiting_job_bytes = 600 << 10;
  Start();
  JobConfig config = MakeConfig(1);
  config.model.config_json += std::string(200 << 10, ' ');
  ASSERT_TRUE(Submit("a", config).ok());
  ASSERT_TRUE(Submit("b", config).ok());
  const grpc::Status status = Submit("c", config);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_NE(status.error_message().find("limits.job_bytes"), std::string::npos) << status.error_message();
  ASSERT_TRUE(StopJob("b").ok());
  WaitForState("b", v1::JOB_STATE_STOPPED);
  EXPECT_TRUE(Submit("c", config).ok());
}

TEST_F(Limits, ManyLargeSubmitsTakeTheirSizeOnce) {
  const int64_t before = ResidentMebibytes();
  JobConfig config = MakeConfig(1);
  config.model.config_json += std::string(200 << 10, ' ');
  for (int i = 0; i < 200; ++i) ASSERT_TRUE(Submit(absl::StrCat("job-", i), config).ok());
  std::cout << "200 submits of 200 KiB: " << ResidentMebibytes() - before << " MiB more\n";
}

TEST_F(Limits, WorkersLinesAreCutAndKeptByBytes) {
  auto n1 = Join("n1");
  ASSERT_TRUE(Submit("a", MakeConfig(3)).ok());
  const auto ranks = n1->WaitForStart();
  ASSERT_FALSE(ranks.empty());
  const int64_t before = ResidentMebibytes();
  v1::WorkerMessage message;
  message.mutable_log()->set_job_id("a");
  message.mutable_log()->set_epoch(ranks[0].epoch());
  message.mutable_log()->set_source("n1/gpu0");
  message.mutable_log()->set_text(std::string(15 << 20, 'x'));
  for (int i = 0; i < 20; ++i) n1->Send(message);
  message.mutable_log()->set_text("the last");
  n1->Send(message);
  WaitForLine("a", "the last");
  std::cout << "20 lines of 15 MiB: " << ResidentMebibytes() - before << " MiB more\n";
  int cut = 0;
  for (const v1::LogLine& line : Lines("a")) {
    EXPECT_LE(line.text().size(), 8u << 10);
    cut += line.text().find("bytes more)") != std::string::npos;
  }
  EXPECT_EQ(cut, 20);
}

TEST_F(Limits, AReportThatIsTooLargeEndsItsSessionWithWords) {
  auto n1 = Join("n1");
  v1::WorkerMessage message;
  message.mutable_step_report()->set_job_id(std::string(70000, 'x'));
  n1->Send(message);
  const grpc::Status status = n1->WaitForEnd();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_NE(status.error_message().find("a step_report of 700"), std::string::npos) << status.error_message();
  EXPECT_NE(status.error_message().find("at most 4096"), std::string::npos) << status.error_message();
}

TEST_F(Limits, EveryKindOfReportHasALimit) {
  const auto* kinds = v1::WorkerMessage::descriptor()->oneof_decl(0);
  for (int i = 0; i < kinds->field_count(); ++i) {
    v1::WorkerMessage message;
    google::protobuf::Message* body = message.GetReflection()->MutableMessage(&message, kinds->field(i));
    EXPECT_TRUE(LimitReport(&message).ok()) << kinds->field(i)->name();
    body->GetReflection()->MutableUnknownFields(body)->AddLengthDelimited(9999, std::string(kMaxReportBytes + 1, 'x'));
    EXPECT_TRUE(absl::IsResourceExhausted(LimitReport(&message))) << kinds->field(i)->name();
  }
}

TEST_F(Limits, ListsComeInPages) {
  const std::vector<std::string> ids = {"e", "d", "c", "b", "a"};
  for (const std::string& id : ids) ASSERT_TRUE(Submit(id, MakeConfig(1)).ok());
  std::set<std::string> seen;
  v1::ListJobsRequest request;
  request.set_page_size(2);
  std::vector<int> sizes;
  do {
    grpc::ClientContext context;
    v1::ListJobsResponse response;
    ASSERT_TRUE(stub_->ListJobs(&context, request, &response).ok());
    sizes.push_back(response.jobs_size());
    for (const v1::Job& job : response.jobs()) EXPECT_TRUE(seen.insert(job.id()).second) << job.id();
    request.set_page_token(response.next_page_token());
  } while (!request.page_token().empty() && sizes.size() < 10);
  EXPECT_EQ(sizes, (std::vector<int>{2, 2, 1}));
  EXPECT_EQ(seen.size(), 5u);
  request.set_page_size(-1);
  grpc::ClientContext context;
  v1::ListJobsResponse response;
  EXPECT_EQ(stub_->ListJobs(&context, request, &response).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST(Page, IsBoundedByBytesAndHoldsAtLeastOne) {
  const int record = 0;
  const std::vector<std::pair<std::string, const int*>> rows = {{"a", &record}, {"b", &record}, {"c", &record}};
  int added = 0;
  auto add = [&](int) { return ++added, kPageBytes; };
  EXPECT_EQ(*AddPage(rows, 0, "", add), "a");
  EXPECT_EQ(*AddPage(rows, 0, "a", add), "b");
  EXPECT_EQ(*AddPage(rows, 0, "bb", add), "");  // the row of the token is gone meanwhile
  EXPECT_EQ(added, 3);
}

TEST(StatusText, IsCutToWhatAClientTakes) {
  for (const std::string character : {"a", "%", "\xE2\x82\xAC", "\n"}) {
    std::string text;
    while (text.size() < 100000) text += character;
    const grpc::Status status = ToGrpc(absl::NotFoundError(text));
    EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
    EXPECT_NE(status.error_message().find("bytes more)"), std::string::npos);
    size_t encoded = 0;
    for (const char c : status.error_message()) encoded += c < ' ' || c > '~' || c == '%' ? 3 : 1;
    EXPECT_LE(encoded, 6144u);
  }
}

}  // namespace
}  // namespace motley::coordinator
