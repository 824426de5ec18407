// grpc.health.v1, answered on the loop: a coordinator whose loop stands still does not say that it serves.
#pragma once

#include <grpcpp/grpcpp.h>

#include <string>

#include "coordinator/core/core.h"
#include "coordinator/core/loop.h"
#include "coordinator/rpc/busy_peers.h"
#include "coordinator/rpc/roles.h"
#include "proto/grpc/health/v1/health.grpc.pb.h"

namespace motley::coordinator {

class HealthService : public grpc::health::v1::Health::CallbackService {
 public:
  // `service` is what its server serves, besides "" for the whole. Loop and core must outlive the gRPC server.
  HealthService(TaskPoster loop, Core& core, BusyPeers& busy, Role role, std::string service);
  grpc::ServerUnaryReactor* Check(grpc::CallbackServerContext*, const grpc::health::v1::HealthCheckRequest*,
                                  grpc::health::v1::HealthCheckResponse*) override;
  grpc::ServerWriteReactor<grpc::health::v1::HealthCheckResponse>* Watch(grpc::CallbackServerContext*,
                                                                         const grpc::health::v1::HealthCheckRequest*) override;

 private:
  bool Knows(const std::string& service) const { return service.empty() || service == service_; }

  const TaskPoster loop_;
  Core& core_;
  BusyPeers& busy_;
  const std::string service_;
};

}  // namespace motley::coordinator
