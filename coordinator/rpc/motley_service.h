// The public API: one table of methods, each on the loop. The RPCs themselves are one file pair each.
#pragma once

#include <grpcpp/grpcpp.h>

#include <utility>

#include "coordinator/core/core.h"
#include "coordinator/core/loop.h"
#include "coordinator/rpc/busy_peers.h"
#include "coordinator/rpc/carries.h"
#include "coordinator/rpc/person.h"
#include "coordinator/rpc/roles.h"
#include "proto/motley/v1/motley.grpc.pb.h"

namespace motley::coordinator {

class MotleyService : public v1::Motley::CallbackService {
 public:
  // All must outlive the gRPC server.
  MotleyService(TaskPoster loop, Core& core, Carries& carries, BusyPeers& busy, Person person)
      : loop_(loop), core_(core), carries_(carries), busy_(busy), person_(std::move(person)) {
    for (const int method : NotGranted(Role::kPerson, v1::Motley::service_full_name())) MarkMethodGeneric(method);
  }

  using Context = grpc::CallbackServerContext;
  grpc::ServerUnaryReactor* SubmitJob(Context*, const v1::SubmitJobRequest*, v1::SubmitJobResponse*) override;
  grpc::ServerUnaryReactor* GetJob(Context*, const v1::GetJobRequest*, v1::GetJobResponse*) override;
  grpc::ServerUnaryReactor* ListJobs(Context*, const v1::ListJobsRequest*, v1::ListJobsResponse*) override;
  grpc::ServerUnaryReactor* StopJob(Context*, const v1::StopJobRequest*, v1::StopJobResponse*) override;
  grpc::ServerUnaryReactor* ResumeJob(Context*, const v1::ResumeJobRequest*, v1::ResumeJobResponse*) override;
  grpc::ServerUnaryReactor* DeleteJob(Context*, const v1::DeleteJobRequest*, v1::DeleteJobResponse*) override;
  grpc::ServerUnaryReactor* ListNodes(Context*, const v1::ListNodesRequest*, v1::ListNodesResponse*) override;
  grpc::ServerUnaryReactor* DrainNode(Context*, const v1::DrainNodeRequest*, v1::DrainNodeResponse*) override;
  grpc::ServerUnaryReactor* CreateToken(Context*, const v1::CreateTokenRequest*, v1::CreateTokenResponse*) override;
  grpc::ServerUnaryReactor* ListTokens(Context*, const v1::ListTokensRequest*, v1::ListTokensResponse*) override;
  grpc::ServerUnaryReactor* RevokeToken(Context*, const v1::RevokeTokenRequest*, v1::RevokeTokenResponse*) override;
  grpc::ServerUnaryReactor* MeasureNode(Context*, const v1::MeasureNodeRequest*, v1::MeasureNodeResponse*) override;
  grpc::ServerUnaryReactor* ForgetNode(Context*, const v1::ForgetNodeRequest*, v1::ForgetNodeResponse*) override;
  grpc::ServerUnaryReactor* RotateAuthority(Context*, const v1::RotateAuthorityRequest*, v1::RotateAuthorityResponse*) override;
  grpc::ServerUnaryReactor* OpenPage(Context*, const v1::OpenPageRequest*, v1::OpenPageResponse*) override;
  grpc::ServerUnaryReactor* GetHistory(Context*, const v1::GetHistoryRequest*, v1::GetHistoryResponse*) override;
  grpc::ServerUnaryReactor* GetPlan(Context*, const v1::GetPlanRequest*, v1::GetPlanResponse*) override;
  grpc::ServerUnaryReactor* GetPlanningInputs(Context*, const v1::GetPlanningInputsRequest*,
                                              v1::GetPlanningInputsResponse*) override;
  grpc::ServerWriteReactor<v1::CheckClusterUpdate>* CheckCluster(Context*, const v1::CheckClusterRequest*) override;
  grpc::ServerWriteReactor<v1::LookAtPathUpdate>* LookAtPath(Context*, const v1::LookAtPathRequest*) override;
  grpc::ServerWriteReactor<v1::ListFilesUpdate>* ListFiles(Context*, const v1::ListFilesRequest*) override;
  grpc::ServerWriteReactor<v1::ProbeMemoryUpdate>* ProbeMemory(Context*, const v1::ProbeMemoryRequest*) override;
  grpc::ServerWriteReactor<v1::JobUpdate>* WatchJob(Context*, const v1::WatchJobRequest*) override;
  grpc::ServerWriteReactor<v1::Event>* ListEvents(Context*, const v1::ListEventsRequest*) override;
  grpc::ServerWriteReactor<v1::LogLine>* TailLogs(Context*, const v1::TailLogsRequest*) override;
  grpc::ServerWriteReactor<v1::TraceStepUpdate>* TraceStep(Context*, const v1::TraceStepRequest*) override;
  grpc::ServerBidiReactor<v1::CarryMessage, v1::CarryMessage>* Carry(Context*) override;

 private:
  // The request and response live until the call is done.
  template <typename Request, typename Response>
  grpc::ServerUnaryReactor* Call(const Context& context, absl::Status (*handler)(Core&, const Request&, Response*),
                                 const Request* request, Response* response);

  // Of streams that not everybody may begin.
  template <typename Source, typename Update, typename Request>
  grpc::ServerWriteReactor<Update>* StreamIfAllowed(const Context& context, const Request& request);

  const TaskPoster loop_;
  Core& core_;
  Carries& carries_;
  BusyPeers& busy_;
  const Person person_;  // who calls
};

}  // namespace motley::coordinator
