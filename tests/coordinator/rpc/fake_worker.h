// A worker that speaks the session protocol and trains nothing: what it says is the test's choice.
#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/version.h"
#include "proto/motley/v1/worker.grpc.pb.h"

namespace motley::coordinator {

class FakeWorker {
 public:
  struct Options {
    int devices = 1;
    int64_t host_memory_bytes = 0;  // that its node offers
    // Of ranks' memory in a step: as an emulated device does; a card, which has no passes; an older version, which has neither.
    bool measures_purposes = true, measures_passes = true;
    int compute_capability = 0;  // of its devices, which are NVIDIA cards then
    int64_t incarnation = 1;
    int protocol = kSessionProtocol;
    std::string data_digest = "digest";
    std::string initial_digest;  // of what a job begins with, where it is asked for that
    bool answer_storage = true;
    bool sees_token = true;
    std::string storage_error;
    int storage_error_code = 0;
    v1::Sampled sampled = v1::SAMPLED_ABSENT;  // what it has at a path of which a sample is shown
    std::string verify_error;  // what it finds in a checkpoint that another node found damaged; empty: it verifies
    int reach_port = 9;        // nobody connects: who reaches whom is said below
    bool answer_reach = true;
    std::string unreachable;                    // node that this one does not reach; "*": none at all
    std::shared_ptr<std::atomic<bool>> mended;  // set and true: it reaches it all the same
    double bytes_per_second = 1e8;              // of bursts that it is asked for
    std::string lies_about;                     // a node about which it says, for others as well, that it is not reached
    int64_t clock_ahead_ms = 0;                 // of the wall
    std::string profile_error;
    v1::Fault profile_fault = v1::FAULT_UNSPECIFIED;     // of the error
    std::shared_ptr<std::atomic<int>> failing_profiles;  // set: so many have the error, and those behind them are right
    bool empty_profile = false;
    bool answer_collectives = true;
    bool meets = true;                                             // its ranks say where they listen, when they start
    bool measures = true;                                          // and what their collectives took
    std::function<bool(const v1::RankAssignment& rank)> on_start;  // false: the rank is not heard of
    bool answer_profiles = true;                                   // with invented, plausible numbers
    std::function<void(v1::ProfileResult& result)> on_profile;     // changes them
    // Whether a trial has the memory; null: the worker knows none.
    std::function<bool(const v1::RankAssignment& rank, int64_t samples)> trial_fits;
    std::string trial_error;  // of all of them
    bool answer_trials = true;
    bool heartbeats = true;
    // Said in hello; starts that are not above those of the coordinator's own key are dropped, as in life.
    std::vector<v1::JobEpoch> seen;
    bool answer_traces = true;  // an instruction as many nanoseconds long as the step's number
    std::string trace_error;
    bool answer_kills = true;                                                  // ranks that are killed are reported dead
    std::function<void(v1::Hello& hello)> on_hello;                            // changes what it says of itself
    std::shared_ptr<grpc::ChannelCredentials> credentials;                     // null: plaintext
    std::shared_ptr<grpc::Channel> channel;                                    // instead of an address
    std::function<void(const v1::CoordinatorMessage& message)> on_membership;  // of Authorities and Renewal
    // What its disk holds; null: nothing. Returns false where it does not answer.
    std::function<bool(const v1::HoldingsRequest& request, v1::Holdings* holdings)> on_holdings;
    std::function<void(const v1::CheckpointSource& source)> on_source;  // of each start
    // Of each copy that it is to keep: how that ends; null: it does not. And of each deletion.
    std::function<void(const v1::CopyRequest& request, v1::FetchProgress* end)> on_copy;
    std::function<void(const v1::DropRequest& request)> on_drop;
    std::function<void(const v1::CarryRequest& request)> on_carry;
    // Called before the ranks of a saving stop end; here a test writes its checkpoint.
    std::function<void(const v1::RankAssignment& rank, int64_t step)> on_save;
  };

  FakeWorker(const std::string& address, const std::string& node, Options options);
  ~FakeWorker();

  // The connection ends without a word, as when the process is killed.
  void Drop();
  // Waits for the end of a session that the coordinator refused or closed.
  grpc::Status WaitForEnd();
  bool WaitForWelcome();
  // Waits until ranks of an epoch above `after` were started; their assignments, or none in 20 s.
  std::vector<v1::RankAssignment> WaitForStart(int64_t after = 0);
  bool WaitForStop(int64_t epoch);
  bool HasStopped(int64_t epoch);
  // Until it was told to forget a storage check.
  bool WaitForForgotten();
  // Until so many trials have begun; until one was called off.
  bool WaitForTrials(int trials);
  bool WaitForCalledOff();
  bool WaitForAnswer(v1::PublishAnswer* answer);

  // Of the newest epoch: every rank here reports this step, ready, finished, or an event of its own.
  void Step(int64_t step);
  // Every step from the epoch's first or the newest reported one to this one.
  void StepTo(int64_t step);
  void SendAll(v1::RankEvent::Kind kind, const std::string& message = "");
  void SendEvent(const v1::RankAssignment& rank, v1::RankEvent::Kind kind, const std::string& message);
  // The first rank here failed, and says whose fault that is.
  void Fail(v1::Fault fault, const std::string& message, const std::string& damaged_checkpoint = "");
  void Send(const v1::WorkerMessage& message);
  std::vector<v1::RankAssignment> ranks();
  // Of the store, as the coordinator told it in its welcome; and what it gave a token for since.
  v1::StoreMark mark();
  std::vector<v1::JobEpoch> seen();

 private:
  void Read();
  void Beat();
  void Handle(const v1::CoordinatorMessage& message);
  void AnswerProfile(const v1::ProfileRequest& request);
  void AnswerTrial(const v1::ProfileRequest& request, v1::ProfileResult* result);
  void AnswerStop(const v1::StopEpoch& stop);
  void Meet(const v1::RankAssignment& rank, const std::string& run);
  void See(const std::string& job, int64_t epoch, const std::string& token);
  bool Wait(const std::function<bool()>& condition);

  const std::string node_;
  const Options options_;
  std::unique_ptr<v1::WorkerService::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::WorkerMessage, v1::CoordinatorMessage>> stream_;
  absl::Mutex write_mutex_;
  absl::Mutex mutex_;
  std::vector<v1::RankAssignment> ranks_;
  std::vector<v1::RankAssignment> measuring_;  // together
  std::vector<v1::PublishAnswer> answers_;
  v1::StoreMark mark_;
  std::string key_id_;
  std::map<std::string, v1::JobEpoch> seen_;
  int64_t stopped_epoch_ = 0;
  int64_t last_step_ = 0;
  int forgotten_ = 0, trials_ = 0, called_off_ = 0;
  bool welcome_ = false;
  bool ended_ = false;
  grpc::Status status_;
  std::thread reader_, heart_;
};

}  // namespace motley::coordinator
