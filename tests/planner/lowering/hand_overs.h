// Hand-overs as the ranks' programs order them: how long they take when all data is there at the begin, and how long they must.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <variant>
#include <vector>

#include "common/program/program.h"

namespace motley::planner {

struct HandOver {
  int peer = 0;
  int64_t bytes = 0;
  int32_t microbatch = 0, first = 0;  // of the rank, of the batch's samples
};
struct HandOvers {
  std::vector<HandOver> sends, receives;  // in the program's order
};

// What a rank sends and receives of activations, or of gradients.
template <typename Send, typename Receive>
HandOvers HandOversOf(const Program& program, int64_t bytes_of_sample) {
  HandOvers all;
  const auto of = [&](const auto& op) { return HandOver{op.peer, op.samples * bytes_of_sample, op.microbatch, op.first}; };
  for (const Instruction& instruction : program.instructions) {
    if (const auto* op = std::get_if<Send>(&instruction.op)) all.sends.push_back(of(*op));
    if (const auto* op = std::get_if<Receive>(&instruction.op)) all.receives.push_back(of(*op));
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
  // Less than this no order takes in which every sender sends one microbatch after the other, as these programs do: a receiver
  // can begin with a piece when the sender's microbatches before are through, and those behind it are still to come.
  double TurnSeconds() const {
    struct Piece {
      double before = 0, seconds = 0, behind = 0;
    };
    std::vector<std::vector<Piece>> to(ranks.size());
    for (size_t from = 0; from < ranks.size(); ++from) {
      for (const HandOver& own : ranks[from].sends) {
        Piece piece{0, Seconds(from, own), 0};
        for (const HandOver& h : ranks[from].sends) {
          if (h.microbatch < own.microbatch) piece.before += Seconds(from, h);
          if (h.microbatch > own.microbatch) piece.behind += Seconds(from, h);
        }
        to[static_cast<size_t>(own.peer)].push_back(piece);
      }
    }
    double most = LaneSeconds();
    for (const std::vector<Piece>& pieces : to) {
      for (const Piece& first : pieces) {
        for (const Piece& last : pieces) {
          double sum = 0;
          for (const Piece& p : pieces) sum += p.before >= first.before && p.behind >= last.behind ? p.seconds : 0;
          if (sum > 0) most = std::max(most, first.before + sum + last.behind);
        }
      }
    }
    return most;
  }
  // When each microbatch has come to its rank, in the programs' order: each piece goes as soon as it is the next on its sender's
  // and its receiver's lane. Nothing where they wait for each other.
  std::map<std::pair<int, int32_t>, double> Completions() const {
    struct LaneState {
      size_t next = 0;
      double free = 0;
    };
    std::vector<LaneState> send(ranks.size()), receive(ranks.size());
    std::map<std::pair<int, int32_t>, double> completions;
    for (bool moved = true; moved;) {
      moved = false;
      for (size_t from = 0; from < ranks.size(); ++from) {
        if (send[from].next == ranks[from].sends.size()) continue;
        const HandOver& h = ranks[from].sends[send[from].next];
        LaneState& to = receive[h.peer];
        const HandOver& received = ranks[h.peer].receives[to.next];
        if (received.peer != static_cast<int>(from)) continue;
        const double over = std::max(send[from].free, to.free) + Seconds(from, h);
        completions[{h.peer, received.microbatch}] = over;
        send[from] = {send[from].next + 1, over};
        to = {to.next + 1, over};
        moved = true;
      }
    }
    for (size_t r = 0; r < ranks.size(); ++r) {
      if (send[r].next < ranks[r].sends.size()) return {};
    }
    return completions;
  }
  // -1 = they wait for each other.
  double OrderSeconds() const {
    double end = -1;
    for (const auto& [microbatch, seconds] : Completions()) end = std::max(end, seconds);
    return end;
  }
  // Everybody sends and receives in the order of the samples.
  Border BySamples() const {
    Border sorted = *this;
    for (HandOvers& rank : sorted.ranks) {
      for (auto* lane : {&rank.sends, &rank.receives}) {
        std::sort(lane->begin(), lane->end(), [](const HandOver& a, const HandOver& b) { return a.first < b.first; });
      }
    }
    return sorted;
  }
};

}  // namespace motley::planner
