// Gives other nodes what jobs have on this node's disk (service Files of proto/motley/v1/files.proto), in the files process.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "worker/files/files_identity.h"

namespace motley::worker {

// So many read from a node at a time; others are told to come again.
inline constexpr int kMostReaders = 8;

class FilesServer {
 public:
  // On a port of the kernel's. `local`: [files] local. `address`: numeric, the node's data address. `wait`: for a block of an
  // input that comes here, below the silence after which readers leave (FilesReading::silence). UNAVAILABLE: the address is not
  // of this machine.
  static absl::StatusOr<std::unique_ptr<FilesServer>> Start(const std::string& local, const std::string& address,
                                                            const FilesIdentity& identity, const Clock& clock,
                                                            absl::Duration wait = absl::Seconds(5));
  virtual ~FilesServer() = default;
  virtual int port() const = 0;
  // By which tickets are judged from now on. Thread-safe.
  virtual void SetSecret(std::string secret) = 0;
};

}  // namespace motley::worker
