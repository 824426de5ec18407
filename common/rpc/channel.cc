#include "common/rpc/channel.h"

#include <grpc/grpc.h>
#include <grpcpp/create_channel.h>

namespace motley {

grpc::ChannelArguments DirectArguments() {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return arguments;
}

std::shared_ptr<grpc::Channel> OpenChannel(const std::string& address, const grpc::ChannelArguments& arguments) {
  return OpenChannel(address, arguments, grpc::InsecureChannelCredentials());
}

std::shared_ptr<grpc::Channel> OpenChannel(const std::string& address, const grpc::ChannelArguments& arguments,
                                           const std::shared_ptr<grpc::ChannelCredentials>& credentials) {
  return grpc::CreateCustomChannel(address, credentials, arguments);
}

}  // namespace motley
