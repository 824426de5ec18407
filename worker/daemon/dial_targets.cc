#include "worker/daemon/dial_targets.h"

#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/synchronization/mutex.h"
#include "common/base/address.h"
#include "common/base/steady_condition.h"
#include "worker/daemon/burst.h"
#include "worker/daemon/numeric_address.h"

namespace motley::worker {
namespace {

constexpr size_t kMostOfAName = 8;  // of a name

// Empty: one of a single cable, which is no address without the card's name.
std::string NumericTarget(const addrinfo& info) {
  char host[NI_MAXHOST] = "", port[NI_MAXSERV] = "";
  if (getnameinfo(info.ai_addr, info.ai_addrlen, host, sizeof(host), port, sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV) != 0)
    return "";
  if (absl::StrContains(host, "%")) return "";
  return info.ai_family == AF_INET6 ? absl::StrCat("[", host, "]:", port) : absl::StrCat(host, ":", port);
}

DialTargets NotKnown(const std::string& host, const std::string& why) {
  return {{},
          absl::StrCat("the name ", host, " is not known here (", why, "): is it written as it should be? Then add it to ",
                       "/etc/hosts or the name service, or give the number")};
}

DialTargets LookUpName(const HostPort& there) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  AddrInfo found;
  const int error = getaddrinfo(there.host.c_str(), std::to_string(there.port).c_str(), &hints, &found.list);
  if (error != 0) return NotKnown(there.host, gai_strerror(error));
  DialTargets known;
  for (const addrinfo* each = found.list; each != nullptr && known.targets.size() < kMostOfAName; each = each->ai_next) {
    const std::string target = NumericTarget(*each);
    const bool is_new = std::find(known.targets.begin(), known.targets.end(), target) == known.targets.end();
    if (!target.empty() && is_new) known.targets.push_back(target);
  }
  return known.targets.empty() ? NotKnown(there.host, "it has no address") : known;
}

// Outlives who asks.
struct Question {
  absl::Mutex mutex;
  SteadyCondition answered;
  std::optional<DialTargets> answer ABSL_GUARDED_BY(mutex);
};

std::shared_ptr<Question> AskNameService(const HostPort& there) {
  auto question = std::make_shared<Question>();
  std::thread([question, there] {
    DialTargets answer = LookUpName(there);
    absl::MutexLock lock(&question->mutex);
    question->answer = std::move(answer);
    question->answered.NotifyAll();
  }).detach();
  return question;
}

}  // namespace

std::vector<DialTargets> LookUp(const std::vector<std::string>& addresses, const Clock& clock, absl::Duration patience,
                                const absl::Notification& cancelled) {
  std::vector<DialTargets> all(addresses.size());
  std::vector<std::shared_ptr<Question>> questions(addresses.size());
  std::vector<HostPort> parsed(addresses.size());
  for (size_t i = 0; i < addresses.size(); ++i) {
    const auto there = absl::StartsWith(addresses[i], "unix:") ? absl::StatusOr<HostPort>(HostPort())
                                                               : ParseHostPort("worker.coordinator", addresses[i], 1);
    AddrInfo unused;
    if (!there.ok()) {
      all[i].trouble = std::string(there.status().message());
    } else if (there->host.empty() || Resolve(there->host, there->port, unused).ok()) {
      all[i].targets.push_back(addresses[i]);
    } else {
      parsed[i] = *there;
      questions[i] = AskNameService(*there);
    }
  }
  const absl::Duration end = clock.Now() + patience;
  for (size_t i = 0; i < addresses.size(); ++i) {
    if (questions[i] == nullptr) continue;
    Question& question = *questions[i];
    absl::MutexLock lock(&question.mutex);
    const auto answered = [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return question.answer.has_value(); };
    while (!question.answered.WaitFor(question.mutex, kSlice, answered) && clock.Now() < end && !cancelled.HasBeenNotified()) {
    }
    all[i] = question.answer ? *question.answer
                             : NotKnown(parsed[i].host, absl::StrFormat("the name service has said nothing for %.0f s",
                                                                        absl::ToDoubleSeconds(patience)));
  }
  return all;
}

}  // namespace motley::worker
