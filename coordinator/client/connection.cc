#include "coordinator/client/connection.h"

#include <errno.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/duration_text.h"
#include "common/rpc/channel.h"
#include "coordinator/client/first_connection.h"

namespace motley::client {
namespace {

// A plan with its programs and trace is far larger than gRPC's default of 4 MiB.
constexpr int kLargestMessageBytes = 512 << 20;
// A coordinator whose machine vanished says nothing; a stream without traffic finds out by these.
constexpr absl::Duration kKeepalive = absl::Seconds(20);
constexpr absl::Duration kKeepaliveAnswer = absl::Seconds(10);
constexpr absl::Duration kFirstPause = absl::Milliseconds(50);
constexpr absl::Duration kLongestPause = absl::Seconds(2);
constexpr std::string_view kHttpStatus = "Received http2 header with status: ";

// gRPC would try again for as long as it is let, and say nothing of the reason.
absl::Status CheckSocket(const std::string& address) {
  if (!absl::StartsWith(address, "unix:")) return absl::OkStatus();
  const std::string path = address.substr(absl::StartsWith(address, "unix://") ? 7 : 5);
  if (access(path.c_str(), W_OK) == 0 || errno != EACCES) return absl::OkStatus();
  return absl::PermissionDeniedError(
      absl::StrCat("this user may not open the coordinator's socket ", path,
                   "; it is for its user and group (the service's is motley: usermod -aG motley USER)"));
}

// Of a channel that failed to connect; empty where the attempt found silence, which may end. Only a call is told the reason,
// behind the steps that led to it: "failed to connect to all addresses; last error: ... Failed to connect to remote host:
// Connection refused".
std::string WhyNotConnected(const std::shared_ptr<grpc::Channel>& channel, absl::Time deadline) {
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(deadline));
  v1::GetJobResponse response;
  const grpc::Status status = v1::Motley::NewStub(channel)->GetJob(&context, {}, &response);
  const std::string message = status.error_message();
  if (status.error_code() != grpc::StatusCode::UNAVAILABLE || absl::StrContains(message, "timed out")) return "";
  const size_t colon = message.rfind(": ");
  return colon == std::string::npos ? message : message.substr(colon + 2);
}

}  // namespace

absl::Status FromGrpc(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  const std::string message = status.error_message();
  // What gRPC makes of an answer that is HTTP's and not its own.
  if (const size_t at = message.find(kHttpStatus); at != std::string::npos) {
    return absl::UnavailableError(absl::StrCat("who answers there is no coordinator: it says HTTP status ",
                                               message.substr(at + kHttpStatus.size()),
                                               "; is the port right, or does a proxy or a login page answer in its place?"));
  }
  // gRPC's own refusal of a method that the server lacks has no text; the coordinator's always has one.
  if (status.error_code() == grpc::StatusCode::UNIMPLEMENTED && message.empty()) {
    return absl::UnimplementedError("the coordinator does not know this request; is it another version?");
  }
  // The numbers of the two enumerations are the same.
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), message);
}

Connection::Connection(std::string address, ConnectionOptions options, std::shared_ptr<grpc::Channel> channel)
    : address_(std::move(address)),
      options_(options),
      channel_(std::move(channel)),
      stub_(v1::Motley::NewStub(channel_)),
      pause_(kFirstPause) {}

absl::StatusOr<Connection> Connection::Open(const std::string& address, const ConnectionOptions& options,
                                            const std::function<void(const std::string&)>& say) {
  if (absl::Status status = CheckSocket(address); !status.ok()) return status;
  grpc::ChannelArguments arguments = DirectArguments();
  arguments.SetMaxReceiveMessageSize(kLargestMessageBytes);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 1000);  // the least that an attempt may take
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, static_cast<int>(absl::ToInt64Milliseconds(kKeepalive)));
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, static_cast<int>(absl::ToInt64Milliseconds(kKeepaliveAnswer)));
  auto channel = OpenChannel(address, arguments);
  const Dial dial = {
      .state = [&] { return channel->GetState(true); },
      .why_not = [&](absl::Time end) { return WhyNotConnected(channel, end); },
      .changes = [&](grpc_connectivity_state state,
                     absl::Time until) { return channel->WaitForStateChange(state, absl::ToChronoTime(until)); },
  };
  const FirstWait wait = {address, options.connect, options.silence};
  if (absl::Status status = AwaitFirst(dial, wait, say); !status.ok()) return status;
  return Connection(address, options, std::move(channel));
}

bool Connection::MayReturn(const grpc::Status& status) {
  // CANCELLED comes from a coordinator that shuts down: nobody else cancels these streams.
  return status.error_code() == grpc::StatusCode::UNAVAILABLE || status.error_code() == grpc::StatusCode::CANCELLED;
}

// An attempt that fails does so at once; one that went on for longer was answered.
bool Connection::HasLasted(absl::Time opened) { return absl::Now() - opened > kLongestPause; }

absl::Status Connection::AwaitCoordinator(bool answered) {
  if (answered || lost_ == absl::InfinitePast()) lost_ = absl::Now();
  pause_ = answered ? kFirstPause : std::min(pause_ * 2, kLongestPause);
  absl::SleepFor(pause_);
  const absl::Time until = lost_ + options_.patience;
  if (absl::Now() < until && channel_->WaitForConnected(absl::ToChronoTime(until))) return absl::OkStatus();
  return NotTaken(address_, absl::StrCat("waited ", DurationText(options_.patience)));
}

}  // namespace motley::client
