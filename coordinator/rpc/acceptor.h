// Takes connections and hands them to gRPC, whose own listener never recovers once a process ran out of descriptors.
#pragma once

#include <grpcpp/server_builder.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/base/clock.h"
#include "coordinator/rpc/busy_peers.h"
#include "coordinator/rpc/handshake_bound.h"
#include "coordinator/rpc/held_socket.h"
#include "coordinator/rpc/listening_socket.h"

namespace motley::coordinator {

// Connections that one server holds at once. gRPC closes them without telling, so what was handed over is looked at again when
// the bound is reached. Used on the acceptor's thread.
class ConnectionBound {
 public:
  ConnectionBound(size_t most, const BusyPeers& busy) : most_(most), busy_(busy) {}
  // Where there is none, connections by TCP that have no call are closed, the oldest first: whoever holds them can come again.
  // False: all have one, or their ends have no names (Unix sockets).
  bool MakeRoom();
  void Add(int fd);
  size_t most() const { return most_; }

 private:
  bool CloseIfIdle(const HeldSocket& held);

  const size_t most_;
  const BusyPeers& busy_;
  std::vector<HeldSocket> open_;  // the oldest first
};

// One thread for all listening sockets. While there are no descriptors it waits and tries again; connections wait in the
// kernel's queue meanwhile.
class Acceptor {
 public:
  // Sockets whose connections gRPC takes with the same credentials.
  struct Door {
    std::vector<ListeningSocket> sockets;
    // Who takes a connection; null: nobody, and it is closed.
    std::function<grpc::experimental::ExternalConnectionAcceptor*(int fd)> choose;
    bool by_tls = false;  // so many handshakes at a time as HandshakeBound says; others wait in the kernel's queue
  };
  struct Server {
    std::string name;  // for people: "people", "workers"
    std::vector<Door> doors;
    // Beyond it the oldest without a call is closed for a new one, and where all have one, the new one. Those of this process to
    // itself are taken anyway: the watchdog's.
    size_t most_connections = 0;
    const BusyPeers* busy = nullptr;  // must outlive the acceptor
  };
  // The gRPC servers must have been started, and must outlive this.
  explicit Acceptor(std::vector<Server> servers);
  // Stops taking connections and closes the sockets; what was handed over stays.
  ~Acceptor();
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;

 private:
  struct Listener {
    Server* server;
    Door* door;
    ConnectionBound* bound;
    HandshakeBound* handshakes;  // null: none are needed
    int fd;
  };
  void Run();
  // Takes what waits on one socket. False: no descriptors are left.
  bool Take(const Listener& listener);
  void Say(bool* said, const std::string& text);

  SystemClock clock_;
  std::vector<Server> servers_;
  std::vector<std::unique_ptr<ConnectionBound>> bounds_;
  std::vector<std::unique_ptr<HandshakeBound>> handshakes_;
  std::vector<Listener> listeners_;
  int wake_[2] = {-1, -1};       // a pipe; its end means stop
  bool said_exhausted_ = false;  // each is logged once until it is over
  bool said_full_ = false;
  std::thread thread_;
};

// What remains for connections under the process's limit of descriptors: `people` and `workers` are made smaller where need be.
void FitConnections(size_t descriptors, size_t* people, size_t* workers);

}  // namespace motley::coordinator
