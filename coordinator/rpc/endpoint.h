// One gRPC server of the coordinator: for people or for workers, with its services and limits. Connections come from an Acceptor.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "coordinator/rpc/roles.h"

namespace motley::coordinator {

struct EndpointOptions {
  Role role = Role::kPerson;
  std::vector<grpc::Service*> services;
  RefusingService* refusing = nullptr;  // answers what the services do not
  int most_message_bytes = 0;           // of what comes in
  bool reflection = false;
  std::shared_ptr<grpc::ServerCredentials> tls;                  // null: no connection comes by TLS
  int most_streams = 0;                                          // calls of one connection at once; 0: as gRPC has it
  absl::Duration longest_connection = absl::InfiniteDuration();  // then it is closed, whatever it does
};
// Who connects by TLS and has not shown itself by then is gone: many may dial at once.
inline constexpr absl::Duration kLongestTlsHandshake = absl::Seconds(10);

struct Endpoint {
  std::unique_ptr<grpc::Server> server;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> tls_acceptor;  // null without credentials
};

// Services must outlive the server. INTERNAL: gRPC does not start.
absl::StatusOr<Endpoint> StartEndpoint(const EndpointOptions& options);

}  // namespace motley::coordinator
