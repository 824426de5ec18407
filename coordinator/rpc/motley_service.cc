#include "coordinator/rpc/motley_service.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "coordinator/rpc/check_cluster.h"
#include "coordinator/rpc/clean_message.h"
#include "coordinator/rpc/delete_job.h"
#include "coordinator/rpc/drain_node.h"
#include "coordinator/rpc/forget_node.h"
#include "coordinator/rpc/get_history.h"
#include "coordinator/rpc/get_job.h"
#include "coordinator/rpc/get_plan.h"
#include "coordinator/rpc/get_planning_inputs.h"
#include "coordinator/rpc/join_tokens.h"
#include "coordinator/rpc/list_events.h"
#include "coordinator/rpc/list_files.h"
#include "coordinator/rpc/list_jobs.h"
#include "coordinator/rpc/list_nodes.h"
#include "coordinator/rpc/look_at_path.h"
#include "coordinator/rpc/measure_node.h"
#include "coordinator/rpc/open_page.h"
#include "coordinator/rpc/permission.h"
#include "coordinator/rpc/probe_memory.h"
#include "coordinator/rpc/reactors.h"
#include "coordinator/rpc/resume_job.h"
#include "coordinator/rpc/rotate_authority.h"
#include "coordinator/rpc/stop_job.h"
#include "coordinator/rpc/submit_job.h"
#include "coordinator/rpc/tail_logs.h"
#include "coordinator/rpc/trace_step.h"
#include "coordinator/rpc/watch_job.h"

namespace motley::coordinator {

namespace {

template <typename Request>
std::string MethodOf() {
  return absl::StrCat("/", v1::Motley::service_full_name(), "/", absl::StripSuffix(Request::descriptor()->name(), "Request"));
}

template <typename Request>
std::string JobOf(const Request& request) {
  if constexpr (requires { request.job_id(); }) return request.job_id();
  return "";
}

template <typename Request>
std::string SubjectOf(const Request& request) {
  if constexpr (requires { request.node(); }) return request.node();
  return JobOf(request);
}

// The end of a stream that may not begin.
template <typename Message>
class RefusedSource : public StreamSource<Message> {
 public:
  explicit RefusedSource(absl::Status why) : why_(std::move(why)) {}
  absl::StatusOr<Pull> Next(Core&, Message*) override { return why_; }
  Topic topic() const override { return {NewsKind::kEvents, JobId()}; }

