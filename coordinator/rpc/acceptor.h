// Takes connections and hands them to gRPC, whose own listener never recovers once a process ran out of descriptors.
#pragma once

#include <grpcpp/server_builder.h>

#include <cstddef>
#include <memory>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "coordinator/rpc/listening_socket.h"

namespace motley::coordinator {

// Connections that one server holds at once. gRPC closes them without telling, so what was handed over is looked at again when
// the bound is reached. Used on the acceptor's thread.
class ConnectionBound {
 public:
  explicit ConnectionBound(size_t most) : most_(most) {}
  bool HasRoom();
  void Add(int fd);
  size_t most() const { return most_; }

 private:
  const size_t most_;
  std::unordered_map<int, uint64_t> open_;  // descriptor -> inode of its socket, by which a reused number is told
};

// One thread for all listening sockets. While there are no descriptors it waits and tries again; connections wait in the
// kernel's queue meanwhile.
class Acceptor {
 public:
  struct Server {
    std::string name;  // for people: "people", "workers"
    std::vector<ListeningSocket> sockets;
    std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> grpc;
    // Connections beyond it are closed at once. Those of this process to itself are taken anyway: the watchdog's.
    size_t most_connections = 0;
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
    ConnectionBound* bound;
    int fd;
  };
  void Run();
  // Takes what waits on one socket. False: no descriptors are left.
  bool Take(const Listener& listener);
  void Say(bool* said, const std::string& text);

  std::vector<Server> servers_;
  std::vector<std::unique_ptr<ConnectionBound>> bounds_;
  std::vector<Listener> listeners_;
  int wake_[2] = {-1, -1};       // a pipe; its end means stop
  bool said_exhausted_ = false;  // each is logged once until it is over
  bool said_full_ = false;
  std::thread thread_;
};

// What remains for connections under the process's limit of descriptors: `people` and `workers` are made smaller where need be.
void FitConnections(size_t descriptors, size_t* people, size_t* workers);

}  // namespace motley::coordinator
