#include "coordinator/rpc/job_size.h"

#include <gmock/gmock.h>

#include "common/wire/job.h"
#include "coordinator/rpc/resume_job.h"
#include "coordinator/rpc/submit_job.h"
#include "tests/coordinator/core/core_fixture.h"
#include "tests/coordinator/rpc/tiny_job.h"

namespace motley::coordinator {
namespace {

class JobsOfAccount : public CoreTest {
 protected:
  JobsOfAccount() { config_.account_jobs = 2; }
  absl::Status Submit(const std::string& id, const CallingAccount& caller) {
    core_->caller = caller;
    v1::SubmitJobRequest request;
    request.set_job_id(id);
    *request.mutable_spec() = wire::ToProto(TinyJob(3, "/checkpoints"));
    v1::SubmitJobResponse response;
    return SubmitJob(*core_, request, &response);
  }
  absl::Status Resume(const std::string& id, const CallingAccount& caller) {
    core_->caller = caller;
    v1::ResumeJobRequest request;
    request.set_job_id(id);
    v1::ResumeJobResponse response;
    return ResumeJob(*core_, request, &response);
  }
  const CallingAccount alice_{4001, "alice", false}, bob_{4002, "bob", false}, root_{0, "root", true};
};

TEST_F(JobsOfAccount, OneAccountDoesNotFillTheQueue) {
  for (const char* id : {"a", "b"}) ASSERT_TRUE(Submit(id, alice_).ok());
  const absl::Status third = Submit("c", alice_);
  EXPECT_EQ(third.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(
      third.message(),
      "alice has 2 jobs that have not ended; limits.account_jobs allows 2. Stop some, try again when some have ended, or ask "
      "a member of group motley-admin");
  EXPECT_TRUE(Submit("a", alice_).ok()) << "it is there already";
  EXPECT_TRUE(Submit("d", bob_).ok()) << "another account has its own";
  core_->state.jobs.at(JobId("b")).phase = JobPhase::kStopped;
  EXPECT_TRUE(Submit("c", alice_).ok()) << "one has ended";
  EXPECT_EQ(Resume("b", alice_).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(Resume("b", root_).ok());
}

TEST_F(JobsOfAccount, AdminsAndWhoIsNotToldApartHaveNoLimit) {
  for (const char* id : {"a", "b", "c"}) EXPECT_TRUE(Submit(id, root_).ok());
  for (const char* id : {"d", "e", "f"}) EXPECT_TRUE(Submit(id, CallingAccount()).ok());
  config_.account_jobs = 0;
  for (const char* id : {"g", "h", "i"}) EXPECT_TRUE(Submit(id, alice_).ok());
}

}  // namespace
}  // namespace motley::coordinator
