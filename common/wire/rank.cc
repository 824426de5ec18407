// The socket's messages are made of the session's: both conversions go through it.
#include "common/wire/rank.h"

#include <tuple>
#include <type_traits>

#include "common/base/status_macros.h"
#include "common/wire/assignment.h"
#include "common/wire/both_ways.h"
#include "common/wire/session.h"

namespace motley::wire {
namespace {

// A message that the socket has as one field and the session as another.
template <typename Socket, typename Session, typename Part>
struct SharedPart {
  bool (Socket::*in_socket)() const;
  bool (Session::*in_session)() const;
  Part* (Socket::*of_socket)();
  Part* (Session::*of_session)();
};

#define SHARED_PART(Socket, name, Session, session_name) \
  SharedPart { &Socket::has_##name, &Session::has_##session_name, &Socket::mutable_##name, &Session::mutable_##session_name }
#define TO_RANK(name, session_name) SHARED_PART(v1::ToRank, name, v1::CoordinatorMessage, session_name)
#define FROM_RANK(name, session_name) SHARED_PART(v1::FromRank, name, v1::WorkerMessage, session_name)

constexpr std::tuple kToRank = {
    TO_RANK(profile, profile_request),       TO_RANK(stop, stop_epoch),     TO_RANK(kv_value, kv_value),
    TO_RANK(publish_answer, publish_answer), TO_RANK(trace, trace_request),
};

constexpr std::tuple kFromRank = {
    FROM_RANK(event, rank_event),
    FROM_RANK(step, step_report),
    FROM_RANK(kv_set, kv_set),
    FROM_RANK(kv_get, kv_get),
    FROM_RANK(publish_request, publish_request),
    FROM_RANK(checkpoint_published, checkpoint_published),
    FROM_RANK(checkpoint_failed, checkpoint_failed),
    FROM_RANK(profile_result, profile_result),
    FROM_RANK(log, log),
    FROM_RANK(trace_result, trace_result),
};

// What only the session has stays behind.
template <typename Parts, typename Socket, typename Session>
void ToSocket(const Parts& parts, Session session, Socket* socket) {
  const auto take = [&](const auto& part) {
    if ((session.*part.in_session)()) (socket->*part.of_socket)()->Swap((session.*part.of_session)());
  };
  std::apply([&](const auto&... part) { (take(part), ...); }, parts);
}
template <typename Parts, typename Socket, typename Session>
void ToSession(const Parts& parts, Socket socket, Session* session) {
  const auto take = [&](const auto& part) {
    if ((socket.*part.in_socket)()) (session->*part.of_session)()->Swap((socket.*part.of_socket)());
  };
  std::apply([&](const auto&... part) { (take(part), ...); }, parts);
}

}  // namespace

v1::ToRank ToProto(const RankCommand& command) {
  v1::ToRank out;
  if (const auto* start = std::get_if<StartCommand>(&command)) {
    *out.mutable_load() = ToProto(start->ranks.at(0));
  } else {
    ToSocket(kToRank, std::visit([](const auto& each) { return ToProto(CoordinatorCommand(each)); }, command), &out);
  }
  return out;
}

absl::StatusOr<RankCommand> FromProto(const v1::ToRank& message) {
  if (message.has_profile() && message.profile().ranks_size() != 1) {
    return absl::InvalidArgumentError("a rank's profile request must hold exactly its own assignment");
  }
  v1::CoordinatorMessage in;
  if (message.has_load()) *in.mutable_start_epoch()->add_ranks() = message.load();
  ToSession(kToRank, message, &in);
  MOTLEY_ASSIGN_OR_RETURN(const std::optional<CoordinatorCommand> command, FromProto(in));
  absl::StatusOr<RankCommand> out = absl::InvalidArgumentError("a message for the rank of a kind that it does not know");
  const auto take = [&](const auto& each) {
    if constexpr (std::is_constructible_v<RankCommand, decltype(each)>) out = RankCommand(each);
  };
  if (command) std::visit(take, *command);
  return out;
}

WIRE_MESSAGE(v1::Progress, ProgressReport) {
  WIRE_FIELD(epoch, plain.epoch);
  WIRE_FIELD(step, plain.step);
  WIRE_FIELD(instruction, plain.instruction);
  WIRE_FIELD(doing, plain.doing);
}

v1::FromRank ToProto(const RankMessage& message) {
  v1::FromRank out;
  if (const auto* progress = std::get_if<ProgressReport>(&message)) {
    *out.mutable_progress() = ToProto(*progress);
  } else {
    ToSocket(kFromRank, ToProto(std::get<WorkerReport>(message)), &out);
  }
  return out;
}

std::optional<RankMessage> FromProto(const v1::FromRank& message) {
  if (message.has_progress()) return FromProto(message.progress());
  v1::WorkerMessage in;
  ToSession(kFromRank, message, &in);
  return FromProto(in);
}

}  // namespace motley::wire
