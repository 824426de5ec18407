// How Motley's programs reach each other by gRPC.
#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/channel_arguments.h>

#include <memory>
#include <string>

namespace motley {

// What every channel is opened with, before its owner's own settings: straight to the address, whatever http_proxy, https_proxy
// or grpc_proxy say (a site's proxy knows neither loopback nor the machines of a cluster, and gRPC asks it even for loopback);
// over a connection of its own, so that an attempt is a new one and not gRPC's memory of another channel's.
grpc::ChannelArguments DirectArguments();

// A plaintext channel to `address` (host:port or unix:PATH). Does not wait for the connection. Thread-safe.
std::shared_ptr<grpc::Channel> OpenChannel(const std::string& address,
                                           const grpc::ChannelArguments& arguments = DirectArguments());
// The same with credentials.
std::shared_ptr<grpc::Channel> OpenChannel(const std::string& address, const grpc::ChannelArguments& arguments,
                                           const std::shared_ptr<grpc::ChannelCredentials>& credentials);

}  // namespace motley
