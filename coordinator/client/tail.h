// The end of a stream of lines: the last so many, those since a time, and what follows.
#pragma once

#include <CLI/CLI.hpp>
#include <deque>
#include <functional>
#include <string>

#include "coordinator/client/command.h"
#include "coordinator/client/json.h"

namespace motley::client {

struct TailFlags {
  bool follow = false;
  int64_t lines = -1;    // the newest so many of what is there; -1 = all
  int64_t since_ms = 0;  // Unix time
};

void AddTailFlags(CLI::App& app, TailFlags* flags);

// "10m" ago, "2026-03-01", "2026-03-01 12:34:56" of the local time zone, or with one as in RFC 3339. INVALID_ARGUMENT says so.
absl::StatusOr<absl::Time> ParseSince(const std::string& text, absl::Time now, absl::TimeZone zone);

// `open(stub, call, cursor, follow)` begins a stream of messages that have sequence() and unix_ms(). Text by `print`; JSON one
// object a line with -f, else one document whose list is `name`. Messages that are not `wanted` are passed over.
template <typename Message>
using OpenTail =
    std::function<std::unique_ptr<grpc::ClientReader<Message>>(Connection::Stub&, grpc::ClientContext*, int64_t, bool)>;
template <typename Message>
Exit Tail(
    Context& context, const TailFlags& flags, const char* name, const OpenTail<Message>& open,
    const std::function<void(const Message&)>& print,
    const std::function<bool(const Message&)>& wanted = [](const Message&) { return true; }) {
  auto connection = context.Connect();
  if (!connection.ok()) return FromServer(connection.status());
  const auto show = [&](const Message& message) { context.json ? PrintLine(context.out, ToJson(message)) : print(message); };
  const auto follow = [&](bool on, int64_t cursor, const std::function<void(const Message&)>& use) {
    Connection::Stream<Message> stream;
    stream.open = [&open, on](Connection::Stub& stub, grpc::ClientContext* call, int64_t from) {
      return open(stub, call, from, on);
    };
    stream.cursor_of = [](const Message& message) { return message.sequence(); };
    stream.use = [&](const Message& message) {
      if (message.unix_ms() >= flags.since_ms && wanted(message)) use(message);
      return true;
    };
    stream.say = [&](const std::string& text) { context.Say(text); };
    stream.cursor = cursor;
    return connection->Follow(std::move(stream));
  };
  // What is there first: only its end tells which lines are the last.
  std::deque<Message> kept;
  int64_t cursor = 0;
  const absl::Status there = follow(false, 0, [&](const Message& message) {
    cursor = message.sequence();
    kept.push_back(message);
    if (flags.lines >= 0 && kept.size() > static_cast<size_t>(flags.lines)) kept.pop_front();
  });
  if (!there.ok()) return FromServer(there);
  if (context.json && !flags.follow) {
    Json list = Json::array();
    for (const Message& message : kept) list.push_back(ToJson(message));
    PrintDocument(context.out, Json{{name, list}});
    return {};
  }
  for (const Message& message : kept) show(message);
  return flags.follow ? FromServer(follow(true, cursor, show)) : Exit();
}

}  // namespace motley::client
