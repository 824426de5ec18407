// Takes connections and hands them to gRPC, whose own listener never recovers once a process ran out of descriptors.
#pragma once

#include <grpcpp/server_builder.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "coordinator/rpc/busy_peers.h"
#include "coordinator/rpc/handshake_bound.h"
#include "coordinator/rpc/listening_socket.h"
#include "coordinator/rpc/seats.h"

namespace motley::coordinator {

// One thread for all listening sockets. While there are no descriptors it waits and tries again; connections wait in the
// kernel's queue meanwhile.
class Acceptor {
 public:
  // Who takes a connection, and whose it is.
  struct Chosen {
    grpc::experimental::ExternalConnectionAcceptor* grpc = nullptr;  // null: nobody, and it is closed
    Guest guest;
  };
  // Sockets whose connections gRPC takes with the same credentials.
  struct Door {
    std::vector<ListeningSocket> sockets;
    std::function<Chosen(int fd)> choose;
    bool by_tls = false;  // so many handshakes at a time as HandshakeBound says; others wait in the kernel's queue
  };
  struct Server {
    std::string name;  // for people: "people", "workers"
    std::vector<Door> doors;
    // Beyond them a new connection is closed. Those of this process to itself are taken anyway: the watchdog's.
    SeatLimits seats;
    const BusyPeers* busy = nullptr;  // of a server with doors by TLS; must outlive the acceptor
    bool tells = false;               // a connection that is not taken is told why, in plain text
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
    Seats* seats;
    HandshakeBound* handshakes;  // null: none are needed
    int fd;
  };
  void Run();
  // Takes what waits on one socket. False: no descriptors are left.
  bool Take(const Listener& listener);
  void Say(bool* said, const std::string& text);
  // At most once a minute for each account.
  void SayFull(const Listener& listener, const Guest& guest, const std::string& why);

  SystemClock clock_;
  std::vector<Server> servers_;
  std::vector<std::unique_ptr<Seats>> seats_;
  std::vector<std::unique_ptr<HandshakeBound>> handshakes_;
  std::vector<Listener> listeners_;
  int wake_[2] = {-1, -1};                                                               // a pipe; its end means stop
  bool said_exhausted_ = false;                                                          // logged once until it is over
  std::map<std::pair<std::string, std::optional<uint32_t>>, absl::Duration> said_full_;  // by server and account: when
  std::thread thread_;
};

// What remains for connections under the process's limit of descriptors: `people` and `workers` are made smaller where need be.
void FitConnections(size_t descriptors, size_t* people, size_t* workers);

}  // namespace motley::coordinator
