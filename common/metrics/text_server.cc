#include "common/metrics/text_server.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace motley {
namespace {

constexpr size_t kMostRequestBytes = 8 << 10;
constexpr int kRetryMs = 100;
// Taken in a row, so that those who are there are served, too.
constexpr int kMostInARow = 64;

std::string Answer(absl::string_view status, absl::string_view body, absl::string_view header = "") {
  return absl::StrCat("HTTP/1.1 ", status, "\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n", header,
                      "Content-Length: ", body.size(), "\r\nConnection: close\r\n\r\n", body);
}

void Close(int* fd) { close(std::exchange(*fd, -1)); }

}  // namespace

std::optional<std::string> AnswerTo(absl::string_view request, absl::string_view path, const std::function<std::string()>& text) {
  if (request.size() > kMostRequestBytes) return Answer("431 Request Header Fields Too Large", "");
  if (request.find("\r\n\r\n") == absl::string_view::npos && request.find("\n\n") == absl::string_view::npos) return std::nullopt;
  const absl::string_view line = request.substr(0, request.find_first_of("\r\n"));
  const size_t space = line.find(' ');
  if (line.substr(0, space) != "GET") return Answer("405 Method Not Allowed", "", "Allow: GET\r\n");
  const absl::string_view target = space == absl::string_view::npos ? "" : line.substr(space + 1);
  if (target.substr(0, target.find_first_of(" ?")) != path) return Answer("404 Not Found", absl::StrCat("see ", path, "\n"));
  return Answer("200 OK", text());
}

TextServer::TextServer(TcpListener listener, std::string path, std::function<std::string()> text, TextServerOptions options)
    : listener_(std::move(listener)), path_(std::move(path)), text_(std::move(text)), options_(options) {
  if (pipe2(wake_, O_CLOEXEC) != 0) wake_[0] = wake_[1] = -1;  // then it looks from time to time whether it should end
  thread_ = std::thread([this] { Run(); });
}

TextServer::~TextServer() {
  stopping_ = true;
  if (wake_[1] >= 0) close(wake_[1]);
  thread_.join();
  if (wake_[0] >= 0) close(wake_[0]);
  for (Connection& connection : connections_) Close(&connection.fd);
}

void TextServer::Run() {
  std::vector<pollfd> polled;
  while (true) {
    polled = {{wake_[0], POLLIN, 0}, {exhausted_ ? -1 : listener_.fd(), POLLIN, 0}};
    for (const Connection& connection : connections_) {
      polled.push_back({connection.fd, static_cast<short>(connection.answer.empty() ? POLLIN : POLLOUT), 0});  // NOLINT: poll's
    }
    poll(polled.data(), polled.size(), WaitMs());
    if (stopping_) return;
    exhausted_ = false;
    for (size_t i = 0; i < connections_.size(); ++i) {
      if (polled[i + 2].revents != 0) Serve(connections_[i]);
    }
    Forget();
    Accept();
  }
}

// Until the first connection's time is over.
int TextServer::WaitMs() const {
  if (exhausted_ || wake_[0] < 0) return kRetryMs;
  absl::Duration wait = absl::Hours(1);
  for (const Connection& connection : connections_) {
    wait = std::min(wait, connection.since + options_.patience - clock_.Now());
  }
  return static_cast<int>(std::max<int64_t>(0, absl::ToInt64Milliseconds(wait) + 1));
}

void TextServer::Forget() {
  const absl::Duration now = clock_.Now();
  for (Connection& connection : connections_) {
    if (connection.fd >= 0 && now - connection.since > options_.patience) Close(&connection.fd);
  }
  std::erase_if(connections_, [](const Connection& connection) { return connection.fd < 0; });
}

void TextServer::Accept() {
  for (int i = 0; i < kMostInARow; ++i) {
    const int fd = accept4(listener_.fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) {
      exhausted_ = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
      return;
    }
    if (connections_.size() >= options_.most_connections) MakeRoom();
    connections_.push_back({fd, clock_.Now(), "", "", 0});
    // Whose request has come already is answered before a flood of others can drive it out.
    Serve(connections_.back());
    if (connections_.back().fd < 0) connections_.pop_back();
  }
}

void TextServer::MakeRoom() {
  auto victim = std::find_if(connections_.begin(), connections_.end(), [](const Connection& c) { return c.answer.empty(); });
  if (victim == connections_.end()) victim = connections_.begin();
  Close(&victim->fd);
  connections_.erase(victim);
}

void TextServer::Serve(Connection& connection) {
  if (connection.answer.empty()) Read(connection);
  if (connection.fd >= 0 && !connection.answer.empty()) Write(connection);
}

void TextServer::Read(Connection& connection) {
  char bytes[4096];
  const ssize_t count = recv(connection.fd, bytes, sizeof(bytes), 0);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count <= 0) return Close(&connection.fd);
  connection.request.append(bytes, static_cast<size_t>(count));
  if (std::optional<std::string> answer = AnswerTo(connection.request, path_, text_)) {
    connection.answer = *std::move(answer);
    connection.since = clock_.Now();
  }
}

void TextServer::Write(Connection& connection) {
  while (connection.sent < connection.answer.size()) {
    const ssize_t count =
        send(connection.fd, connection.answer.data() + connection.sent, connection.answer.size() - connection.sent, MSG_NOSIGNAL);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (count <= 0) return Close(&connection.fd);
    connection.sent += static_cast<size_t>(count);
  }
  Close(&connection.fd);
}

}  // namespace motley
