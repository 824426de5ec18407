// An in-process coordinator for the command line's tests: plain tables, no logic; counts what it was asked.
#pragma once

#include <grpcpp/grpcpp.h>

#include <map>
#include <memory>
#include <mutex>
#include <sstream>
#include <string>
#include <vector>

#include "coordinator/client/cli.h"
#include "proto/motley/v1/motley.grpc.pb.h"

namespace motley::client {

class FakeMotley : public v1::Motley::Service {
 public:
  FakeMotley() { Start(); }
  ~FakeMotley() override { Stop(); }

  // On the same port as before, once it has one.
  void Start() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:" + std::to_string(port_), grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  void Stop() {
    if (server_) server_->Shutdown(std::chrono::system_clock::now());
    server_.reset();
  }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

  v1::Job& AddJob(const std::string& id, v1::JobState state) {
    v1::Job& job = jobs[id];
    job.set_id(id);
    job.set_state(state);
    job.mutable_spec()->mutable_training()->set_steps(3);
    return job;
  }
  // Step records 1..n, then the job's last state.
  void AddRun(const std::string& id, int steps) {
    for (int step = 1; step <= steps; ++step) {
      v1::JobUpdate& update = updates[id].emplace_back();
      update.set_cursor(static_cast<int64_t>(updates[id].size()));
      update.mutable_step()->set_step(step);
      update.mutable_step()->set_epoch(1);
      update.mutable_step()->set_loss(5.0 - step);
      update.mutable_step()->set_step_seconds(0.5);
      update.mutable_step()->set_predicted_step_seconds(0.4);
      *jobs[id].mutable_last_step() = update.step();
      jobs[id].set_step(step);
    }
    v1::JobUpdate& last = updates[id].emplace_back();
    last.set_cursor(static_cast<int64_t>(updates[id].size()));
    *last.mutable_job() = jobs[id];
  }

