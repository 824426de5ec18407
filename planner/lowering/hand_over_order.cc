#include "planner/lowering/hand_over_order.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace motley::planner {
namespace {

// The list schedule of a round's pieces.
std::vector<ComingPiece> InOrder(std::vector<ComingPiece> pieces) {
  std::map<int32_t, std::vector<ComingPiece>> of_sender;  // the next at the back
  std::sort(pieces.begin(), pieces.end(), [](const ComingPiece& a, const ComingPiece& b) { return a.first > b.first; });
  for (ComingPiece& piece : pieces) of_sender[piece.sender].push_back(std::move(piece));
  std::map<int32_t, int64_t> sent, received;  // samples, by rank: when its lane is free
  std::vector<ComingPiece> ordered;
  while (!of_sender.empty()) {
    const auto rank_of = [&](const auto& entry) {
      const ComingPiece& piece = entry.second.back();
      return std::tuple(std::max(sent[piece.sender], received[piece.receiver]), piece.microbatch, -piece.first);
    };
    const auto next = std::min_element(of_sender.begin(), of_sender.end(),
                                       [&](const auto& a, const auto& b) { return rank_of(a) < rank_of(b); });
    const ComingPiece& piece = ordered.emplace_back(std::move(next->second.back()));
    sent[piece.sender] = received[piece.receiver] = std::max(sent[piece.sender], received[piece.receiver]) + piece.samples;
    next->second.pop_back();
    if (next->second.empty()) of_sender.erase(next);
  }
  return ordered;
}

}  // namespace

std::vector<ComingPiece> HandOverOrder::Add(ComingPiece piece, int64_t round, int64_t samples_of_round) {
  const Key key = {piece.backward, piece.unit, round};
  Round& of_round = rounds_.try_emplace(key, Round{{}, samples_of_round}).first->second;
  of_round.missing -= piece.samples;
  of_sender_[piece.sender] = key;
  of_round.waiting.push_back(std::move(piece));
  return of_round.missing == 0 ? Take(key) : std::vector<ComingPiece>();
}

std::vector<ComingPiece> HandOverOrder::WithSender(int32_t sender) {
  const auto at = of_sender_.find(sender);
  return at == of_sender_.end() ? std::vector<ComingPiece>() : Take(Key(at->second));
}

std::vector<ComingPiece> HandOverOrder::All() {
  std::vector<ComingPiece> all;
  while (!of_sender_.empty()) {
    for (ComingPiece& piece : WithSender(of_sender_.begin()->first)) all.push_back(std::move(piece));
  }
  return all;
}

std::vector<ComingPiece> HandOverOrder::Take(const Key& key) {
  const auto at = rounds_.find(key);
  std::vector<ComingPiece> pieces = std::exchange(at->second.waiting, {});
  if (at->second.missing == 0) rounds_.erase(at);
  for (const ComingPiece& piece : pieces) of_sender_.erase(piece.sender);
  return InOrder(std::move(pieces));
}

}  // namespace motley::planner
