// Many clients of one coordinator in one process: workers that only live, and streams that only listen. Each has a connection of
// its own, as in life. gRPC's callback threads serve all of them; counts are atomic.
#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "common/base/version.h"
#include "common/rpc/channel.h"
#include "proto/motley/v1/motley.grpc.pb.h"
#include "proto/motley/v1/worker.grpc.pb.h"

namespace motley::bench {

// A node with one device that is never asked anything. Beat() may be called from one thread.
class IdleWorker : public grpc::ClientBidiReactor<v1::WorkerMessage, v1::CoordinatorMessage> {
 public:
  IdleWorker(const std::shared_ptr<grpc::Channel>& channel, const std::string& node, std::atomic<int>* alive)
      : alive_(*alive), stub_(v1::WorkerService::NewStub(channel)) {
    v1::Hello* hello = hello_.mutable_hello();
    hello->set_node(node);
    hello->set_version(kVersion);
    hello->set_incarnation(1);
    hello->set_data_address("127.0.0.1");
    v1::DeviceDescription* device = hello->add_devices();
    device->set_id(absl::StrCat(node, "/gpu0"));
    device->set_model("test");
    device->set_kind("emulated");
    device->set_memory_bytes(int64_t{1} << 30);
    device->set_flops_per_second(1e9);
    heartbeat_.mutable_heartbeat();
    context_.set_wait_for_ready(true);
    stub_->async()->Session(&context_, this);
    AddHold();
    StartWrite(&hello_);
    StartRead(&message_);
    StartCall();
  }
  ~IdleWorker() override {
    context_.TryCancel();
    RemoveHold();
    done_.WaitForNotification();
  }
  void Beat() {
    if (!writing_.exchange(true)) StartWrite(&heartbeat_);
  }
  void OnWriteDone(bool) override { writing_ = false; }
  void OnReadDone(bool ok) override {
    if (!ok) {
      if (welcome_) --alive_;
      return;
    }
    if (message_.has_welcome()) {
      welcome_ = true, ++alive_;
    } else {
      ++answers_;
    }
    StartRead(&message_);
  }
  int64_t answers() const { return answers_; }  // of heartbeats
  void OnDone(const grpc::Status&) override { done_.Notify(); }

 private:
  std::atomic<int>& alive_;  // sessions that were welcomed and have not ended
  bool welcome_ = false;
  std::unique_ptr<v1::WorkerService::Stub> stub_;
  grpc::ClientContext context_;
  v1::WorkerMessage hello_, heartbeat_;
  v1::CoordinatorMessage message_;
  std::atomic<bool> writing_{true};
  std::atomic<int64_t> answers_{0};
  absl::Notification done_;
};

// All pages, as `motley nodes` asks for them. -1: one was refused.
inline int ListNodes(v1::Motley::Stub& stub) {
  v1::ListNodesRequest request;
  int nodes = 0;
  do {
    grpc::ClientContext context;
    v1::ListNodesResponse response;
    const grpc::Status status = stub.ListNodes(&context, request, &response);
    if (!status.ok()) return -1;
    nodes += response.nodes_size();
    request.set_page_token(response.next_page_token());
  } while (!request.page_token().empty());
  return nodes;
}

// Counts what one stream brings.
template <typename Message>
class Listener : public grpc::ClientReadReactor<Message> {
 public:
  // `start(stub, context, this)` begins the call.
  template <typename Start>
  Listener(const std::string& address, std::atomic<int64_t>* seen, const Start& start)
      : seen_(*seen), stub_(v1::Motley::NewStub(OpenChannel(address))) {
    context_.set_wait_for_ready(true);
    start(*stub_, &context_, this);
    this->StartRead(&message_);
    this->StartCall();
  }
  ~Listener() override {
    context_.TryCancel();
    done_.WaitForNotification();
  }
  bool began() const { return began_; }
  void OnReadDone(bool ok) override {
    if (!ok) return;
    ++seen_;
    began_ = true;
    this->StartRead(&message_);
  }
  void OnDone(const grpc::Status&) override { done_.Notify(); }

 private:
  std::atomic<int64_t>& seen_;
  std::unique_ptr<v1::Motley::Stub> stub_;
  grpc::ClientContext context_;
  Message message_;
  std::atomic<bool> began_{false};
  absl::Notification done_;
};

}  // namespace motley::bench
