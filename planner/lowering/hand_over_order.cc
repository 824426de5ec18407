#include "planner/lowering/hand_over_order.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <tuple>
#include <utility>

namespace motley::planner {
namespace {

struct Waiting {
  ComingPiece piece;
  int64_t* send = nullptr;  // when its two lanes are free
  int64_t* receive = nullptr;
  int64_t begin() const { return std::max(*send, *receive); }
  auto rank() const { return std::tuple(begin(), piece.microbatch, -piece.first); }
};

// Of what a sender has left, by its samples, the first, or what can begin first of all that is over before any before it begins.
size_t NextOf(const std::vector<Waiting>& left) {
  size_t next = 0;
  int64_t earliest = left.front().begin(), before = earliest;
  for (size_t i = 1; i < left.size(); ++i) {
    const int64_t begin = left[i].begin();
    if (begin < earliest && begin + left[i].piece.samples <= before) {
      next = i;
      earliest = begin;
    }
    before = std::min(before, begin);
  }
  return next;
}

}  // namespace

std::vector<ComingPiece> HandOverOrder::InOrder(std::vector<ComingPiece> pieces, Lanes* lanes) {
  for (auto* of_ranks : {&lanes->send, &lanes->receive}) {
    for (int64_t& samples : *of_ranks) samples /= 2;
  }
  for (const ComingPiece& piece : pieces) {
    const auto sender = static_cast<size_t>(piece.sender), receiver = static_cast<size_t>(piece.receiver);
    if (sender >= lanes->send.size()) lanes->send.resize(sender + 1, 0);
    if (receiver >= lanes->receive.size()) lanes->receive.resize(receiver + 1, 0);
  }
  if (pieces.size() == 1) {
    int64_t &send = lanes->send[pieces[0].sender], &receive = lanes->receive[pieces[0].receiver];
    send = receive = std::max(send, receive) + pieces[0].samples;
    return pieces;
  }
  std::map<int32_t, std::vector<Waiting>> of_sender;
  std::sort(pieces.begin(), pieces.end(), [](const ComingPiece& a, const ComingPiece& b) { return a.first < b.first; });
  for (ComingPiece& piece : pieces) {
    int64_t& send = lanes->send[piece.sender];
    int64_t& receive = lanes->receive[piece.receiver];
    of_sender[piece.sender].push_back({std::move(piece), &send, &receive});
  }
  std::vector<ComingPiece> ordered;
  while (!of_sender.empty()) {
    std::vector<Waiting>* from = nullptr;  // who sends next, and what
    size_t next = 0;
    for (auto& [sender, left] : of_sender) {
      const size_t own = NextOf(left);
      if (from != nullptr && left[own].rank() >= (*from)[next].rank()) continue;
      from = &left;
      next = own;
    }
    Waiting& taken = (*from)[next];
    *taken.send = *taken.receive = taken.begin() + taken.piece.samples;
    const ComingPiece& piece = ordered.emplace_back(std::move(taken.piece));
    from->erase(from->begin() + static_cast<ptrdiff_t>(next));
    if (from->empty()) of_sender.erase(piece.sender);
  }
  return ordered;
}

std::vector<ComingPiece> HandOverOrder::Add(const ComingPiece& piece, int64_t round, int64_t samples_of_round) {
  const Key key = {piece.backward, piece.unit, round};
  Round& of_round = rounds_.try_emplace(key, Round{{}, samples_of_round}).first->second;
  of_round.missing -= piece.samples;
  const auto sender = static_cast<size_t>(piece.sender);
  if (sender >= of_sender_.size()) of_sender_.resize(sender + 1);
  of_sender_[sender] = key;
  of_round.waiting.push_back(piece);
  return of_round.missing == 0 ? Take(key) : std::vector<ComingPiece>();
}

std::vector<ComingPiece> HandOverOrder::WithSender(int32_t sender) {
  const auto at = static_cast<size_t>(sender);
  return at >= of_sender_.size() || !of_sender_[at] ? std::vector<ComingPiece>() : Take(Key(*of_sender_[at]));
}

std::vector<ComingPiece> HandOverOrder::All() {
  std::vector<ComingPiece> all;
  for (size_t sender = 0; sender < of_sender_.size(); ++sender) {
    for (ComingPiece& piece : WithSender(static_cast<int32_t>(sender))) all.push_back(std::move(piece));
  }
  return all;
}

std::vector<ComingPiece> HandOverOrder::Take(const Key& key) {
  const auto at = rounds_.find(key);
  std::vector<ComingPiece> pieces = std::exchange(at->second.waiting, {});
  if (at->second.missing == 0) rounds_.erase(at);
  for (const ComingPiece& piece : pieces) of_sender_[static_cast<size_t>(piece.sender)].reset();
  return InOrder(std::move(pieces), &lanes_[{key.backward, key.unit}]);
}

}  // namespace motley::planner
