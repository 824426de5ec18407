// Reads blocks of a file of a checkpoint that lies on the nodes' disks, through the coordinator (Motley.Carry): from one node
// after the other, until all are here.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "coordinator/client/connection.h"

namespace motley::client {

struct CarriedFile {
  std::string job, checkpoint;  // of the checkpoint its name; empty: the newest that is whole
  std::string file;             // "rank-0.bin"; "base-.../base.json"; empty: the manifest
  int64_t block_bytes;          // of each but the last
};

// Not thread-safe.
class FileCarrier {
 public:
  struct Options {
    std::function<void(const std::string&)> say = [](const std::string&) {};  // what is waited for
    std::function<void(absl::Duration)> pause = absl::SleepFor;
    absl::Duration patience = absl::Seconds(60);  // for a coordinator that is gone, or has too much to carry
  };
  FileCarrier(Connection& connection, Options options) : connection_(connection), options_(std::move(options)) {}

  // Each of the blocks whole, in this order, to `take`, which verifies it: DATA_LOSS from there makes it ask another node,
  // another error is the last word. What came is not asked for again. NOT_FOUND, DATA_LOSS: no node that is here has it, or
  // whole; says what each said. `begun` is what the coordinator said of the node that answered last.
  absl::Status Read(const CarriedFile& file, std::vector<int64_t> blocks,
                    const std::function<absl::Status(int64_t, std::string_view)>& take, v1::CarryBegun* begun);

 private:
  struct Attempt {
    absl::Status status;
    bool last_word = false;  // of what `take` said
  };
  Attempt ReadOnce(const CarriedFile& file, const std::set<std::string>& not_from, std::vector<int64_t>& blocks,
                   const std::function<absl::Status(int64_t, std::string_view)>& take, v1::CarryBegun* begun);

  Connection& connection_;
  const Options options_;
};

}  // namespace motley::client
