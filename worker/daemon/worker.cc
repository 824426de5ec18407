#include "worker/daemon/worker.h"

#include <unistd.h>

#include <random>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/beneath.h"
#include "common/base/landlock.h"
#include "common/base/logging.h"
#include "common/base/status_macros.h"
#include "common/base/version.h"
#include "common/rpc/tls_credentials.h"
#include "common/session/rank_build.h"
#include "worker/daemon/localize.h"
#include "worker/daemon/offer.h"
#include "worker/daemon/probe.h"
#include "worker/daemon/rank_files.h"

namespace motley::worker {
namespace {

int64_t NewIncarnation() {
  std::random_device random;
  return static_cast<int64_t>((static_cast<uint64_t>(random()) << 31) ^ random());
}

// Returns why the kernel does not hold ranks to their roots; empty: it does.
std::string SayHold(const absl::StatusOr<int>& landlock_version) {
  landlock_version.ok() ? LogInfo(DescribeHold(landlock_version)) : LogWarning(DescribeHold(landlock_version));
  return std::string(landlock_version.status().message());
}

// On a thread that nobody waits for: a share whose server is away may hold it for ever.
void SayMissing(const std::vector<std::string>& roots) {
  std::thread([roots = FileRoots(roots)] {
    for (const std::string& line : roots.Missing()) LogWarning(line);
  }).detach();
}

}  // namespace

StoreMark Remembered(const StoreMark& known, const StoreMark& told) {
  if (told.store_id.empty()) return known;
  return told.store_id == known.store_id && told.commits < known.commits ? known : told;
}

absl::StatusOr<std::unique_ptr<Worker>> Worker::Start(const WorkerConfig& config, const Clock& clock, Events events) {
  absl::StatusOr<std::unique_ptr<NvmlLibrary>> nvml = NvmlLibrary::Open();
  MOTLEY_ASSIGN_OR_RETURN(Offer offer, MakeOffer(config, LookForCards(nvml, NvidiaFolder())));
  for (const std::string& line : motley::worker::Describe(offer)) LogInfo(line);
  SayMissing(config.file_roots);
  std::string files_not_held = SayHold(LandlockVersion());
  std::vector<DeviceDescription> devices;
  for (const OfferedDevice& device : offer.devices) devices.push_back(device.description);
  auto worker = std::unique_ptr<Worker>(new Worker(config, clock, std::move(events)));
  Worker* self = worker.get();
  if (UsesTls(config)) {
    MOTLEY_RETURN_IF_ERROR(self->Credentials(std::make_shared<ShownCertificate>()).status());
    MOTLEY_ASSIGN_OR_RETURN(self->term_, KnownTerm::Load(IdentityFolder(IdentityFolderOf(config))));
  }
  self->metrics_ = std::make_unique<WorkerMetrics>(self->registry_, config.name, devices);
  if (!config.metrics.empty()) {
    MOTLEY_ASSIGN_OR_RETURN(self->metrics_server_, MetricsServer::Start(config.metrics, self->registry_));
  }
  self->rank_trial_ = std::make_unique<RankTrial>(RankBinaries(offer.devices));
  self->claims_ = std::move(offer.claims);
  if (!self->claims_.empty()) self->WatchCards(*std::move(nvml), offer.devices);
  MOTLEY_ASSIGN_OR_RETURN(self->known_parts_, NewKnownParts());
  SupervisorConfig supervisor;
  supervisor.known_parts = self->known_parts_.get();
  supervisor.roots = FileRoots(config.file_roots);
  supervisor.files_folder = self->files_folder_;
  supervisor.data_authentication = config.data_authentication;
  supervisor.devices = std::move(offer.devices);
  supervisor.cards = self->card_watch_.get();
  supervisor.on_restored = [self](std::string folder) { self->files_->Restored(std::move(folder)); };
  self->supervisor_ = std::make_unique<Supervisor>(std::move(supervisor), clock, self->outbox_, *self->metrics_);
  self->storage_checker_ = std::make_unique<StorageChecker>(
      StorageCheckerConfig{
          .file_roots = config.file_roots, .files_folder = self->files_folder_, .known_parts = self->known_parts_.get()},
      clock, self->outbox_);
  self->files_ = std::make_unique<FilesProcess>(
      FilesProcessConfig{.local = self->files_folder_, .data_address = config.data_address, .node = NodeName(config.name)},
      self->outbox_, [self](StartCommand command) { self->supervisor_->Start(std::move(command)); });
  self->carrier_ = std::make_unique<Carrier>(CarrierConfig{.local = self->files_folder_, .file_roots = config.file_roots});
  self->reach_checker_ = std::make_unique<ReachChecker>(config.data_address, clock, self->outbox_);
  MOTLEY_ASSIGN_OR_RETURN(self->reach_listener_, ReachListener::Start(config.data_address, NodeName(config.name), clock));
  self->description_ = {NodeName(config.name),        kVersion, NewIncarnation(), config.data_address, std::move(devices), {}, {},
                        self->reach_listener_->port()};
  self->description_.unused_cards = std::move(offer.unused);
  self->description_.host_memory_bytes = ReadHostFacts(config.name).memory_bytes;
  self->description_.files_not_held = std::move(files_not_held);
  self->description_.protocol = kSessionProtocol;
  self->description_.rank_build = RankBuildOfNode(config.data_authentication, config.data_address);
  self->description_.user = absl::StrCat(geteuid(), ":", getegid());
  self->StartSession();
  return worker;
}

void Worker::WatchCards(std::unique_ptr<NvmlLibrary> nvml, const std::vector<OfferedDevice>& devices) {
  nvml_ = std::move(nvml);
  card_metrics_ = std::make_unique<CardMetrics>(registry_, config_.name);
  card_watch_ = std::make_unique<CardWatch>(*nvml_, devices, *card_metrics_, [this](const CardReport& report) {
    if (!report.lost.empty()) LogError(absl::StrCat(report.device.value(), ": ", report.lost));
    if (!report.health.empty()) LogWarning(absl::StrCat(report.device.value(), ": ", report.health));
    outbox_.Push(report);
  });
}

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> Worker::Credentials(std::shared_ptr<ShownCertificate> shown) const {
  MOTLEY_ASSIGN_OR_RETURN(const NodeIdentity identity, IdentityFolder(IdentityFolderOf(config_)).Load());
  MOTLEY_RETURN_IF_ERROR(CheckIdentity(identity, NodeName(config_.name), clock_.WallNow()));
  return TlsNodeCredentials(identity, [shown = std::move(shown)](const std::vector<Certificate>& chain) {
    shown->Set(chain.front());
    return absl::OkStatus();
  });
}

void Worker::StartSession() {
  SessionConfig session;
  session.coordinators = config_.coordinators;
  session.instead = SocketInstead(config_);
  Session::Handler handler;
  if (UsesTls(config_)) {
    session.credentials = [this](std::shared_ptr<ShownCertificate> shown) { return Credentials(std::move(shown)); };
    session.follow = [this](const Certificate& shown) { return term_->Follow(shown); };
    renewal_ = std::make_unique<CertificateRenewal>(IdentityFolder(IdentityFolderOf(config_)), NodeName(config_.name));
    handler.on_heartbeat = [this]() -> std::optional<WorkerReport> { return renewal_->Due(clock_.WallNow()); };
  }
  handler.doing = [this] { return supervisor_->doing(); };
  handler.hello = [this] { return Describe(); };
  handler.on_command = [this](CoordinatorCommand command) { OnCommand(std::move(command)); };
  handler.on_connected = [this](const StoreMark& mark, const std::string& key_id, const std::string& address,
                                ChannelOpener beside) {
    carrier_->SetOpener(std::move(beside));
    LogInfo(absl::StrCat("in session with the coordinator at ", address));
    if (key_id != key_id_) mark_ = StoreMark();  // its token means nothing to this coordinator
    key_id_ = key_id;
    OnMark(mark);
    SetConnected(true);
    supervisor_->OnConnected(key_id);
    if (events_.on_connected) events_.on_connected();
  };
  handler.on_disconnected = [this](const std::string&) { SetConnected(false); };
  handler.on_refused = [this](absl::Status status) {
    SetConnected(false);
    if (events_.on_refused) events_.on_refused(std::move(status));
  };
  session_ = std::make_unique<Session>(std::move(session), std::move(handler), clock_, outbox_);
}

Worker::~Worker() {
  session_.reset();
  if (files_) files_->End();  // it starts ranks, and hears of their folders
  supervisor_.reset();
  card_watch_.reset();
}

void Worker::SetConnected(bool connected) {
  connected_ = connected;
  metrics_->SetConnected(connected);
}

NodeDescription Worker::Describe() const {
  NodeDescription node = description_;
  node.newest_epochs = supervisor_->newest_epochs();
  node.store_mark = mark_;
  node.coordinators = config_.coordinators;
  if (term_) node.term_certificate = term_->Proof();
  if (card_watch_ == nullptr) return node;
  for (const CardReport& now : card_watch_->reports()) {
    for (DeviceDescription& device : node.devices) {
      if (device.id != now.device) continue;
      device.card.health = now.health;
      device.card.lost = now.lost;
      device.card.used_by_others_bytes = now.used_by_others_bytes;
    }
  }
  return node;
}

void Worker::OnMark(const StoreMark& mark) { mark_ = Remembered(mark_, mark); }

void Worker::OnCommand(CoordinatorCommand command) {
  struct Visitor {
    Worker& worker;
    void operator()(StorageCheckCommand& check) const {
      LocalizeInputs(worker.files_folder_, check);
      if (!check.over) return worker.storage_checker_->Check(std::move(check));
      worker.storage_checker_->Drop(StopCommand{check.job, check.epoch, false, ""});
      worker.storage_checker_->RemoveToken(check.job);
    }
    void operator()(ReachCheckCommand& check) const {
      if (!check.secret.empty()) worker.reach_listener_->AllowBursts(check.secret);
      worker.reach_checker_->Check(std::move(check));
    }
    void operator()(ProfileCommand& profile) const {
      worker.storage_checker_->RemoveToken(profile.job);
      for (RankAssignment& rank : profile.ranks) LocalizeInputs(worker.files_folder_, rank);
      worker.supervisor_->Profile(std::move(profile));
    }
    void operator()(StartCommand& start) const {
      if (!start.ranks.empty()) worker.storage_checker_->RemoveToken(start.ranks[0].job);
      for (RankAssignment& rank : start.ranks) LocalizeInputs(worker.files_folder_, rank);
      IsLocal(start) ? worker.files_->Start(std::move(start)) : worker.supervisor_->Start(std::move(start));
    }
    void operator()(StopCommand& stop) const {
      worker.storage_checker_->Drop(stop);
      worker.storage_checker_->RemoveToken(stop.job);
      worker.files_->Stop(stop);
      worker.supervisor_->Stop(std::move(stop));
    }
    void operator()(HoldingsCommand& question) const { worker.files_->Ask(std::move(question)); }
    void operator()(CopyCommand& copy) const { worker.files_->Copy(std::move(copy)); }
    void operator()(DropCommand& drop) const { worker.files_->Drop(std::move(drop)); }
    void operator()(CarryCommand& carry) const { worker.carrier_->Carry(std::move(carry)); }
    void operator()(KvValueCommand& value) const { worker.supervisor_->Deliver(std::move(value)); }
    void operator()(PublishAnswerCommand& answer) const { worker.supervisor_->Deliver(std::move(answer)); }
    void operator()(TraceCommand& trace) const { worker.supervisor_->Deliver(std::move(trace)); }
    void operator()(HeartbeatAnswer& answer) const {
      worker.OnMark(answer.store_mark);
      worker.released_ = answer.knows_leaving && !answer.awaits_files;
    }
    void operator()(AuthoritiesCommand& command) const {
      if (worker.renewal_ == nullptr) return;
      worker.renewal_->OnAuthorities(command);
      if (std::optional<RenewalReport> now = worker.renewal_->Due(worker.clock_.WallNow())) worker.outbox_.Push(*std::move(now));
    }
    void operator()(CertificateCommand& command) const {
      if (worker.renewal_ == nullptr) return;
      if (std::optional<RenewalReport> stored = worker.renewal_->OnCertificate(command, worker.clock_.WallNow()))
        worker.outbox_.Push(*std::move(stored));
    }
  };
  std::visit(Visitor{*this}, command);
}

}  // namespace motley::worker
