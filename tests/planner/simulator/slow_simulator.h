// The rules of step_graph.h once more, the plain way: at every event all tasks are looked at and all speeds computed anew.
// O(events x (tasks + flows^2 x links)), in doubles. For comparison with Run.
#pragma once

#include <algorithm>
#include <limits>
#include <vector>

#include "planner/simulator/step_graph.h"

namespace motley::planner {

class SlowSimulator {
 public:
  explicit SlowSimulator(const StepGraph& graph) : graph_(graph), tasks_(graph.tasks.size()) {}

  struct Span {
    double begin = 0, end = 0;
  };
  std::vector<Span> Run() {
    double now = 0;
    for (;;) {
      while (StartAndEnd(now)) {
      }
      SetSpeeds();
      double next = std::numeric_limits<double>::infinity();
      for (const State& s : tasks_) {
        if (!s.started || s.ended) continue;
        next = std::min(next, s.latency > 0 ? now + s.latency : s.speed > 0 ? now + s.left / s.speed : next);
      }
      if (next == std::numeric_limits<double>::infinity()) break;
      for (State& s : tasks_) {
        if (!s.started || s.ended) continue;
        if (s.latency > 0) {
          s.latency -= next - now;
          if (s.latency < 1e-13) s.latency = 0;
        } else {
          s.left -= s.speed * (next - now);
          if (s.left < 1e-13 * s.speed) s.left = 0;
        }
      }
      now = next;
    }
    std::vector<Span> spans;
    for (const State& s : tasks_) spans.push_back(s.span);
    return spans;
  }

 private:
  struct State {
    bool started = false, ended = false;
    double latency = 0, left = 0, speed = 0;  // left: bytes of the heaviest load
    Span span;
  };

  static double Heaviest(const Task& task) {
    double heaviest = 0;
    for (const LinkLoad& load : task.loads) heaviest = std::max(heaviest, load.bytes);
    return heaviest;
  }

  bool MayStart(size_t t) const {
    for (const int32_t a : graph_.tasks[t].after) {
      if (!tasks_[a].ended) return false;
    }
    for (size_t before = 0; before < t; ++before) {
      if (tasks_[before].ended) continue;
      for (const int32_t lane : graph_.tasks[before].lanes) {
        const auto& lanes = graph_.tasks[t].lanes;
        if (std::find(lanes.begin(), lanes.end(), lane) != lanes.end()) return false;
      }
    }
    return true;
  }

  bool StartAndEnd(double now) {
    bool any = false;
    for (size_t t = 0; t < tasks_.size(); ++t) {
      State& s = tasks_[t];
      if (!s.started && MayStart(t)) {
        s = {true, false, ToSeconds(graph_.tasks[t].duration), Heaviest(graph_.tasks[t]), 0, {now, 0}};
        any = true;
      }
      if (s.started && !s.ended && s.latency == 0 && s.left == 0) {
        s.ended = any = true;
        s.span.end = now;
      }
    }
    return any;
  }

  // Progressive filling over all flows at once.
  void SetSpeeds() {
    std::vector<size_t> rising;
    for (size_t t = 0; t < tasks_.size(); ++t) {
      tasks_[t].speed = 0;
      if (tasks_[t].started && !tasks_[t].ended && tasks_[t].latency == 0) rising.push_back(t);
    }
    std::vector<double> rest = graph_.link_bytes_per_second;
    while (!rising.empty()) {
      std::vector<double> weight(rest.size(), 0);
      for (const size_t t : rising) {
        for (const LinkLoad& load : graph_.tasks[t].loads) {
          weight[load.resource] += load.bytes / Heaviest(graph_.tasks[t]);
        }
      }
      size_t tightest = 0;
      double more = std::numeric_limits<double>::infinity();
      for (size_t l = 0; l < rest.size(); ++l) {
        if (weight[l] > 0 && rest[l] / weight[l] < more) {
          more = rest[l] / weight[l];
          tightest = l;
        }
      }
      for (const size_t t : rising) tasks_[t].speed += more;
      for (size_t l = 0; l < rest.size(); ++l) rest[l] = std::max(0.0, rest[l] - more * weight[l]);
      std::erase_if(rising, [&](size_t t) {
        for (const LinkLoad& load : graph_.tasks[t].loads) {
          if (static_cast<size_t>(load.resource) == tightest && load.bytes > 0) return true;
        }
        return false;
      });
    }
  }

  const StepGraph& graph_;
  std::vector<State> tasks_;
};

}  // namespace motley::planner
