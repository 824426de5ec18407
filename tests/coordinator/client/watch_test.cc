#include "coordinator/client/watch.h"

#include <gtest/gtest.h>

#include <thread>

#include "nlohmann/json.hpp"
#include "tests/coordinator/client/fake_motley.h"

namespace motley::client {
namespace {

using nlohmann::json;

std::vector<int64_t> Steps(const std::string& json_lines) {
  std::vector<int64_t> steps;
  std::istringstream in(json_lines);
  for (std::string line; std::getline(in, line);) steps.push_back(json::parse(line)["step"]);
  return steps;
}

TEST(WatchTest, ResumesABrokenStreamAtItsCursor) {
  FakeMotley fake;
  fake.AddJob("j", v1::JOB_STATE_SUCCEEDED);
  fake.AddRun("j", 5);
  fake.breaks = {
      {2, {grpc::StatusCode::UNAVAILABLE, "going down"}}, {0, {grpc::StatusCode::CANCELLED, "down"}}, {1, grpc::Status::OK}};
  const Ran ran = Motley(fake, {"-o", "json", "metrics", "j", "-w"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(Steps(ran.out), (std::vector<int64_t>{1, 2, 3, 4, 5}));
  EXPECT_EQ(fake.watch_cursors, (std::vector<int64_t>{0, 2, 2, 3}));
  EXPECT_NE(ran.err.find("connection to the coordinator was lost"), std::string::npos);
}

TEST(WatchTest, GoesOnAfterARestartOfTheCoordinator) {
  FakeMotley fake;
  fake.AddJob("j", v1::JOB_STATE_SUCCEEDED);
  fake.AddRun("j", 3);
  fake.breaks = {{1, {grpc::StatusCode::UNAVAILABLE, "going down"}}};
  auto connection = Connection::Open(fake.address(), {.connect = absl::Seconds(10), .patience = absl::Seconds(20)});
  ASSERT_TRUE(connection.ok()) << connection.status();
  std::vector<int64_t> steps;
  std::thread restart;
  const auto say = [&](const std::string&) {
    if (restart.joinable()) return;
    fake.Stop();
    restart = std::thread([&] { fake.Start(); });
  };
  const auto use = [&](const v1::JobUpdate& update) {
    if (update.has_step()) steps.push_back(update.step().step());
  };
  auto job = WatchToEnd(*connection, {"j", use, say});
  restart.join();
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->state(), v1::JOB_STATE_SUCCEEDED);
  EXPECT_EQ(steps, (std::vector<int64_t>{1, 2, 3}));
}

TEST(WatchTest, GivesUpAfterItsPatience) {
  FakeMotley fake;
  fake.AddJob("j", v1::JOB_STATE_RUNNING);
  fake.breaks = {{0, {grpc::StatusCode::UNAVAILABLE, "going down"}}};
  auto connection = Connection::Open(fake.address(), {.connect = absl::Seconds(10), .patience = absl::Milliseconds(300)});
  ASSERT_TRUE(connection.ok());
  const auto job = WatchToEnd(*connection, {"j", [](const v1::JobUpdate&) {}, [&](const std::string&) { fake.Stop(); }});
  EXPECT_EQ(job.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(std::string(job.status().message()).find(fake.address()), std::string::npos);
}

// The coordinator answers the question whether it is back and goes before the stream is open.
TEST(WatchTest, PatienceEndsAlsoForACoordinatorThatGoesWhileTheStreamIsOpened) {
  FakeMotley fake;
  fake.AddJob("j", v1::JOB_STATE_RUNNING);
  fake.breaks = {{0, {grpc::StatusCode::UNAVAILABLE, "going down"}}};
  auto connection = Connection::Open(fake.address(), {.connect = absl::Seconds(10), .patience = absl::Milliseconds(300)});
  ASSERT_TRUE(connection.ok());
  int attempts = 0;
  Connection::Stream<v1::JobUpdate> stream;
  stream.open = [&](Connection::Stub& stub, grpc::ClientContext* call, int64_t cursor) {
    v1::WatchJobRequest request;
    request.set_job_id("j");
    request.set_cursor(cursor);
    if (++attempts == 2) {
      fake.Stop();
      // Until the channel itself knows.
      for (grpc::Status status; status.error_code() != grpc::StatusCode::UNAVAILABLE;) {
        grpc::ClientContext probe;
        v1::ListJobsResponse jobs;
        status = stub.ListJobs(&probe, {}, &jobs);
      }
    }
    return stub.WatchJob(call, request);
  };
  stream.cursor_of = [](const v1::JobUpdate& update) { return update.cursor(); };
  stream.use = [](const v1::JobUpdate&) { return true; };
  const absl::Status status = connection->Follow(std::move(stream));
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_GE(attempts, 2);
}

// Something answers there, such as a proxy, and never with the job.
TEST(WatchTest, PatienceEndsAlsoWhereEveryAttemptIsTurnedAway) {
  FakeMotley fake;
  fake.AddJob("j", v1::JOB_STATE_RUNNING);
  fake.breaks.assign(1000, {0, {grpc::StatusCode::UNAVAILABLE, "going down"}});
  auto connection = Connection::Open(fake.address(), {.connect = absl::Seconds(10), .patience = absl::Seconds(1)});
  ASSERT_TRUE(connection.ok());
  const auto job = WatchToEnd(*connection, {"j", [](const v1::JobUpdate&) {}, [](const std::string&) {}});
  EXPECT_EQ(job.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_GE(fake.watch_cursors.size(), 2u);
  EXPECT_LT(fake.watch_cursors.size(), 10u) << "with pauses that grow";
}

TEST(WatchTest, ErrorsThatDoNotPassAreNotTriedAgain) {
  FakeMotley fake;
  fake.AddJob("j", v1::JOB_STATE_RUNNING);
  fake.breaks = {{0, {grpc::StatusCode::INTERNAL, "broken"}}};
  EXPECT_EQ(Motley(fake, {"metrics", "j", "-w"}).code, 70);
  EXPECT_EQ(fake.watch_cursors.size(), 1u);
}

TEST(WatchTest, ASnapshotEndsWithTheNewestStep) {
  FakeMotley fake;
  fake.AddJob("new", v1::JOB_STATE_QUEUED);
  EXPECT_EQ(json::parse(Motley(fake, {"-o", "json", "metrics", "new"}).out)["steps"].size(), 0u);
  EXPECT_TRUE(fake.watch_cursors.empty()) << "nothing to watch yet";
  fake.AddJob("j", v1::JOB_STATE_RUNNING);
  fake.AddRun("j", 3);
  const json steps = json::parse(Motley(fake, {"-o", "json", "metrics", "j"}).out)["steps"];
  ASSERT_EQ(steps.size(), 3u);
  EXPECT_EQ(steps[2]["loss"], 2.0);
  EXPECT_NE(Motley(fake, {"metrics", "j"}).out.find("step 3/3"), std::string::npos);
  const json newest = json::parse(Motley(fake, {"-o", "json", "metrics", "j", "--limit", "2"}).out)["steps"];
  ASSERT_EQ(newest.size(), 2u);
  EXPECT_EQ(newest[0]["step"], 2);
  EXPECT_EQ(Motley(fake, {"metrics", "j", "--limit", "2"}).out.find("step 1/3"), std::string::npos);
  EXPECT_EQ(Motley(fake, {"metrics", "j", "--limit", "0"}).code, 64);
  EXPECT_EQ(Motley(fake, {"metrics", "j", "-n", "2"}).out, Motley(fake, {"metrics", "j", "--limit", "2"}).out);
}

TEST(WatchTest, BeginsWithTheNewestStepsForPeople) {
  FakeMotley fake;
  fake.AddJob("j", v1::JOB_STATE_SUCCEEDED).mutable_spec()->mutable_training()->set_steps(15);
  fake.AddRun("j", 15);
  const Ran watched = Motley(fake, {"metrics", "j", "-w"});
  EXPECT_EQ(watched.code, 0) << watched.err;
  EXPECT_EQ(watched.out.find("step 5/15"), std::string::npos) << watched.out;
  EXPECT_EQ(watched.out.find("step 6/15"), 0u) << watched.out;
  EXPECT_NE(watched.out.find("step 15/15"), std::string::npos) << watched.out;
  EXPECT_EQ(fake.watch_cursors, (std::vector<int64_t>{0, 15})) << "it goes on behind the steps that it knows";
  EXPECT_EQ(Motley(fake, {"metrics", "j", "-w", "-n", "2"}).out.find("step 14/15"), 0u);
  EXPECT_EQ(Steps(Motley(fake, {"metrics", "j", "-w", "--json"}).out).size(), 15u) << "a program gets all";
  EXPECT_EQ(Steps(Motley(fake, {"metrics", "j", "-w", "--json", "-n", "2"}).out), (std::vector<int64_t>{14, 15}));
}

TEST(StopTest, WaitsForTheEnd) {
  FakeMotley fake;
  fake.AddJob("j", v1::JOB_STATE_RUNNING);
  EXPECT_EQ(Motley(fake, {"stop", "j"}).out, "job j saves a checkpoint and stops\n");
  v1::JobUpdate& last = fake.updates["j"].emplace_back();
  last.set_cursor(1);
  last.mutable_job()->set_state(v1::JOB_STATE_STOPPED);
  const Ran ran = Motley(fake, {"stop", "j", "--wait"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(fake.watch_cursors.size(), 1u);
}

}  // namespace
}  // namespace motley::client
