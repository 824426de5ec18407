#include "coordinator/rpc/endpoint.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/impl/server_builder_option.h>

#include <utility>

namespace motley::coordinator {
namespace {

// Who connects and says nothing, or half a greeting, holds a descriptor no longer than this.
constexpr int kHandshakeMs = 3000;
constexpr int kKeepaliveMs = 10000;
constexpr int kKeepaliveAnswerMs = 5000;
// A connection without a call is given up; a client that has one more question dials again by itself.
constexpr int kIdleMs = 600000;

// Reflection comes with its library, on every server of the process: taken off, but for the servers that have it.
class Reflection : public grpc::ServerBuilderOption {
 public:
  explicit Reflection(bool wanted) : wanted_(wanted) {}
  void UpdateArguments(grpc::ChannelArguments*) override {}
  void UpdatePlugins(std::vector<std::unique_ptr<grpc::ServerBuilderPlugin>>* plugins) override {
    auto reflection = std::make_unique<grpc::reflection::ProtoServerReflectionPlugin>();
    std::erase_if(*plugins, [&](const auto& plugin) { return plugin->name() == reflection->name(); });
    if (wanted_) plugins->push_back(std::move(reflection));
  }

 private:
  const bool wanted_;
};

}  // namespace

absl::StatusOr<Endpoint> StartEndpoint(const EndpointOptions& options) {
  grpc::ServerBuilder builder;
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveAnswerMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 1000);
  const int tls_handshake_ms = static_cast<int>(absl::ToInt64Milliseconds(kLongestTlsHandshake));
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, options.tls == nullptr ? kHandshakeMs : tls_handshake_ms);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, kIdleMs);
  if (options.most_streams > 0) builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, options.most_streams);
  if (options.longest_connection < absl::InfiniteDuration()) {
    const int longest_ms = static_cast<int>(absl::ToInt64Milliseconds(options.longest_connection));
    builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_MS, longest_ms);
    builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_GRACE_MS, longest_ms);
  }
  builder.SetMaxReceiveMessageSize(options.most_message_bytes);
  builder.SetOption(std::make_unique<Reflection>(options.reflection));
  for (grpc::Service* service : options.services) builder.RegisterService(service);
  builder.RegisterCallbackGenericService(options.refusing);
  Endpoint endpoint;
  constexpr auto kFromDescriptor = grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD;
  endpoint.acceptor = builder.experimental().AddExternalConnectionAcceptor(kFromDescriptor, grpc::InsecureServerCredentials());
  if (options.tls != nullptr)
    endpoint.tls_acceptor = builder.experimental().AddExternalConnectionAcceptor(kFromDescriptor, options.tls);
  endpoint.server = builder.BuildAndStart();
  if (endpoint.server == nullptr) return absl::InternalError("gRPC does not start a server; report this");
  return endpoint;
}

}  // namespace motley::coordinator