 private:
  const absl::Status why_;
};

}  // namespace

template <typename Request, typename Response>
grpc::ServerUnaryReactor* MotleyService::Call(const Context& context, absl::Status (*handler)(Core&, const Request&, Response*),
                                              const Request* request, Response* response) {
  return new UnaryReactor(loop_, busy_, context, [this, handler, request, response] {
    if (!core_.config.owners) {
      const absl::Status status = handler(core_, *request, response);
      CleanTexts(*response);
      return status;
    }
    const std::string method = MethodOf<Request>();
    absl::Status status = CheckPermission(core_.state, person_, method, JobOf(*request));
    if (status.ok()) {
      core_.caller = {person_.uid ? static_cast<int64_t>(*person_.uid) : -1, person_.name, person_.admin};
      status = handler(core_, *request, response);
      core_.caller = {};
    }
    Audit(person_, method, SubjectOf(*request), status);
    CleanTexts(*response);
    return status;
  });
}

grpc::ServerUnaryReactor* MotleyService::SubmitJob(Context* context, const v1::SubmitJobRequest* request,
                                                   v1::SubmitJobResponse* response) {
  return Call(*context, coordinator::SubmitJob, request, response);
}
grpc::ServerUnaryReactor* MotleyService::GetJob(Context* context, const v1::GetJobRequest* request,
                                                v1::GetJobResponse* response) {
  return Call(*context, coordinator::GetJob, request, response);
}
grpc::ServerUnaryReactor* MotleyService::ListJobs(Context* context, const v1::ListJobsRequest* request,
                                                  v1::ListJobsResponse* response) {
  return Call(*context, coordinator::ListJobs, request, response);
}
grpc::ServerUnaryReactor* MotleyService::StopJob(Context* context, const v1::StopJobRequest* request,
                                                 v1::StopJobResponse* response) {
  return Call(*context, coordinator::StopJob, request, response);
}
grpc::ServerUnaryReactor* MotleyService::ResumeJob(Context* context, const v1::ResumeJobRequest* request,
                                                   v1::ResumeJobResponse* response) {
  return Call(*context, coordinator::ResumeJob, request, response);
}
grpc::ServerUnaryReactor* MotleyService::DeleteJob(Context* context, const v1::DeleteJobRequest* request,
                                                   v1::DeleteJobResponse* response) {
  return Call(*context, coordinator::DeleteJob, request, response);
}
grpc::ServerUnaryReactor* MotleyService::ListNodes(Context* context, const v1::ListNodesRequest* request,
                                                   v1::ListNodesResponse* response) {
  return Call(*context, coordinator::ListNodes, request, response);
}
grpc::ServerUnaryReactor* MotleyService::DrainNode(Context* context, const v1::DrainNodeRequest* request,
                                                   v1::DrainNodeResponse* response) {
  return Call(*context, coordinator::DrainNode, request, response);
}
grpc::ServerUnaryReactor* MotleyService::CreateToken(Context* context, const v1::CreateTokenRequest* request,
                                                     v1::CreateTokenResponse* response) {
  return Call(*context, coordinator::CreateToken, request, response);
}
grpc::ServerUnaryReactor* MotleyService::ListTokens(Context* context, const v1::ListTokensRequest* request,
                                                    v1::ListTokensResponse* response) {
  return Call(*context, coordinator::ListTokens, request, response);
}
grpc::ServerUnaryReactor* MotleyService::RevokeToken(Context* context, const v1::RevokeTokenRequest* request,
                                                     v1::RevokeTokenResponse* response) {
  return Call(*context, coordinator::RevokeToken, request, response);
}
grpc::ServerUnaryReactor* MotleyService::MeasureNode(Context* context, const v1::MeasureNodeRequest* request,
                                                     v1::MeasureNodeResponse* response) {
  return Call(*context, coordinator::MeasureNode, request, response);
}

grpc::ServerUnaryReactor* MotleyService::ForgetNode(Context* context, const v1::ForgetNodeRequest* request,
                                                    v1::ForgetNodeResponse* response) {
  return Call(*context, coordinator::ForgetNode, request, response);
}
grpc::ServerUnaryReactor* MotleyService::RotateAuthority(Context* context, const v1::RotateAuthorityRequest* request,
                                                         v1::RotateAuthorityResponse* response) {
  return Call(*context, coordinator::RotateAuthority, request, response);
}
grpc::ServerUnaryReactor* MotleyService::OpenPage(Context* context, const v1::OpenPageRequest* request,
                                                  v1::OpenPageResponse* response) {
  return Call(*context, coordinator::OpenPage, request, response);
}
grpc::ServerUnaryReactor* MotleyService::GetHistory(Context* context, const v1::GetHistoryRequest* request,
                                                    v1::GetHistoryResponse* response) {
  return Call(*context, coordinator::GetHistory, request, response);
}
grpc::ServerUnaryReactor* MotleyService::GetPlan(Context* context, const v1::GetPlanRequest* request,
                                                 v1::GetPlanResponse* response) {
  return Call(*context, coordinator::GetPlan, request, response);
}
grpc::ServerUnaryReactor* MotleyService::GetPlanningInputs(Context* context, const v1::GetPlanningInputsRequest* request,
                                                           v1::GetPlanningInputsResponse* response) {
  return Call(*context, coordinator::GetPlanningInputs, request, response);
}
template <typename Source, typename Update, typename Request>
grpc::ServerWriteReactor<Update>* MotleyService::StreamIfAllowed(const Context& context, const Request& request) {
  // It is about no job, so nothing is read that the loop changes.
  absl::Status may = CheckPermission(ClusterState(), person_, MethodOf<Request>(), "");
  if constexpr (requires { request.node(); }) {
    if (core_.config.owners) Audit(person_, MethodOf<Request>(), SubjectOf(request), may);
  }
  std::unique_ptr<StreamSource<Update>> source;
  if (!core_.config.owners || may.ok()) {
    source = std::make_unique<Source>(request);
  } else {
    source = std::make_unique<RefusedSource<Update>>(std::move(may));
  }
  return new StreamReactor<Update>(loop_, core_, busy_, context, std::move(source));
}
// Nodes look at paths that it names.
grpc::ServerWriteReactor<v1::CheckClusterUpdate>* MotleyService::CheckCluster(Context* context,
                                                                              const v1::CheckClusterRequest* request) {
  return StreamIfAllowed<CheckClusterSource, v1::CheckClusterUpdate>(*context, *request);
}
grpc::ServerWriteReactor<v1::LookAtPathUpdate>* MotleyService::LookAtPath(Context* context,
                                                                          const v1::LookAtPathRequest* request) {
  return StreamIfAllowed<LookAtPathSource, v1::LookAtPathUpdate>(*context, *request);
}
grpc::ServerWriteReactor<v1::ListFilesUpdate>* MotleyService::ListFiles(Context* context, const v1::ListFilesRequest* request) {
  return StreamIfAllowed<ListFilesSource, v1::ListFilesUpdate>(*context, *request);
}
grpc::ServerWriteReactor<v1::ProbeMemoryUpdate>* MotleyService::ProbeMemory(Context* context,
                                                                            const v1::ProbeMemoryRequest* request) {
  return StreamIfAllowed<ProbeMemorySource, v1::ProbeMemoryUpdate>(*context, *request);
}
grpc::ServerWriteReactor<v1::JobUpdate>* MotleyService::WatchJob(Context* context, const v1::WatchJobRequest* request) {
  return new StreamReactor<v1::JobUpdate>(loop_, core_, busy_, *context, std::make_unique<WatchJobSource>(*request));
}
grpc::ServerWriteReactor<v1::Event>* MotleyService::ListEvents(Context* context, const v1::ListEventsRequest* request) {
  return new StreamReactor<v1::Event>(loop_, core_, busy_, *context, std::make_unique<ListEventsSource>(*request));
}
grpc::ServerWriteReactor<v1::LogLine>* MotleyService::TailLogs(Context* context, const v1::TailLogsRequest* request) {
  return new StreamReactor<v1::LogLine>(loop_, core_, busy_, *context, std::make_unique<TailLogsSource>(*request));
}
grpc::ServerWriteReactor<v1::TraceStepUpdate>* MotleyService::TraceStep(Context* context, const v1::TraceStepRequest* request) {
  return new StreamReactor<v1::TraceStepUpdate>(loop_, core_, busy_, *context, std::make_unique<TraceStepSource>(*request));
}
grpc::ServerBidiReactor<v1::CarryMessage, v1::CarryMessage>* MotleyService::Carry(Context* context) {
  return carries_.ForPerson(*context, busy_, person_);
}

}  // namespace motley::coordinator
