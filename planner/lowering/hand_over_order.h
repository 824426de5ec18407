// In which order the pieces of a round go from one stage to the next: who receives first from whom. Part of the program writer.
//
// Two stages cut the batch in two ways, so the pieces between them form a path: two neighbouring pieces have the sender or the
// receiver in common. Everybody sends in the order of the samples. If receivers also took the pieces in that order, the second of
// two senders would wait for the first one's last piece before it could begin. If they take them from the last sample to the
// first, a piece that both its ends share with others is the first of both or the last of both. So nobody waits in between, and
// the pieces take as long as the busiest lane, which is the bound, whatever the links' rates are.
//
// That holds for pieces that are ready together, which those of one round of the sending stage are taken to be, where each rank
// receives for one microbatch. Where some do for several, a list schedule puts first what could begin first if a sample took a
// moment on every link; among those the microbatch that is needed first, then the last sample. Rounds follow each other.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <vector>

#include "common/program/program.h"

namespace motley::planner {

// What its sender has written and its receiver has not.
struct ComingPiece {
  Operation receive;
  bool backward = false;
  int32_t unit = 0;        // the first behind the border
  int64_t microbatch = 0;  // of the receiver
  int32_t sender = 0, receiver = 0;
  int64_t first = 0, samples = 0;  // of the pipeline's batch
};

// Every piece that is added comes out once, a sender's in the order of their samples.
class HandOverOrder {
 public:
  // Of `round` of the sending stage, which has so many samples. The pieces that are now received, in this order.
  std::vector<ComingPiece> Add(ComingPiece piece, int64_t round, int64_t samples_of_round);
  // Those that wait together with the sender's: to be received before anything that it sends next. There may be none.
  std::vector<ComingPiece> WithSender(int32_t sender);
  // All that wait.
  std::vector<ComingPiece> All();

 private:
  struct Key {
    bool backward = false;
    int32_t unit = 0;
    int64_t round = 0;
    auto operator<=>(const Key&) const = default;
  };
  struct Round {
    std::vector<ComingPiece> waiting;
    int64_t missing = 0;  // samples that have not come
  };
  std::vector<ComingPiece> Take(const Key& key);

  std::map<Key, Round> rounds_;  // that are not complete
  std::map<int32_t, Key> of_sender_;
};

}  // namespace motley::planner
