// motley trace JOB: ranks that measured what was simulated, or something else.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/wire/step_spans.h"
#include "nlohmann/json.hpp"
#include "tests/coordinator/client/live_job.h"

namespace motley::client {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

class TraceTest : public testing::Test {
 protected:
  TraceTest() {
    // Every instruction takes a millisecond, one after the other.
    for (size_t r = 0; r < job_.plan.programs.size(); ++r) {
      std::vector<InstructionSpan> spans;
      for (size_t i = 0; i < job_.plan.programs[r].instructions.size(); ++i)
        spans.push_back({absl::Milliseconds(i), absl::Milliseconds(i + 1)});
      v1::RankTimeline& rank = job_.fake.timelines.emplace_back();
      rank.set_epoch(3);
      rank.set_step(8);
      rank.set_rank(static_cast<int>(r));
      rank.set_step_seconds(2);
      *rank.mutable_spans() = wire::ToProto(spans);
    }
  }
  Ran Trace(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"trace", "j"});
    return Motley(job_.fake, arguments);
  }

  LiveJob job_;
  TempFolder folder_;
};

TEST_F(TraceTest, SaysWhereTheStepsDiffer) {
  const Ran ran = Trace({});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("step 8 of job j: measured 2.000 s, simulated "));
  EXPECT_THAT(ran.out, HasSubstr("DEVICE"));
  EXPECT_THAT(ran.out, HasSubstr("backward"));
  EXPECT_EQ(job_.fake.traced.at(0).step(), 0);
}

TEST_F(TraceTest, BothTimelinesAreInTheFile) {
  const std::string path = folder_ / "step.json";
  const Ran ran = Trace({"--step", "8", "-o", path});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(job_.fake.traced.at(0).step(), 8);
  EXPECT_THAT(ran.err, HasSubstr("both steps are in " + path));
  int measured = 0, simulated = 0;
  const json trace = json::parse(TempFolder::Read(path));
  for (const json& event : trace["traceEvents"]) {
    if (event["name"] != "process_name") continue;
    const std::string name = event["args"]["name"];
    measured += name.starts_with("measured: ");
    simulated += name.starts_with("simulated: ");
  }
  EXPECT_EQ(measured, static_cast<int>(job_.plan.programs.size()));
  EXPECT_EQ(simulated, measured);
}

TEST_F(TraceTest, ThePictureIsOfTheMeasuredStep) {
  const std::string path = folder_ / "step.svg";
  const Ran ran = Trace({"--svg", path});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.err, HasSubstr("the measured step's picture is in " + path));
  const std::string svg = TempFolder::Read(path);
  EXPECT_THAT(svg, HasSubstr("<svg"));
  EXPECT_THAT(svg, HasSubstr("step 8 of job j, as measured"));
  EXPECT_EQ(Trace({"--svg", "/no/such/folder/step.svg"}).code, 73);
}

TEST_F(TraceTest, ForProgramsAllDifferences) {
  for (const auto& format : {std::vector<std::string>{"-o", "json"}, std::vector<std::string>{"--json"}}) {
    const Ran ran = Trace(format);
    ASSERT_EQ(ran.code, 0) << ran.err;
    const json document = json::parse(ran.out);
    EXPECT_EQ(document["step"], 8);
    EXPECT_EQ(document["measured_seconds"], 2.0);
    EXPECT_NEAR(document["simulated_seconds"].get<double>(), job_.plan.plan.predicted.step_seconds, 1e-9);
    EXPECT_GT(document["differences"].size(), 10u);
    EXPECT_EQ(document["differences"][0].size(), 4u);
  }
}

TEST_F(TraceTest, ReplansAndOtherProgramsAreSaid) {
  job_.fake.timelines[0].mutable_spans()->add_begin_ns(1);
  EXPECT_EQ(Trace({}).code, 65);
  job_.fake.timelines[0].mutable_spans()->add_duration_ns(1);
  const Ran longer = Trace({});
  EXPECT_EQ(longer.code, 65);
  EXPECT_THAT(longer.err, HasSubstr("instructions, its program has"));
  for (v1::RankTimeline& rank : job_.fake.timelines) rank.set_epoch(4);
  const Ran later = Trace({});
  EXPECT_EQ(later.code, 75);
  EXPECT_THAT(later.err, HasSubstr("was planned again"));
  job_.fake.refusal = {grpc::StatusCode::FAILED_PRECONDITION, "job 'j' does not train now (queued)"};
  const Ran queued = Trace({});
  EXPECT_EQ(queued.code, 65);
  EXPECT_THAT(queued.err, HasSubstr("does not train now"));
  EXPECT_EQ(Trace({"--step", "0"}).code, 64);
  EXPECT_EQ(Trace({"-o", "/no/such/folder/step.json"}).code, 65) << "the coordinator is asked first";
}

TEST_F(TraceTest, AFileThatCannotBeWritten) { EXPECT_EQ(Trace({"-o", "/no/such/folder/step.json"}).code, 73); }

}  // namespace
}  // namespace motley::client
