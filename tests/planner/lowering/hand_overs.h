// Hand-overs as the ranks' programs order them: how long they take when all data is there at the begin, and how long they must.
#pragma once

#include <algorithm>
#include <cstdint>
#include <variant>
#include <vector>

#include "common/program/program.h"

namespace motley::planner {

struct HandOver {
  int peer = 0;
  int64_t bytes = 0;
};
struct HandOvers {
  std::vector<HandOver> sends, receives;  // in the program's order
};

// What a rank sends and receives of activations, or of gradients.
template <typename Send, typename Receive>
HandOvers HandOversOf(const Program& program, int64_t bytes_of_sample) {
  HandOvers all;
  for (const Instruction& instruction : program.instructions) {
    if (const auto* op = std::get_if<Send>(&instruction.op)) all.sends.push_back({op->peer, op->samples * bytes_of_sample});
    if (const auto* op = std::get_if<Receive>(&instruction.op)) all.receives.push_back({op->peer, op->samples * bytes_of_sample});
  }
  return all;
}

// Ranks' hand-overs and their links' bytes a second, each way.
struct Border {
  std::vector<HandOvers> ranks;
  std::vector<double> rates;

  // At the slower of the two ends.
  double Seconds(size_t rank, const HandOver& h) const {
    return static_cast<double>(h.bytes) / std::min(rates[rank], rates[static_cast<size_t>(h.peer)]);
  }
  // Of the busiest lane: what a rank sends or receives, one after the other.
  double LaneSeconds() const {
    double most = 0;
    for (size_t r = 0; r < ranks.size(); ++r) {
      for (const auto* lane : {&ranks[r].sends, &ranks[r].receives}) {
        double sum = 0;
        for (const HandOver& h : *lane) sum += Seconds(r, h);
        most = std::max(most, sum);
      }
    }
    return most;
  }
  // In the programs' order, each as soon as it is the next on its sender's and its receiver's lane; -1 = they wait for each
  // other.
  double OrderSeconds() const {
    struct LaneState {
      size_t next = 0;
      double free = 0;
    };
    std::vector<LaneState> send(ranks.size()), receive(ranks.size());
    double end = 0;
    for (bool moved = true; moved;) {
      moved = false;
      for (size_t from = 0; from < ranks.size(); ++from) {
        if (send[from].next == ranks[from].sends.size()) continue;
        const HandOver& h = ranks[from].sends[send[from].next];
        LaneState& to = receive[h.peer];
        if (ranks[h.peer].receives[to.next].peer != static_cast<int>(from)) continue;
        const double over = std::max(send[from].free, to.free) + Seconds(from, h);
        end = std::max(end, over);
        send[from] = {send[from].next + 1, over};
        to = {to.next + 1, over};
        moved = true;
      }
    }
    for (size_t r = 0; r < ranks.size(); ++r) {
      if (send[r].next < ranks[r].sends.size()) return -1;
    }
    return end;
  }
};

}  // namespace motley::planner
