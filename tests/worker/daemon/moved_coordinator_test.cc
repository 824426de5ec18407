// Sessions of a worker that knows several addresses at which its coordinator may be.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "common/rpc/tls_credentials.h"
#include "common/tls/certificate_authority.h"
#include "tests/common/base/patience.h"
#include "tests/common/base/temp_folder.h"
#include "worker/daemon/session.h"

namespace motley::worker {
namespace {

constexpr char kOneId[] = "5e0c4b29bb5a7fbd", kOtherId[] = "0123456789abcdef";

// Welcomes everybody by TLS, with a certificate of a term.
class CoordinatorOfTerm : public v1::WorkerService::Service {
 public:
  CoordinatorOfTerm(const CertificateAuthority& authority, const Term& term) {
    RequireTls13();
    const PrivateKey key = PrivateKey::Make().value();
    const auto own = authority.IssueCoordinator(term, key.SigningRequest().value(), absl::Now(), absl::Hours(1));
    const std::string roots = authority.certificate().ToPem();
    files_ = {folder_.Write("key", key.ToPem().value()), folder_.Write("own", own->ToPem() + roots),
              folder_.Write("roots", roots)};
    Listen("127.0.0.1:0");
  }
  ~CoordinatorOfTerm() override { Stop(); }
  void Listen(const std::string& address) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address, TlsServerCredentials(files_), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
  }
  void Stop() {
    if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now());
    server_.reset();
  }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  std::vector<std::string> shown_terms() const {
    absl::MutexLock lock(&mutex_);
    return shown_terms_;
  }

  bool WaitForHellos(size_t count) const {
    absl::MutexLock lock(&mutex_);
    const auto there = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return shown_terms_.size() >= count; };
    return mutex_.AwaitWithTimeout(absl::Condition(&there), Patience(absl::Seconds(20)));
  }

  grpc::Status Session(grpc::ServerContext*,
                       grpc::ServerReaderWriter<v1::CoordinatorMessage, v1::WorkerMessage>* stream) override {
    v1::WorkerMessage message;
    if (!stream->Read(&message)) return grpc::Status::OK;
    {
      absl::MutexLock lock(&mutex_);
      shown_terms_.push_back(message.hello().term_certificate());
    }
    v1::CoordinatorMessage welcome;
    welcome.mutable_welcome()->set_lease_ms(2000);
    stream->Write(welcome);
    v1::CoordinatorMessage answer;
    answer.mutable_heartbeat_answer();
    while (stream->Read(&message)) stream->Write(answer);
    return grpc::Status::OK;
  }

 private:
  const TempFolder folder_;
  TlsFiles files_;
  int port_ = 0;
  mutable absl::Mutex mutex_;
  std::vector<std::string> shown_terms_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<grpc::Server> server_;
};

