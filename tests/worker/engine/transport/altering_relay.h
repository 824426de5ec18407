// Somebody on the way between two ranks: hands on what they send each other, and alters some of it.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <compare>
#include <cstring>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "tests/worker/engine/fake_host.h"
#include "tests/worker/engine/transport/strangers.h"
#include "worker/engine/transport/meeting_words.h"

namespace motley::engine {

// What one end sends over one connection, after its words of the meeting.
struct StreamId {
  Channel channel = 0;
  bool callers = false;
  StreamId opposite() const { return {channel, !callers}; }
  friend auto operator<=>(const StreamId&, const StreamId&) = default;
};

// Of bytes [begin, end) of one stream, once all of them have come.
struct Alteration {
  StreamId stream{};
  size_t begin = 0, end = 0;
  std::function<std::string(const std::string&)> change{};  // what goes on instead; null: as they are
  bool cut = false;                                         // nothing goes on afterwards, either way
  bool sent_back = false;                                   // to their sender, too, in the place of what the other end sent
};

class AlteringRelay {
 public:
  explicit AlteringRelay(std::optional<Alteration> alteration) : alteration_(std::move(alteration)) {
    listener_ = FileDescriptor(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t bytes = sizeof(address);
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(bind(listener_.get(), any, bytes), 0);
    EXPECT_EQ(listen(listener_.get(), 64), 0);
    EXPECT_EQ(getsockname(listener_.get(), any, &bytes), 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { Serve(); });
  }
  ~AlteringRelay() { Stop(); }
  void Stop() {
    stopping_ = true;
    if (thread_.joinable()) thread_.join();
  }

  // The introduction of a rank that others are to call here.
  std::string InFrontOf(const std::string& introduction) {
    constexpr size_t kPort = 4;
    std::vector<std::string> parts = absl::StrSplit(introduction, ' ');
    int port = 0;
    EXPECT_TRUE(parts.size() > kPort && absl::SimpleAtoi(parts[kPort], &port)) << introduction;
    target_ = port;
    parts[kPort] = absl::StrCat(port_);
    return absl::StrJoin(parts, " ");
  }

  // What was sent, unaltered; after Stop.
  std::map<StreamId, std::string> sent() const {
    std::map<StreamId, std::string> streams;
    for (const Connection& connection : connections_) {
      for (const bool callers : {true, false}) {
        const End& end = callers ? connection.caller : connection.callee;
        if (end.said.size() > MeetingBytes(callers))
          streams[StreamOf(connection, callers)] = end.said.substr(MeetingBytes(callers));
      }
    }
    return streams;
  }

 private:
  struct End {
    FileDescriptor socket;
    std::string said{};  // all of it
    size_t passed = 0;   // of it
    bool over = false;
    void Say(const std::string& text) const { (void)!send(socket.get(), text.data(), text.size(), MSG_NOSIGNAL); }
  };
  struct Connection {
    End caller, callee;
  };

  static size_t MeetingBytes(bool callers) { return callers ? kHelloBytes + kConfirmBytes : kWelcomeBytes; }
  static StreamId StreamOf(const Connection& connection, bool callers) {
    uint32_t channel;  // the last number of the caller's first word
    std::memcpy(&channel, connection.caller.said.data() + kHelloBytes - kProofBytes - sizeof(channel), sizeof(channel));
    return {ntohl(channel), callers};
  }

  void Serve() {
    while (!stopping_) {
      std::vector<pollfd> events = {{listener_.get(), POLLIN, 0}};
      for (const Connection& connection : connections_) {
        for (const End* end : {&connection.caller, &connection.callee}) {
          events.push_back({end->over ? -1 : end->socket.get(), POLLIN, 0});
        }
      }
      poll(events.data(), events.size(), 5);
      for (int fd; (fd = accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC)) >= 0;) {
        Connection& made = connections_.emplace_back(Connection{{FileDescriptor(fd)}, {ConnectAsStranger(target_)}});
        const int at_once = 1;
        for (const End* end : {&made.caller, &made.callee}) {
          setsockopt(end->socket.get(), IPPROTO_TCP, TCP_NODELAY, &at_once, sizeof(at_once));
        }
      }
      HearAll();
    }
    HearAll();  // what they said as they left
  }

  void HearAll() {
    for (Connection& connection : connections_) {
      Hear(connection, connection.caller, connection.callee, true);
      Hear(connection, connection.callee, connection.caller, false);
    }
  }

  void Hear(const Connection& connection, End& from, End& to, bool callers) {
    char buffer[1 << 16];
    while (!from.over) {
      const ssize_t n = recv(from.socket.get(), buffer, sizeof(buffer), MSG_DONTWAIT);
      if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
      from.over = n <= 0;
      if (from.over) {
        shutdown(to.socket.get(), SHUT_WR);
      } else {
        from.said.append(buffer, n);
        if (connection.caller.said.size() >= kHelloBytes) Pass(connection, from, to, callers);
      }
    }
  }

  // All but the bytes that are altered, which are kept until all of them are there.
  void Pass(const Connection& connection, End& from, End& to, bool callers) {
    const auto pass_until = [&](size_t end) {
      if (from.passed < end) to.Say(from.said.substr(from.passed, end - from.passed)), from.passed = end;
    };
    const size_t there = from.said.size();
    const StreamId stream = StreamOf(connection, callers);
    const bool is_altered = alteration_ && stream == alteration_->stream;
    const bool is_replaced = alteration_ && alteration_->sent_back && stream == alteration_->stream.opposite();
    if (!is_altered && !is_replaced) return pass_until(there);
    const size_t begin = MeetingBytes(callers) + alteration_->begin, end = MeetingBytes(callers) + alteration_->end;
    pass_until(std::min(there, begin));
    if (there < end) return;
    if (from.passed < end) {
      const std::string kept = from.said.substr(begin, end - begin);
      from.passed = end;
      if (is_altered) to.Say(alteration_->change ? alteration_->change(kept) : kept);
      if (is_altered && alteration_->sent_back) from.Say(kept);
      if (is_altered && alteration_->cut) {
        for (const End* each : {&from, &to}) shutdown(each->socket.get(), SHUT_RDWR);
      }
    }
    pass_until(there);
  }

  const std::optional<Alteration> alteration_;
  FileDescriptor listener_;
  int port_ = 0;
  std::atomic<int> target_{0};
  std::atomic<bool> stopping_{false};
  std::list<Connection> connections_;  // of the thread
  std::thread thread_;
};

}  // namespace motley::engine
