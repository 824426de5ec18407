// Serves texts by HTTP: what a scraper of metrics asks for, and a page that browsers show. GET alone, one request a connection.
//
// One thread, which waits for nobody: each connection has its request, its answer and its time. There is always room for a new
// one, so clients that are slow, or say nothing, and come again keep nobody else from being answered.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/tcp_listener.h"

namespace motley {

// As it came: nothing is decoded. Valid while it is being answered.
struct TextRequest {
  absl::string_view path, query;  // query: behind the ?
  absl::string_view headers;      // the lines behind the first
  // Of the header, without the spaces around it; empty: it is not there.
  absl::string_view Header(absl::string_view name) const;
};

struct TextAnswer {
  absl::string_view status = "200 OK";
  absl::string_view type = "text/plain; version=0.0.4; charset=utf-8";
  std::string headers;  // further ones, each with its \r\n
  std::shared_ptr<const std::string> body;
  bool of_page = false;  // those take half of the connections at most
};
TextAnswer TextAnswerOf(std::string body, absl::string_view status = "200 OK");
// What to say of a path that is not there; `see` is.
TextAnswer NoSuchPath(absl::string_view see);

using TextRoute = std::function<TextAnswer(const TextRequest&)>;

struct TextServerOptions {
  // Open at once. For one more, the connection that has waited longest without a whole request is closed; where all are being
  // answered, the oldest.
  size_t most_connections = 64;
  absl::Duration patience = absl::Seconds(3);  // for the request, and again for taking the answer
  // Of a page: between two parts that are taken, and for all of it.
  absl::Duration page_patience = absl::Seconds(60);
};

// The answer to what a client has sent so far, or nothing while its request is not whole. `route` is called for a GET. A request
// beyond 8 KiB is refused.
std::optional<TextAnswer> AnswerTo(absl::string_view request, const TextRoute& route);
// What goes before the body.
std::string HeadOf(const TextAnswer& answer);

class TextServer {
 public:
  // `route` is called on the server's thread; what it uses must outlive it.
  TextServer(TcpListener listener, TextRoute route, TextServerOptions options = {});
  ~TextServer();
  TextServer(const TextServer&) = delete;
  TextServer& operator=(const TextServer&) = delete;

  int port() const { return listener_.port(); }

 private:
  struct Connection {
    int fd = -1;              // -1: over
    absl::Duration since;     // when it was taken, or its answer began, of a page: went on
    absl::Duration answered;  // when its answer began
    std::string request, head;
    std::optional<TextAnswer> answer;
    size_t sent = 0;  // of head and body
  };
  void Run();
  int WaitMs() const;
  void Accept();
  void MakeRoom();
  void MakeRoomForPage();
  void Serve(Connection& connection);
  void Read(Connection& connection);
  void Write(Connection& connection);
  void Forget();  // what is over

  const TcpListener listener_;
  const TextRoute route_;
  const TextServerOptions options_;
  const SystemClock clock_;
  std::vector<Connection> connections_;  // the oldest first
  bool exhausted_ = false;               // no descriptors: connections wait in the kernel's queue
  std::atomic<bool> stopping_ = false;
  int wake_[2] = {-1, -1};  // a pipe, whose end ends a wait
  std::thread thread_;
};

}  // namespace motley
