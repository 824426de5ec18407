// In which order the pieces of a round go from one stage to the next: who sends to whom first, and who receives first from whom.
// Part of the program writer.
//
// Two stages cut the batch in two ways, so the pieces between them form a path: two neighbouring pieces have the sender or the
// receiver in common. If senders sent and receivers received in the order of the samples, the second of two senders would wait
// for the first one's last piece before it could begin. If receivers take the pieces from the last sample to the first, a piece
// that both its ends share with others is the first of both or the last of both. So nobody waits in between, and the pieces take
// as long as the busiest lane, which is the bound, whatever the links' rates are.
//
// That holds for pieces that are ready together, which those of one round of the sending stage are taken to be, where each rank
// receives for one microbatch. Where some do for several, a list schedule puts first what could begin first if a sample took a
// moment on every link; among those the microbatch that is needed first, then the last sample. A sender has the first of its
// pieces in the list. While that one's receiver is busy it sends another one, if that is over by then.
//
// Rounds follow each other. How long a lane has still to do for the rounds before counts half: if the links bind it has all of
// that to do, and none of it if the stage's computation does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace motley::planner {

// What its sender has made and its receiver has not received.
struct ComingPiece {
  bool backward = false;
  int32_t unit = 0;                           // the first behind the border
  int32_t virtual_stage = 0;                  // of the receiver
  int64_t microbatch = 0, of_microbatch = 0;  // of the receiver, of the sender
  int32_t sender = 0, receiver = 0;
  int64_t first = 0, samples = 0;  // of the pipeline's batch
  size_t passed = 0;               // so many of its receiver's steps are passed when it is handed over
};

// Every piece that is added comes out once. Senders send and receivers receive in the order in which they come out; a sender's
// pieces that wait together come out together.
class HandOverOrder {
 public:
  // Of `round` of the sending stage, which has so many samples. The pieces that are now handed over, in this order.
  std::vector<ComingPiece> Add(const ComingPiece& piece, int64_t round, int64_t samples_of_round);
  // Those that wait together with the sender's: to be handed over before anything that it sends next. There may be none.
  std::vector<ComingPiece> WithSender(int32_t sender);
  // All that wait.
  std::vector<ComingPiece> All();

 private:
  struct Key {
    bool backward = false;
    int32_t unit = 0;
    int64_t round = 0;
    bool operator==(const Key&) const = default;
    template <typename H>
    friend H AbslHashValue(H state, const Key& key) {
      return H::combine(std::move(state), key.backward, key.unit, key.round);
    }
  };
  struct Round {
    std::vector<ComingPiece> waiting;
    int64_t missing = 0;  // samples that have not come
  };
  // Samples after which a lane is free, by rank.
  struct Lanes {
    std::vector<int64_t> send, receive;
  };
  static std::vector<ComingPiece> InOrder(std::vector<ComingPiece> pieces, Lanes* lanes);
  std::vector<ComingPiece> Take(const Key& key);

  absl::flat_hash_map<Key, Round> rounds_;                      // that are not complete
  std::vector<std::optional<Key>> of_sender_;                   // what it has that waits
  absl::flat_hash_map<std::pair<bool, int32_t>, Lanes> lanes_;  // by border: backward, unit
};

}  // namespace motley::planner
