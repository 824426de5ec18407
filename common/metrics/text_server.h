// Serves one text by HTTP: what a scraper of metrics asks for, and nothing else.
//
// One thread, which waits for nobody: each connection has its request, its answer and its time. There is always room for a new
// one, so clients that are slow, or say nothing, and come again keep nobody else from being answered.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/tcp_listener.h"

namespace motley {

struct TextServerOptions {
  // Open at once. For one more, the connection that has waited longest without a whole request is closed; where all are being
  // answered, the oldest.
  size_t most_connections = 32;
  absl::Duration patience = absl::Seconds(3);  // for the request, and again for taking the answer
};

// The whole HTTP answer to what a client has sent so far, or nothing while its request is not whole. `text` is called for a GET
// of `path`. A request beyond 8 KiB is refused.
std::optional<std::string> AnswerTo(absl::string_view request, absl::string_view path, const std::function<std::string()>& text);

class TextServer {
 public:
  // `text` is called on the server's thread, and must outlive it.
  TextServer(TcpListener listener, std::string path, std::function<std::string()> text, TextServerOptions options = {});
  ~TextServer();
  TextServer(const TextServer&) = delete;
  TextServer& operator=(const TextServer&) = delete;

  int port() const { return listener_.port(); }

 private:
  struct Connection {
    int fd = -1;           // -1: over
    absl::Duration since;  // when it was taken, or its answer began
    std::string request, answer;
    size_t sent = 0;
  };
  void Run();
  int WaitMs() const;
  void Accept();
  void MakeRoom();
  void Serve(Connection& connection);
  void Read(Connection& connection);
  void Write(Connection& connection);
  void Forget();  // what is over

  const TcpListener listener_;
  const std::string path_;
  const std::function<std::string()> text_;
  const TextServerOptions options_;
  const SystemClock clock_;
  std::vector<Connection> connections_;  // the oldest first
  bool exhausted_ = false;               // no descriptors: connections wait in the kernel's queue
  std::atomic<bool> stopping_ = false;
  int wake_[2] = {-1, -1};  // a pipe, whose end ends a wait
  std::thread thread_;
};

}  // namespace motley
