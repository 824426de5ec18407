#include "coordinator/rpc/clean_message.h"

#include <gtest/gtest.h>

#include "coordinator/store/sqlite_store.h"
#include "tests/common/base/patience.h"
#include "tests/coordinator/rpc/cluster.h"

namespace motley::coordinator {
namespace {

TEST(CleanMessageTest, EveryTextAtEveryDepth) {
  v1::GetPlanResponse plan;
  plan.set_plan_text("two\nlines\xff");
  plan.add_programs("good");
  plan.add_programs("\x1b");
  CleanTexts(plan);
  EXPECT_EQ(plan.plan_text(), "two\nlines\\xff");
  EXPECT_EQ(plan.programs(0), "good");
  EXPECT_EQ(plan.programs(1), "\\u001b");
  v1::ListJobsResponse jobs;
  v1::Job* job = jobs.add_jobs();
  job->set_reason("\xff");
  job->mutable_spec()->mutable_data()->set_path("/\xff");
  CleanTexts(jobs);
  EXPECT_EQ(jobs.jobs(0).reason(), "\\xff");
  EXPECT_EQ(jobs.jobs(0).spec().data().path(), "/\\xff");
  EXPECT_FALSE(jobs.jobs(0).has_last_step()) << "what was not there is not made";
}

using CleanMessageClusterTest = ClusterTest;

// A store that an older version wrote: one byte ended the stream for every reader at the same event.
TEST_F(CleanMessageClusterTest, AWrongByteInTheStoreHidesNothingBehindIt) {
  server_.reset();
  {
    auto store = SqliteStore::Open(config_.state_folder);
    ASSERT_TRUE(store.ok()) << store.status();
    Batch batch;
    batch.events.resize(2);
    batch.events[0].kind = batch.events[1].kind = kind::kNodeLost;
    batch.events[0].message = "cannot read /data/\xff.txt";
    batch.events[1].message = "behind it";
    ASSERT_TRUE((*store)->Commit(batch).ok());
  }
  Start();
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + Patience(absl::Seconds(30))));
  auto reader = stub_->ListEvents(&context, v1::ListEventsRequest());
  std::vector<std::string> messages;
  for (v1::Event event; reader->Read(&event);) messages.push_back(event.message());
  EXPECT_TRUE(reader->Finish().ok());
  EXPECT_EQ(std::count(messages.begin(), messages.end(), "cannot read /data/\\xff.txt"), 1);
  EXPECT_EQ(std::count(messages.begin(), messages.end(), "behind it"), 1);
}

}  // namespace
}  // namespace motley::coordinator