  grpc::Status SubmitJob(grpc::ServerContext*, const v1::SubmitJobRequest* request, v1::SubmitJobResponse* response) override {
    std::lock_guard lock(mutex);
    submitted.push_back(*request);
    if (!refusal.ok()) return refusal;
    v1::Job& job = jobs[request->job_id()];
    job.set_id(request->job_id());
    *job.mutable_spec() = request->spec();
    response->set_created(job.state() == v1::JOB_STATE_UNSPECIFIED);
    if (response->created()) job.set_state(v1::JOB_STATE_QUEUED), job.set_reason(reason_of_new);
    if (lose_answers > 0 && lose_answers-- > 0) return {grpc::StatusCode::UNAVAILABLE, "lost on its way"};
    *response->mutable_job() = job;
    return grpc::Status::OK;
  }
  grpc::Status LookAtPath(grpc::ServerContext*, const v1::LookAtPathRequest* request,
                          grpc::ServerWriter<v1::LookAtPathUpdate>* writer) override {
    if (!knows_paths) return {grpc::StatusCode::UNIMPLEMENTED, "not known"};
    std::lock_guard lock(mutex);
    looked_at.push_back(*request);
    v1::LookAtPathUpdate update;
    for (const auto& [node, sampled] : path_on_nodes) {
      v1::PathOnNode* const row = update.mutable_result()->add_nodes();
      row->set_node(node);
      row->set_sampled(sampled);
    }
    update.mutable_result();
    writer->Write(update);
    return grpc::Status::OK;
  }
  grpc::Status ListFiles(grpc::ServerContext*, const v1::ListFilesRequest* request,
                         grpc::ServerWriter<v1::ListFilesUpdate>* writer) override {
    v1::ListFilesUpdate update;
    update.set_doing(request->job_id());
    writer->Write(update);
    *update.mutable_result() = listing;
    writer->Write(update);
    return grpc::Status::OK;
  }
  grpc::Status GetJob(grpc::ServerContext*, const v1::GetJobRequest* request, v1::GetJobResponse* response) override {
    for (const v1::TransportUse& use : transports) *response->add_transports() = use;
    if (request->memory()) *response->mutable_memory() = {memory.begin(), memory.end()};
    return Find(request->job_id(), response->mutable_job());
  }
  grpc::Status StopJob(grpc::ServerContext*, const v1::StopJobRequest* request, v1::StopJobResponse* response) override {
    return Find(request->job_id(), response->mutable_job());
  }
  grpc::Status ResumeJob(grpc::ServerContext*, const v1::ResumeJobRequest* request, v1::ResumeJobResponse* response) override {
    {
      std::lock_guard lock(mutex);
      resumed.push_back(*request);
      if (!refusal.ok()) return refusal;
      const auto job = jobs.find(request->job_id());
      const bool ended = job != jobs.end() && job->second.state() >= v1::JOB_STATE_SUCCEEDED;
      if (ended) job->second.set_state(v1::JOB_STATE_QUEUED), job->second.mutable_spec()->MergeFrom(request->changes());
      response->set_resumed(ended);
    }
    return Find(request->job_id(), response->mutable_job());
  }
  grpc::Status DeleteJob(grpc::ServerContext*, const v1::DeleteJobRequest* request, v1::DeleteJobResponse* response) override {
    std::lock_guard lock(mutex);
    if (!refusal.ok()) return refusal;
    const bool wrote = !jobs[request->job_id()].newest_checkpoint().empty(), is_there = !jobs[request->job_id()].id().empty();
    jobs.erase(request->job_id());
    if (!is_there) return {grpc::StatusCode::NOT_FOUND, "no job '" + request->job_id() + "'"};
    if (wrote) response->set_checkpoint_folder("/checkpoints/" + request->job_id()), response->set_adopt("0a1b");
    if (lose_answers > 0 && lose_answers-- > 0) return {grpc::StatusCode::UNAVAILABLE, "lost on its way"};
    return grpc::Status::OK;
  }
  // Pages of two.
  grpc::Status ListJobs(grpc::ServerContext*, const v1::ListJobsRequest* request, v1::ListJobsResponse* response) override {
    std::lock_guard lock(mutex);
    listed.push_back(*request);
    for (auto it = jobs.upper_bound(request->page_token()); it != jobs.end(); ++it) {
      const int most = request->page_size() == 1 ? 1 : 2;
      if (response->jobs_size() == most) {
        response->set_next_page_token(response->jobs(most - 1).id());
        break;
      }
      *response->add_jobs() = it->second;
    }
    return grpc::Status::OK;
  }
  grpc::Status ListNodes(grpc::ServerContext*, const v1::ListNodesRequest*, v1::ListNodesResponse* response) override {
    std::lock_guard lock(mutex);
    for (const auto& [name, node] : nodes) *response->add_nodes() = node;
    return grpc::Status::OK;
  }
  grpc::Status DrainNode(grpc::ServerContext*, const v1::DrainNodeRequest* request, v1::DrainNodeResponse* response) override {
    std::lock_guard lock(mutex);
    const auto node = nodes.find(request->node());
    if (node == nodes.end()) return {grpc::StatusCode::NOT_FOUND, "no node '" + request->node() + "'"};
    node->second.set_state(request->drain() ? "draining" : "ready");
    *response->mutable_node() = node->second;
    return grpc::Status::OK;
  }
  grpc::Status CreateToken(grpc::ServerContext*, const v1::CreateTokenRequest* request,
                           v1::CreateTokenResponse* response) override {
    std::lock_guard lock(mutex);
    tokens_asked.push_back(*request);
    if (!refusal.ok()) return refusal;
    *response = new_token;
    return grpc::Status::OK;
  }
  grpc::Status ListTokens(grpc::ServerContext*, const v1::ListTokensRequest*, v1::ListTokensResponse* response) override {
    std::lock_guard lock(mutex);
    for (const auto& [id, token] : tokens) *response->add_tokens() = token;
    return grpc::Status::OK;
  }
  grpc::Status RevokeToken(grpc::ServerContext*, const v1::RevokeTokenRequest* request, v1::RevokeTokenResponse*) override {
    std::lock_guard lock(mutex);
    revoked.push_back(request->id());
    if (tokens.erase(request->id()) == 0) return {grpc::StatusCode::NOT_FOUND, "there is no token '" + request->id() + "'"};
    return grpc::Status::OK;
  }
  grpc::Status ForgetNode(grpc::ServerContext*, const v1::ForgetNodeRequest* request, v1::ForgetNodeResponse*) override {
    std::lock_guard lock(mutex);
    forgotten.push_back(request->node());
    if (nodes.erase(request->node()) == 0) return {grpc::StatusCode::NOT_FOUND, "no member is named '" + request->node() + "'"};
    return grpc::Status::OK;
  }
  grpc::Status MeasureNode(grpc::ServerContext*, const v1::MeasureNodeRequest* request,
                           v1::MeasureNodeResponse* response) override {
    std::lock_guard lock(mutex);
    if (!nodes.contains(request->node())) return {grpc::StatusCode::NOT_FOUND, "no node '" + request->node() + "'"};
    response->set_job_id(measuring_job);
    return grpc::Status::OK;
  }
  grpc::Status RotateAuthority(grpc::ServerContext*, const v1::RotateAuthorityRequest*,
                               v1::RotateAuthorityResponse* response) override {
    std::lock_guard lock(mutex);
    if (!refusal.ok()) return refusal;
    response->set_authority(++authority);
    return grpc::Status::OK;
  }
  grpc::Status GetPlan(grpc::ServerContext*, const v1::GetPlanRequest* request, v1::GetPlanResponse* response) override {
    v1::Job job;
    if (grpc::Status status = Find(request->job_id(), &job); !status.ok()) return status;
    *response = plan;
    return grpc::Status::OK;
  }
  grpc::Status GetPlanningInputs(grpc::ServerContext*, const v1::GetPlanningInputsRequest* request,
                                 v1::GetPlanningInputsResponse* response) override {
    v1::Job job;
    if (grpc::Status status = Find(request->job_id(), &job); !status.ok()) return status;
    if (!refusal.ok()) return refusal;
    *response = inputs;
    return grpc::Status::OK;
  }
  grpc::Status CheckCluster(grpc::ServerContext*, const v1::CheckClusterRequest* request,
                            grpc::ServerWriter<v1::CheckClusterUpdate>* writer) override {
    std::lock_guard lock(mutex);
    checked.push_back(*request);
    if (!refusal.ok()) return refusal;
    v1::CheckClusterUpdate update;
    update.set_doing("whether the nodes reach each other");
    writer->Write(update);
    *update.mutable_result() = check;
    writer->Write(update);
    return grpc::Status::OK;
  }
  grpc::Status ProbeMemory(grpc::ServerContext*, const v1::ProbeMemoryRequest* request,
                           grpc::ServerWriter<v1::ProbeMemoryUpdate>* writer) override {
    std::lock_guard lock(mutex);
    probed.push_back(*request);
    if (!refusal.ok()) return refusal;
    v1::ProbeMemoryUpdate update;
    update.set_doing("b/gpu0: trial 1 with 1 sample, 0 s gone");
    writer->Write(update);
    *update.mutable_result() = probe;
    writer->Write(update);
    return grpc::Status::OK;
  }
  grpc::Status TraceStep(grpc::ServerContext*, const v1::TraceStepRequest* request,
                         grpc::ServerWriter<v1::TraceStepUpdate>* writer) override {
    std::lock_guard lock(mutex);
    traced.push_back(*request);
    if (!refusal.ok()) return refusal;
    v1::TraceStepUpdate update;
    update.set_doing("asking the ranks");
    writer->Write(update);
    for (const v1::RankTimeline& rank : timelines) {
      *update.mutable_rank() = rank;
      writer->Write(update);
    }
    return grpc::Status::OK;
  }
  grpc::Status WatchJob(grpc::ServerContext*, const v1::WatchJobRequest* request,
                        grpc::ServerWriter<v1::JobUpdate>* writer) override {
    std::unique_lock lock(mutex);
    if (!jobs.contains(request->job_id())) return {grpc::StatusCode::NOT_FOUND, "no job '" + request->job_id() + "'"};
    watch_cursors.push_back(request->cursor());
    const std::vector<v1::JobUpdate> all = updates[request->job_id()];
    const int limit = breaks.empty() ? -1 : breaks.front().after;
    const grpc::Status end = breaks.empty() ? grpc::Status::OK : breaks.front().status;
    if (!breaks.empty()) breaks.erase(breaks.begin());
    lock.unlock();
    int written = 0;
    for (const v1::JobUpdate& update : all) {
      if (update.cursor() <= request->cursor()) continue;
      if (limit >= 0 && written == limit) return end;
      writer->Write(update);
      ++written;
    }
    return end;
  }
  grpc::Status ListEvents(grpc::ServerContext*, const v1::ListEventsRequest* request,
                          grpc::ServerWriter<v1::Event>* writer) override {
    std::lock_guard lock(mutex);
    for (const v1::Event& event : events) {
      if (event.sequence() <= request->after_sequence()) continue;
      if (request->job_id().empty() || event.job_id() == request->job_id()) writer->Write(event);
    }
    return grpc::Status::OK;
  }
  grpc::Status TailLogs(grpc::ServerContext*, const v1::TailLogsRequest* request,
                        grpc::ServerWriter<v1::LogLine>* writer) override {
    std::lock_guard lock(mutex);
    for (const v1::LogLine& line : lines) {
      if (line.sequence() > request->after_sequence()) writer->Write(line);
    }
    return grpc::Status::OK;
  }

