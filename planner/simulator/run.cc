// Problem: a step graph's tasks in virtual time.
// Method: events in a heap, ordered by (picosecond, task). At every moment first all that ends, then all that starts, then the
// links are shared anew; what is computed at one moment does not depend on the order within it.
// Complexity: O(tasks x log lanes) without loads; each transfer adds the sharing of the flows connected with it.
#include "planner/simulator/run.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <queue>
#include <utility>

#include "common/base/status_macros.h"
#include "planner/simulator/fair_share.h"

namespace motley::planner {
namespace {

constexpr Picoseconds kForever = std::numeric_limits<Picoseconds>::max();
Picoseconds AddTime(Picoseconds a, Picoseconds b) { return a > kForever - b ? kForever : a + b; }

bool HasBytes(const Task& task) {
  return std::any_of(task.loads.begin(), task.loads.end(), [](const LinkLoad& load) { return load.bytes > 0; });
}

class Machine {
 public:
  Machine(const StepGraph& graph, const Stragglers& stragglers)
      : graph_(graph),
        slow_(ChooseStragglers(graph.actors.size(), stragglers)),
        slowdown_(stragglers.slowdown),
        lane_tasks_(graph.actors.size() * kNumLanes),
        followers_(graph.tasks.size()),
        lane_head_(graph.actors.size() * kNumLanes, 0),
        waits_(graph.tasks.size()),
        state_(graph.tasks.size(), State::kWaiting),
        flow_end_(graph.tasks.size(), 0),
        links_(graph.link_bytes_per_second) {
    timeline_.spans.resize(graph.tasks.size());
    timeline_.busy.assign(lane_head_.size(), 0);
    Connect();
  }

  absl::StatusOr<Timeline> Run() {
    for (;;) {
      StartReady();
      for (const FairShare::Change& change : links_.Share(now_)) {
        flow_end_[change.name] = change.end;
        events_.push({change.end, change.name});
      }
      if (events_.empty()) break;
      now_ = events_.top().when;
      while (!events_.empty() && events_.top().when == now_) {
        const int32_t task = events_.top().task;
        events_.pop();
        Handle(task);
      }
    }
    if (num_ended_ < graph_.tasks.size()) {
      std::vector<bool> ended(state_.size());
      for (size_t t = 0; t < state_.size(); ++t) ended[t] = state_[t] == State::kEnded;
      return DeadlockError(graph_, lane_tasks_, lane_head_, ended);
    }
    return std::move(timeline_);
  }

 private:
  // kLatency: a transfer before its bytes move. kFlow: in flight; its event may be out of date.
  enum class State : uint8_t { kWaiting, kComputing, kLatency, kFlow, kEnded };
  struct Event {
    Picoseconds when;
    int32_t task;
    bool operator>(const Event& other) const { return when != other.when ? when > other.when : task > other.task; }
  };

  const Task& At(int32_t task) const { return graph_.tasks[task]; }
  TaskSpan& SpanOf(int32_t task) { return timeline_.spans[task]; }
  State& StateOf(int32_t task) { return state_[task]; }

  // A task waits for each task of `after` and for its turn on each lane.
  void Connect() {
    for (const Task& task : graph_.tasks) {
      for (const int32_t lane : task.lanes) lane_tasks_.Count(static_cast<size_t>(lane));
      for (const int32_t a : task.after) followers_.Count(static_cast<size_t>(a));
    }
    lane_tasks_.Fill();
    followers_.Fill();
    for (size_t t = 0; t < graph_.tasks.size(); ++t) {
      const Task& task = graph_.tasks[t];
      for (const int32_t lane : task.lanes) lane_tasks_.Add(static_cast<size_t>(lane), static_cast<int32_t>(t));
      for (const int32_t a : task.after) followers_.Add(static_cast<size_t>(a), static_cast<int32_t>(t));
      waits_[t] = static_cast<int32_t>(task.lanes.size() + task.after.size());
      if (waits_[t] == 0) ready_.push_back(static_cast<int32_t>(t));
    }
    for (size_t lane = 0; lane < lane_head_.size(); ++lane) TakeTurn(lane);
  }

  void Release(int32_t task) {
    if (--waits_[task] == 0) ready_.push_back(task);
  }
  void TakeTurn(size_t lane) {
    const auto tasks = lane_tasks_[lane];
    const auto head = static_cast<size_t>(lane_head_[lane]);
    if (head < tasks.size()) Release(tasks[head]);
  }

  Picoseconds DurationOf(const Task& task) const {
    if (!IsCompute(task.kind)) return task.duration;
    const bool slow = std::any_of(task.lanes.begin(), task.lanes.end(), [this](int32_t lane) { return slow_[lane / kNumLanes]; });
    return slow ? ToPicoseconds(ToSeconds(task.duration) * slowdown_) : task.duration;
  }

  // Tasks that take no time end at once and may make others ready.
  void StartReady() {
    while (!ready_.empty()) {
      const int32_t task = ready_.back();
      ready_.pop_back();
      const Picoseconds duration = DurationOf(At(task));
      const bool flow = HasBytes(At(task));
      SpanOf(task).begin = now_;
      if (duration > 0) {
        StateOf(task) = flow ? State::kLatency : State::kComputing;
        events_.push({AddTime(now_, duration), task});
      } else if (flow) {
        StartFlow(task);
      } else {
        End(task);
      }
    }
  }

  void StartFlow(int32_t task) {
    StateOf(task) = State::kFlow;
    if (slots_.empty()) slots_.resize(graph_.tasks.size());
    slots_[task] = links_.Start(task, At(task).loads, now_);
  }

  void Handle(int32_t task) {
    switch (StateOf(task)) {
      case State::kLatency:
        return StartFlow(task);
      case State::kComputing:
        return End(task);
      case State::kFlow:
        if (flow_end_[task] != now_) return;  // its speed has changed since
        links_.Finish(slots_[task]);
        return End(task);
      case State::kWaiting:
      case State::kEnded:
        return;  // out of date as well
    }
  }

  void End(int32_t task) {
    StateOf(task) = State::kEnded;
    ++num_ended_;
    SpanOf(task).end = timeline_.end = now_;  // not the clock's last moment: an event out of date may come later
    const Picoseconds lasted = now_ - SpanOf(task).begin;
    for (const int32_t lane : At(task).lanes) {
      timeline_.busy[lane] += lasted;
      ++lane_head_[lane];
      TakeTurn(static_cast<size_t>(lane));
    }
    for (const int32_t follower : followers_[task]) Release(follower);
  }

  const StepGraph& graph_;
  const std::vector<bool> slow_;
  const double slowdown_;
  IndexLists lane_tasks_, followers_;
  std::vector<int32_t> lane_head_;
  std::vector<int32_t> waits_;  // by task: what has not happened yet
  std::vector<State> state_;
  std::vector<Picoseconds> flow_end_;
  std::vector<int32_t> slots_;  // of transfers in flight
  FairShare links_;
  std::vector<int32_t> ready_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  Picoseconds now_ = 0;
  size_t num_ended_ = 0;
  Timeline timeline_;
};

}  // namespace

absl::StatusOr<Timeline> Run(const StepGraph& graph, const Stragglers& stragglers) {
  MOTLEY_RETURN_IF_ERROR(CheckGraph(graph, stragglers));
  return Machine(graph, stragglers).Run();
}

}  // namespace motley::planner
