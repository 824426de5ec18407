#include "worker/daemon/supervisor.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/logging.h"

namespace motley::worker {
namespace {

constexpr absl::Duration kLoopGap = absl::Seconds(1);

void Forget(std::vector<v1::WorkerMessage>& questions, const v1::KvValue& answer) {
  std::erase_if(questions, [&](const v1::WorkerMessage& m) { return m.has_kv_get() && m.kv_get().key() == answer.key(); });
}
void Forget(std::vector<v1::WorkerMessage>& questions, const v1::PublishAnswer& answer) {
  std::erase_if(questions, [&](const v1::WorkerMessage& m) { return m.has_publish_request() && m.publish_request().question() == answer.question(); });
}

}  // namespace

Supervisor::Supervisor(SupervisorConfig config, const Clock& clock, Outbox& outbox, WorkerMetrics& metrics)
    : config_(std::move(config)), clock_(clock), outbox_(outbox), metrics_(metrics), wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  last_turn_ = clock_.Now();
  thread_ = std::thread([this] { Loop(); });
}

Supervisor::~Supervisor() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
  }
  Post([] {});
  thread_.join();
}

void Supervisor::Post(Command command) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    commands_.push_back(std::move(command));
  }
  const uint64_t one = 1;
  (void)!write(wake_.get(), &one, sizeof(one));
}

void Supervisor::Start(v1::StartEpoch start) {
  Post([this, start = std::move(start)] { StartOnLoop(start); });
}
void Supervisor::Profile(v1::ProfileRequest request) {
  Post([this, request = std::move(request)] { ProfileOnLoop(request); });
}
void Supervisor::Stop(v1::StopEpoch stop) {
  Post([this, stop = std::move(stop)] { StopOnLoop(stop); });
}

void Supervisor::Deliver(v1::KvValue value) {
  Post([this, value = std::move(value)] {
    Rank* rank = FindRank(value.job_id(), value.epoch(), value.rank());
    if (rank == nullptr) return;
    Forget(rank->questions, value);
    v1::ToRank message;
    *message.mutable_kv_value() = value;
    (void)rank->process->Send(message);
  });
}

void Supervisor::Deliver(v1::PublishAnswer answer) {
  Post([this, answer = std::move(answer)] {
    Rank* rank = FindRank(answer.job_id(), answer.epoch(), answer.rank());
    if (rank == nullptr) return;
    Forget(rank->questions, answer);
    v1::ToRank message;
    *message.mutable_publish_answer() = answer;
    (void)rank->process->Send(message);
  });
}

void Supervisor::OnConnected() {
  Post([this] {
    for (const auto& run : runs_) {
      for (const Rank& rank : run->ranks) {
        if (rank.phase != Rank::Phase::kRunning) continue;
        for (const v1::WorkerMessage& question : rank.questions) outbox_.Push(question);
      }
    }
  });
}

absl::Duration Supervisor::last_turn() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return last_turn_;
}

void Supervisor::Loop() {
  while (true) {
    Poll();
    const absl::Duration now = clock_.Now();
    bool slept = false;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (stopping_) break;
      slept = now - last_turn_ > kLoopGap;
      last_turn_ = now;
    }
    RunCommands();
    for (const auto& run : runs_) {
      for (Rank& rank : run->ranks) {
        if (rank.phase == Rank::Phase::kGone) continue;
        ServeRank(*run, rank);
        // This daemon was stopped or starved itself: the silence is not the ranks'.
        if (slept) rank.watch.last_word = rank.watch.last_advance = now;
        if (rank.phase == Rank::Phase::kRunning) CheckHung(*run, rank);
        // One that said its last word keeps its phase; one that still runs was told to save and lost the checkpoint.
        if (now > rank.kill_at) KillRank(rank, Rank::Phase::kHung, "it did not end in time after it was told to save");
      }
      if (run->profile != nullptr) DriveProfile(*run);
    }
    RemoveEndedRuns();
  }
  runs_.clear();  // kills and reaps
  metrics_.SetRanksRunning(0);
}

void Supervisor::Poll() {
  std::vector<pollfd> fds = {{wake_.get(), POLLIN, 0}};
  for (const auto& run : runs_) {
    for (const Rank& rank : run->ranks) {
      if (rank.phase == Rank::Phase::kGone) continue;
      if (rank.process->socket_fd() >= 0) {
        fds.push_back({rank.process->socket_fd(), static_cast<short>(POLLIN | (rank.process->wants_write() ? POLLOUT : 0)), 0});
      }
      if (rank.process->output_fd() >= 0) fds.push_back({rank.process->output_fd(), POLLIN, 0});
    }
  }
  poll(fds.data(), fds.size(), static_cast<int>(absl::ToInt64Milliseconds(config_.tick)));
  uint64_t count = 0;
  (void)!read(wake_.get(), &count, sizeof(count));
}

void Supervisor::RunCommands() {
  std::deque<Command> commands;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    commands.swap(commands_);
  }
  for (const Command& command : commands) command();
}

Rank* Supervisor::FindRank(const std::string& job, int64_t epoch, int number) {
  for (const auto& run : runs_) {
    if (run->job != job || run->epoch != epoch) continue;
    for (Rank& rank : run->ranks) {
      if (rank.number == number && rank.phase == Rank::Phase::kRunning) return &rank;
    }
  }
  return nullptr;
}

void Supervisor::RemoveEndedRuns() {
  int running = 0;
  std::erase_if(runs_, [&](const std::unique_ptr<RankRun>& run) {
    const auto alive = std::count_if(run->ranks.begin(), run->ranks.end(), [](const Rank& r) { return r.phase != Rank::Phase::kGone; });
    running += static_cast<int>(alive);
    return alive == 0;
  });
  metrics_.SetRanksRunning(running);
}

}  // namespace motley::worker
