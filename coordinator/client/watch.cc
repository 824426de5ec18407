#include "coordinator/client/watch.h"

#include "absl/strings/str_cat.h"
#include "coordinator/client/format.h"

namespace motley::client {
namespace {

// A restarted coordinator may know a job's newest step and keep no record of it.
constexpr absl::Duration kSnapshotLimit = absl::Seconds(5);

Connection::Stream<v1::JobUpdate> Open(const Watch& watch, bool snapshot) {
  Connection::Stream<v1::JobUpdate> stream;
  stream.open = [id = watch.job_id, snapshot](Connection::Stub& stub, grpc::ClientContext* call, int64_t cursor) {
    v1::WatchJobRequest request;
    request.set_job_id(id);
    request.set_cursor(cursor);
    request.set_snapshot(snapshot);
    return stub.WatchJob(call, request);
  };
  stream.cursor_of = [](const v1::JobUpdate& update) { return update.cursor(); };
  stream.say = watch.say;
  stream.cursor = watch.cursor;
  stream.deadline = watch.deadline;
  return stream;
}

bool IsVerdict(v1::JobState state) {
  return HasEnded(state) || state == v1::JOB_STATE_WAITING || state == v1::JOB_STATE_STARTING || state == v1::JOB_STATE_RUNNING;
}

}  // namespace

absl::StatusOr<v1::Job> WatchToEnd(Connection& connection, const Watch& watch) {
  bool ended = false;
  Connection::Stream<v1::JobUpdate> stream = Open(watch, false);
  stream.use = [&](const v1::JobUpdate& update) {
    watch.use(update);
    // What is kept of a job that was resumed begins with an earlier end.
    if (update.has_job()) ended = HasEnded(update.job().state());
    return true;  // what comes after the last state still belongs to the job
  };
  // A coordinator that shuts down ends its streams too; then the job has not ended.
  stream.ends = [&] { return ended; };
  if (absl::Status status = connection.Follow(std::move(stream)); !status.ok()) return status;
  return GetJob(connection, watch.job_id);
}

absl::StatusOr<v1::Job> WatchToFirstVerdict(Connection& connection, const v1::Job& job, const Watch& watch) {
  v1::Job newest = job;
  Connection::Stream<v1::JobUpdate> stream = Open(watch, false);
  stream.use = [&](const v1::JobUpdate& update) {
    watch.use(update);
    if (update.has_job()) newest = update.job();
    return !IsVerdict(newest.state());
  };
  if (IsVerdict(newest.state())) return newest;
  if (absl::Status status = connection.Follow(std::move(stream)); !status.ok()) return status;
  return newest;
}

absl::Status WatchUntilNow(Connection& connection, const v1::Job& job, const Watch& watch) {
  if (!job.has_last_step()) return absl::OkStatus();
  Connection::Stream<v1::JobUpdate> stream = Open(watch, true);
  stream.deadline = absl::Now() + kSnapshotLimit;
  stream.use = [&](const v1::JobUpdate& update) {
    watch.use(update);
    const bool newest =
        update.has_step() && update.step().step() == job.last_step().step() && update.step().epoch() == job.last_step().epoch();
    return !newest;
  };
  return connection.Follow(std::move(stream));
}

absl::StatusOr<v1::Job> GetJob(Connection& connection, const std::string& id) {
  v1::GetJobRequest request;
  request.set_job_id(id);
  auto response = connection.Call(&Connection::Stub::GetJob, request);
  if (!response.ok()) return response.status();
  return response->job();
}

}  // namespace motley::client
