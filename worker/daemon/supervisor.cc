#include "worker/daemon/supervisor.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace motley::worker {
namespace {

constexpr absl::Duration kLoopGap = absl::Seconds(1);

// The same question is asked again of a new session until it is answered.
void Forget(std::vector<WorkerReport>& questions, const KvValueCommand& answer) {
  std::erase_if(questions, [&](const WorkerReport& report) {
    const auto* get = std::get_if<KvGetReport>(&report);
    return get != nullptr && get->key == answer.key;
  });
}
void Forget(std::vector<WorkerReport>& questions, const PublishAnswerCommand& answer) {
  std::erase_if(questions, [&](const WorkerReport& report) {
    const auto* publish = std::get_if<PublishReport>(&report);
    return publish != nullptr && publish->question == answer.question;
  });
}

}  // namespace

Supervisor::Supervisor(SupervisorConfig config, const Clock& clock, Outbox& outbox, WorkerMetrics& metrics)
    : config_(std::move(config)),
      clock_(clock),
      outbox_(outbox),
      metrics_(metrics),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      last_turn_(clock.Now()) {
  for (const OfferedDevice& device : config_.devices) programs_[device.rank_binary] = StampOf(device.rank_binary);
  thread_ = std::thread([this] { Loop(); });
}

Supervisor::~Supervisor() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  Post([] {});
  thread_.join();
}

void Supervisor::Post(Command command) {
  {
    absl::MutexLock lock(&mutex_);
    commands_.push_back(std::move(command));
  }
  const uint64_t one = 1;
  (void)!write(wake_.get(), &one, sizeof(one));
}

void Supervisor::Start(StartCommand command) {
  Post([this, command = std::move(command)] { StartOnLoop(command); });
}
void Supervisor::Profile(ProfileCommand command) {
  Post([this, command = std::move(command)]() mutable { ProfileOnLoop(std::move(command)); });
}
void Supervisor::Stop(StopCommand command) {
  Post([this, command = std::move(command)] { StopOnLoop(command); });
}

void Supervisor::Deliver(KvValueCommand value) {
  Post([this, value = std::move(value)] {
    Rank* rank = FindRank(value.job, value.epoch, value.rank);
    if (rank == nullptr) return;
    Forget(rank->questions, value);
    (void)rank->process->Send(value);
  });
}

void Supervisor::Deliver(PublishAnswerCommand answer) {
  Post([this, answer = std::move(answer)] {
    Rank* rank = FindRank(answer.job, answer.epoch, answer.rank);
    if (rank == nullptr) return;
    Forget(rank->questions, answer);
    (void)rank->process->Send(answer);
  });
}

void Supervisor::Deliver(TraceCommand trace) {
  Post([this, trace = std::move(trace)] {
    if (Rank* rank = FindRank(trace.job, trace.epoch, trace.rank); rank != nullptr) (void)rank->process->Send(trace);
  });
}

void Supervisor::OnConnected(const std::string& key_id) {
  Post([this, key_id] {
    bool other_store = false;
    {
      absl::MutexLock lock(&mutex_);
      other_store = seen_.key_id() != key_id;
      seen_.UseKey(key_id);
    }
    if (other_store) {
      last_words_.clear();
      for (const auto& run : runs_) KillRun(*run, "the coordinator has another store, which does not know this generation");
    }
    for (const auto& run : runs_) {
      for (const Rank& rank : run->ranks) {
        if (rank.phase != Rank::Phase::kRunning) continue;
        for (const WorkerReport& question : rank.questions) outbox_.Push(question);
        if (rank.newest_step) outbox_.Push(*rank.newest_step);
      }
    }
  });
}

absl::Duration Supervisor::last_turn() const {
  absl::MutexLock lock(&mutex_);
  return last_turn_;
}

std::vector<SeenEpoch> Supervisor::newest_epochs() const {
  absl::MutexLock lock(&mutex_);
  return seen_.All();
}

bool Supervisor::training() const {
  absl::MutexLock lock(&mutex_);
  return training_ || !commands_.empty();
}

Epoch Supervisor::Newest(const JobId& job) const {
  absl::MutexLock lock(&mutex_);
  return seen_.Newest(job);
}

void Supervisor::See(const JobId& job, Epoch epoch, const std::string& token) {
  absl::MutexLock lock(&mutex_);
  seen_.See(job, epoch, token);
}

void Supervisor::Loop() {
  while (true) {
    Poll();
    const absl::Duration now = clock_.Now();
    bool slept = false;
    {
      absl::MutexLock lock(&mutex_);
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
        if (slept) rank.watch.last_word = rank.watch.last_advance = rank.watch.last_sign = now;
        if (rank.phase == Rank::Phase::kRunning) CheckCard(*run, rank);
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
    absl::MutexLock lock(&mutex_);
    training_ |= !commands_.empty();  // until the end of this turn nobody sees a start that is under way as nothing
    commands.swap(commands_);
  }
  for (const Command& command : commands) command();
}

Rank* Supervisor::FindRank(const JobId& job, Epoch epoch, int number) {
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
  bool training = false;
  std::erase_if(runs_, [&](const std::unique_ptr<RankRun>& run) {
    const auto alive =
        std::count_if(run->ranks.begin(), run->ranks.end(), [](const Rank& r) { return r.phase != Rank::Phase::kGone; });
    running += static_cast<int>(alive);
    training |= alive > 0 && run->profile == nullptr;
    return alive == 0;
  });
  metrics_.SetRanksRunning(running);
  std::string doing = DoingNow();
  absl::MutexLock lock(&mutex_);
  training_ = training;
  doing_ = std::move(doing);
}

std::string Supervisor::doing() const {
  absl::MutexLock lock(&mutex_);
  return doing_;
}

}  // namespace motley::worker