  // How the next streams end early: after so many updates, with this status.
  struct Break {
    int after;
    grpc::Status status;
  };
  std::mutex mutex;
  std::map<std::string, v1::Job> jobs;
  std::map<std::string, std::vector<v1::JobUpdate>> updates;
  std::vector<v1::TransportUse> transports;  // of every job
  std::map<std::string, v1::Node> nodes;
  v1::CreateTokenResponse new_token;
  std::vector<v1::CreateTokenRequest> tokens_asked;
  std::map<std::string, v1::Token> tokens;
  std::string measuring_job;
  std::vector<std::string> revoked, forgotten;  // what was asked for, also in vain
  int64_t authority = 1;
  std::vector<v1::Event> events;
  std::vector<v1::LogLine> lines;
  std::vector<v1::RankMemory> memory;
  v1::GetPlanResponse plan;
  v1::GetPlanningInputsResponse inputs;
  v1::ClusterCheck check;
  std::vector<v1::CheckClusterRequest> checked;
  v1::ProbeMemoryResult probe;
  std::vector<v1::ProbeMemoryRequest> probed;
  std::vector<v1::RankTimeline> timelines;
  std::vector<v1::TraceStepRequest> traced;
  grpc::Status refusal;
  std::vector<Break> breaks;
  bool knows_paths = false;  // an older coordinator does not
  std::map<std::string, v1::Sampled> path_on_nodes;
  std::vector<v1::LookAtPathRequest> looked_at;
  v1::FileListing listing;
  std::vector<v1::SubmitJobRequest> submitted;
  std::vector<v1::ResumeJobRequest> resumed;
  std::vector<v1::ListJobsRequest> listed;
  int lose_answers = 0;       // to so many calls that were done
  std::string reason_of_new;  // of jobs that are submitted
  std::vector<int64_t> watch_cursors;

 private:
  grpc::Status Find(const std::string& id, v1::Job* job) {
    std::lock_guard lock(mutex);
    const auto found = jobs.find(id);
    if (found == jobs.end()) return {grpc::StatusCode::NOT_FOUND, "no job '" + id + "'"};
    *job = found->second;
    return grpc::Status::OK;
  }

  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

struct Ran {
  int code;
  std::string out, err;
};

// Runs the command line against the fake, as a user types it.
inline Ran Motley(const FakeMotley& fake, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"--coordinator", fake.address()});
  std::ostringstream out, err;
  const int code =
      RunCli(arguments, out, err, {.connect = absl::Seconds(10), .call = absl::Seconds(10), .patience = absl::Seconds(10)});
  return {code, out.str(), err.str()};
}

// The same where no coordinator is there, for commands that ask none.
inline Ran MotleyAlone(std::vector<std::string> arguments, const Screen& screen = {}) {
  arguments.insert(arguments.begin(), {"--coordinator", "127.0.0.1:1"});
  std::ostringstream out, err;
  const int code = RunCli(arguments, out, err, {.connect = absl::Milliseconds(100)}, screen);
  return {code, out.str(), err.str()};
}

}  // namespace motley::client
