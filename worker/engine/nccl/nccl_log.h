// What NCCL's log (NCCL_DEBUG=INFO) says of the links that a communicator goes by. NCCL has no call that does.
// docs/inside/nccl.md
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/session/transport_use.h"

namespace motley::engine {

// Reads the log of one process: a network's interfaces are named once, before its first communicator.
class NcclLog {
 public:
  // `lines`: what was logged while one communicator was made and first used. `is_pair`: of hand-overs, which have channels of
  // their own. None: the lines do not say.
  std::optional<NcclLinks> LinksOf(const std::string& lines, bool is_pair);

 private:
  struct Interface {
    std::string name, kind;
  };
  // Of one communicator.
  struct Seen {
    std::vector<std::string> ways;  // "P2P/CUMEM", "NET/IB/0/GDRDMA"; each once
    bool has_nvlink = false, is_one_card = false, has_paths = false, has_many_nodes = false;
    int channels = 0;
  };

  void ReadLine(const std::string& line, bool is_pair, Seen& seen);
  void ReadInterfaces(const std::string& network, const std::string& list);
  void AddNetwork(const std::string& network, int number, NcclLinks& links) const;

  std::map<std::string, std::map<int, Interface>> networks_;  // "Socket", "IB": by NCCL's number of the interface
  std::string network_;                                       // that the communicators take
};

}  // namespace motley::engine
