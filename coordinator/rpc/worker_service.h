// The worker's side of the API: one long stream per worker, and how a machine becomes one.
#pragma once

#include <grpcpp/grpcpp.h>

#include "coordinator/core/core.h"
#include "coordinator/core/loop.h"
#include "coordinator/rpc/busy_peers.h"
#include "coordinator/rpc/carries.h"
#include "coordinator/rpc/roles.h"
#include "proto/motley/v1/worker.grpc.pb.h"

namespace motley::coordinator {

class WorkerSessions : public v1::WorkerService::CallbackService {
 public:
  // All must outlive the gRPC server.
  WorkerSessions(TaskPoster loop, Core& core, Carries& carries, BusyPeers& busy)
      : loop_(loop), core_(core), carries_(carries), busy_(busy) {
    for (const int method : NotGranted(Role::kWorker, v1::WorkerService::service_full_name())) MarkMethodGeneric(method);
  }
  grpc::ServerBidiReactor<v1::WorkerMessage, v1::CoordinatorMessage>* Session(grpc::CallbackServerContext* context) override;
  grpc::ServerUnaryReactor* Join(grpc::CallbackServerContext* context, const v1::JoinRequest* request,
                                 v1::JoinResponse* response) override;
  grpc::ServerBidiReactor<v1::CarryMessage, v1::CarryMessage>* Carry(grpc::CallbackServerContext* context) override;

 private:
  const TaskPoster loop_;
  Core& core_;
  Carries& carries_;
  BusyPeers& busy_;
};

}  // namespace motley::coordinator
