// The worker daemon as one object: metrics, supervisor, session, and the checks of storage and network between them.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/metrics/metrics.h"
#include "common/session/session.h"
#include "worker/daemon/card_metrics.h"
#include "worker/daemon/card_watch.h"
#include "worker/daemon/carrier.h"
#include "worker/daemon/certificate_renewal.h"
#include "worker/daemon/config.h"
#include "worker/daemon/files_process.h"
#include "worker/daemon/known_term.h"
#include "worker/daemon/nvml_library.h"
#include "worker/daemon/outbox.h"
#include "worker/daemon/rank_trial.h"
#include "worker/daemon/reach.h"
#include "worker/daemon/reach_listener.h"
#include "worker/daemon/session.h"
#include "worker/daemon/spawn.h"
#include "worker/daemon/storage_checker.h"
#include "worker/daemon/supervisor.h"
#include "worker/daemon/worker_metrics.h"

namespace motley::worker {

class Worker {
 public:
  struct Events {
    std::function<void()> on_connected;            // each time the coordinator welcomes this worker
    std::function<void(absl::Status)> on_refused;  // the coordinator will not have it; nothing more happens
  };

  // `config` has passed Validate; `clock` must outlive the worker. UNAVAILABLE: the metrics port is taken, worker.data_address is
  // not of this machine, or a card cannot be used now (MakeOffer has more). FAILED_PRECONDITION: the node's identity
  // (CheckIdentity).
  static absl::StatusOr<std::unique_ptr<Worker>> Start(const WorkerConfig& config, const Clock& clock, Events events);
  // Ends the session in order, kills the ranks, removes what storage checks left.
  ~Worker();

  std::string metrics_address() const { return metrics_server_ ? metrics_server_->address() : ""; }
  // The supervisor's loop turns: false when it has stood still for `limit`.
  bool alive(absl::Duration limit) const { return clock_.Now() - supervisor_->last_turn() < limit; }
  // Ranks of a job run here, or were asked for.
  bool training() const { return supervisor_->training(); }
  // Behind Leave: other nodes may be bringing what only this node's disk has.
  bool keeps_files() const { return files_->running() && !released_; }
  bool connected() const { return connected_; }
  // Tells the coordinator that this worker will end and how long it can wait for its ranks to save.
  void Leave(absl::Duration limit) { outbox_.Push(LeavingReport{absl::ToDoubleSeconds(limit)}); }

 private:
  Worker(const WorkerConfig& config, const Clock& clock, Events events)
      : config_(config), files_folder_(FilesFolderOf(config)), clock_(clock), events_(std::move(events)) {}
  void StartSession();
  void WatchCards(std::unique_ptr<NvmlLibrary> nvml, const std::vector<OfferedDevice>& devices);
  NodeDescription Describe() const;
  // On the session's thread.
  void OnCommand(CoordinatorCommand command);
  void OnMark(const StoreMark& mark);
  void SetConnected(bool connected);
  // What this node shows of itself now; what it is shown is put into `shown`. CheckIdentity's errors.
  absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> Credentials(std::shared_ptr<ShownCertificate> shown) const;
  const WorkerConfig config_;
  const std::string files_folder_;  // [files] local
  const Clock& clock_;
  const Events events_;
  NodeDescription description_;  // constant after Start: all that does not change from one dial to the next
  MetricsRegistry registry_;
  Outbox outbox_;
  std::unique_ptr<WorkerMetrics> metrics_;
  std::unique_ptr<MetricsServer> metrics_server_;
  std::unique_ptr<RankTrial> rank_trial_;
  std::unique_ptr<NvmlLibrary> nvml_;  // null where there is none, or no card is offered
  std::vector<CardClaim> claims_;
  std::unique_ptr<CardMetrics> card_metrics_;
  std::unique_ptr<CardWatch> card_watch_;
  std::unique_ptr<ReachListener> reach_listener_;
  std::unique_ptr<ReachChecker> reach_checker_;
  UniqueFd known_parts_;  // what ranks and storage checks have read of the data
  std::unique_ptr<StorageChecker> storage_checker_;
  std::unique_ptr<Supervisor> supervisor_;
  std::unique_ptr<FilesProcess> files_;  // starts ranks
  std::unique_ptr<Carrier> carrier_;
  std::unique_ptr<Session> session_;
  std::atomic<bool> connected_ = false, released_ = false;
  StoreMark mark_;  // session's thread only, like the next three
  std::string key_id_;
  std::unique_ptr<CertificateRenewal> renewal_;  // null where the coordinator is dialed without TLS
  std::optional<KnownTerm> term_;                // the same
};

// What a worker remembers of the coordinator's store: the highest mark, or the newest one of another store.
StoreMark Remembered(const StoreMark& known, const StoreMark& told);

}  // namespace motley::worker