class MovedCoordinatorTest : public testing::Test {
 protected:
  MovedCoordinatorTest() : folder_(files_.path() + "/identity") {
    const PrivateKey key = folder_.LoadOrMakeKey().value();
    const auto own = authority_.IssueNode(NodeName("n1"), key.SigningRequest().value(), absl::Now(), absl::Hours(1));
    EXPECT_TRUE(folder_.SaveCertificate(own->ToPem()).ok() && folder_.SaveAuthorities(authority_.certificate().ToPem()).ok());
    known_.emplace(KnownTerm::Load(folder_).value());
  }
  // It has met the coordinator of term 2.
  void KnowTheSecond() {
    const std::string request = PrivateKey::Make()->SigningRequest().value();
    const auto shown = authority_.IssueCoordinator({2, kOtherId}, request, absl::Now(), absl::Hours(1));
    ASSERT_TRUE(known_->Follow(*shown).ok());
    known_proof_ = shown->ToPem();
  }
  std::unique_ptr<Session> Dial(std::vector<std::string> addresses) {
    SessionConfig config;
    config.coordinators = std::move(addresses);
    config.first_pause = absl::Milliseconds(10);
    config.longest_pause = absl::Milliseconds(100);
    config.credentials = [this](std::shared_ptr<ShownCertificate> shown) {
      return TlsNodeCredentials(folder_.Load().value(), [shown](const std::vector<Certificate>& chain) {
        shown->Set(chain.front());
        return absl::OkStatus();
      });
    };
    config.follow = [this](const Certificate& shown) { return known_->Follow(shown); };
    Session::Handler handler;
    handler.hello = [this] {
      NodeDescription node;
      node.name = NodeName("n1");
      node.term_certificate = known_->Proof();
      return node;
    };
    handler.on_command = [](const CoordinatorCommand&) {};
    handler.on_connected = [this](const StoreMark&, const std::string&, const std::string& address, const ChannelOpener&) {
      absl::MutexLock lock(&mutex_);
      welcomed_by_.push_back(address);
    };
    handler.on_disconnected = [](const std::string&) {};
    handler.on_refused = [](const absl::Status& status) { ADD_FAILURE() << status; };
    return std::make_unique<Session>(config, handler, clock_, outbox_);
  }
  // The address of the newest session, when there were so many.
  std::string WaitForSessions(size_t count) {
    absl::MutexLock lock(&mutex_);
    const auto there = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return welcomed_by_.size() >= count; };
    return mutex_.AwaitWithTimeout(absl::Condition(&there), Patience(absl::Seconds(20))) ? welcomed_by_.back() : "nobody in time";
  }
  size_t sessions() const {
    absl::MutexLock lock(&mutex_);
    return welcomed_by_.size();
  }

  const CertificateAuthority authority_ = CertificateAuthority::Make(absl::Now()).value();
  const TempFolder files_;
  const IdentityFolder folder_;
  const SystemClock clock_;
  Outbox outbox_;
  std::string known_proof_;
  std::optional<KnownTerm> known_;  // of the session's thread while there is one
  mutable absl::Mutex mutex_;
  std::vector<std::string> welcomed_by_ ABSL_GUARDED_BY(mutex_);
};

TEST_F(MovedCoordinatorTest, AnotherAddressIsFoundAtOnceWhereOneIsDead) {
  const CoordinatorOfTerm there(authority_, {1, kOneId});
  const auto session = Dial({"127.0.0.1:1", "[2001:db8::1]:7073", there.address()});
  EXPECT_EQ(WaitForSessions(1), there.address());
}

TEST_F(MovedCoordinatorTest, AHigherTermWinsOverTheFirstAddress) {
  KnowTheSecond();
  const CoordinatorOfTerm old(authority_, {1, kOneId}), rival(authority_, {2, kOneId}), taken(authority_, {2, kOtherId});
  const auto session = Dial({old.address(), rival.address(), taken.address()});
  EXPECT_EQ(WaitForSessions(1), taken.address());
  EXPECT_EQ(sessions(), 1u) << "nobody else was obeyed";
  EXPECT_EQ(taken.shown_terms(), std::vector<std::string>{known_proof_});
}

TEST_F(MovedCoordinatorTest, TheOldOneAloneIsNotFollowed) {
  KnowTheSecond();
  const CoordinatorOfTerm old(authority_, {1, kOneId});
  const auto session = Dial({old.address()});
  ASSERT_TRUE(old.WaitForHellos(3)) << "it is tried again and again";
  EXPECT_EQ(old.shown_terms().back(), known_proof_) << "so that it ends";
  EXPECT_EQ(sessions(), 0u);
}

TEST_F(MovedCoordinatorTest, ANodeThatMetNobodyTakesTheHighestTermThatAnswers) {
  const CoordinatorOfTerm old(authority_, {1, kOneId}), taken(authority_, {2, kOtherId});
  const auto session = Dial({old.address(), taken.address()});
  EXPECT_EQ(WaitForSessions(1), taken.address());
  EXPECT_TRUE(old.shown_terms().empty());
}

TEST_F(MovedCoordinatorTest, WhenTheCoordinatorGoesAnotherIsTriedFirst) {
  CoordinatorOfTerm old(authority_, {1, kOneId}), other(authority_, {1, kOneId});
  const auto session = Dial({old.address(), other.address()});
  ASSERT_EQ(WaitForSessions(1), old.address());
  old.Stop();
  EXPECT_EQ(WaitForSessions(2), other.address());
}

}  // namespace
}  // namespace motley::worker
