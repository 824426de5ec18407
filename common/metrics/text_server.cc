#include "common/metrics/text_server.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace motley {
namespace {

constexpr size_t kMostRequestBytes = 8 << 10;
constexpr int kRetryMs = 100;
// Taken in a row, so that those who are there are served, too.
constexpr int kMostInARow = 64;

void Close(int* fd) { close(std::exchange(*fd, -1)); }

}  // namespace

absl::string_view TextRequest::Header(absl::string_view name) const {
  for (absl::string_view line : absl::StrSplit(headers, '\n')) {
    const size_t colon = line.find(':');
    if (colon == absl::string_view::npos || !absl::EqualsIgnoreCase(line.substr(0, colon), name)) continue;
    return absl::StripAsciiWhitespace(line.substr(colon + 1));
  }
  return "";
}

TextAnswer TextAnswerOf(std::string body, absl::string_view status) {
  TextAnswer answer;
  answer.status = status;
  answer.body = std::make_shared<const std::string>(std::move(body));
  return answer;
}

TextAnswer NoSuchPath(absl::string_view see) { return TextAnswerOf(absl::StrCat("see ", see, "\n"), "404 Not Found"); }

std::string HeadOf(const TextAnswer& answer) {
  return absl::StrCat("HTTP/1.1 ", answer.status, "\r\nContent-Type: ", answer.type, "\r\n", answer.headers,
                      "Content-Length: ", answer.body->size(), "\r\nConnection: close\r\n\r\n");
}

std::optional<TextAnswer> AnswerTo(absl::string_view request, const TextRoute& route) {
  if (request.size() > kMostRequestBytes) return TextAnswerOf("", "431 Request Header Fields Too Large");
  if (request.find("\r\n\r\n") == absl::string_view::npos && request.find("\n\n") == absl::string_view::npos) return std::nullopt;
  const size_t end = request.find_first_of("\r\n");
  const absl::string_view line = request.substr(0, end);
  const size_t space = line.find(' ');
  if (line.substr(0, space) != "GET") {
    TextAnswer refused = TextAnswerOf("", "405 Method Not Allowed");
    refused.headers = "Allow: GET\r\n";
    return refused;
  }
  absl::string_view target = space == absl::string_view::npos ? "" : line.substr(space + 1);
  target = target.substr(0, target.find(' '));
  const size_t question = target.find('?');
  const absl::string_view query = question == absl::string_view::npos ? "" : target.substr(question + 1);
  return route({target.substr(0, question), query, request.substr(end)});
}

TextServer::TextServer(TcpListener listener, TextRoute route, TextServerOptions options)
    : listener_(std::move(listener)), route_(std::move(route)), options_(options) {
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
      polled.push_back({connection.fd, static_cast<short>(connection.answer ? POLLOUT : POLLIN), 0});  // NOLINT: poll's
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
    std::erase_if(connections_, [](const Connection& connection) { return connection.fd < 0; });  // pages that made room
    if (connections_.size() >= options_.most_connections) MakeRoom();
    connections_.push_back({fd, clock_.Now(), absl::ZeroDuration(), "", "", std::nullopt, 0});
    // Whose request has come already is answered before a flood of others can drive it out.
    Serve(connections_.back());
    if (connections_.back().fd < 0) connections_.pop_back();
  }
}

void TextServer::MakeRoom() {
  auto victim = std::find_if(connections_.begin(), connections_.end(), [](const Connection& c) { return !c.answer; });
  if (victim == connections_.end()) victim = connections_.begin();
  Close(&victim->fd);
  connections_.erase(victim);
}

// Answers of pages may be long, and their readers slow: the oldest one ends where they would fill the other half, too.
void TextServer::MakeRoomForPage() {
  const auto of_page = [](const Connection& c) { return c.fd >= 0 && c.answer && c.answer->of_page; };
  const auto count = static_cast<size_t>(std::count_if(connections_.begin(), connections_.end(), of_page));
  if (count >= std::max<size_t>(1, options_.most_connections / 2)) {
    Close(&std::find_if(connections_.begin(), connections_.end(), of_page)->fd);
  }
}

void TextServer::Serve(Connection& connection) {
  if (!connection.answer) Read(connection);
  if (connection.fd >= 0 && connection.answer) Write(connection);
}

void TextServer::Read(Connection& connection) {
  char bytes[4096];
  const ssize_t count = recv(connection.fd, bytes, sizeof(bytes), 0);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count <= 0) return Close(&connection.fd);
  connection.request.append(bytes, static_cast<size_t>(count));
  std::optional<TextAnswer> answer = AnswerTo(connection.request, route_);
  if (!answer) return;
  if (answer->of_page) MakeRoomForPage();
  connection.head = HeadOf(*answer);
  connection.answer = *std::move(answer);
  connection.since = connection.answered = clock_.Now();
}

void TextServer::Write(Connection& connection) {
  const std::string& head = connection.head;
  const std::string& body = *connection.answer->body;
  while (connection.sent < head.size() + body.size()) {
    const bool in_head = connection.sent < head.size();
    const absl::string_view left =
        in_head ? absl::string_view(head).substr(connection.sent) : absl::string_view(body).substr(connection.sent - head.size());
    const int more = in_head && !body.empty() ? MSG_MORE : 0;
    const ssize_t count = send(connection.fd, left.data(), left.size(), MSG_NOSIGNAL | more);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (count <= 0) return Close(&connection.fd);
    connection.sent += static_cast<size_t>(count);
    if (connection.answer->of_page && clock_.Now() - connection.answered < options_.page_patience)
      connection.since = clock_.Now();
  }
  Close(&connection.fd);
}

}  // namespace motley
