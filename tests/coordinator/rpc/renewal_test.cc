// Certificates are renewed by the session, and the authority changes under it.
#include <gmock/gmock.h>

#include "absl/synchronization/mutex.h"
#include "common/base/sha256.h"
#include "common/tls/join_token.h"
#include "tests/common/base/patience.h"
#include "tests/coordinator/rpc/members_fixture.h"

namespace motley::coordinator {
namespace {

using ::testing::HasSubstr;

class RenewalTest : public MembersTest {
 protected:
  // A worker that keeps what it is told of authorities and certificates.
  std::unique_ptr<FakeWorker> Listening(const std::string& node, const NodeIdentity& identity) {
    FakeWorker::Options options = As(identity);
    options.on_membership = [this](const v1::CoordinatorMessage& message) {
      absl::MutexLock lock(&mutex_);
      if (message.has_authorities()) authorities_ = message.authorities().authorities();
      if (message.has_renewal()) renewals_.push_back(message.renewal());
    };
    return MembersTest::Join(node, options);
  }
  static void Ask(FakeWorker& worker, const std::string& signing_request) {
    v1::WorkerMessage message;
    message.mutable_renewal_request()->set_signing_request(signing_request);
    worker.Send(message);
  }
  static void SayStored(FakeWorker& worker, const v1::Renewal& renewal) {
    v1::WorkerMessage message;
    message.mutable_renewal_request()->set_stored(Sha256Hex(renewal.certificate()));
    worker.Send(message);
  }
  v1::Renewal WaitForRenewal(size_t count) {
    absl::MutexLock lock(&mutex_);
    const auto there = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return renewals_.size() >= count; };
    EXPECT_TRUE(mutex_.AwaitWithTimeout(absl::Condition(&there), Patience(absl::Seconds(20))));
    return renewals_.empty() ? v1::Renewal() : renewals_.back();
  }
  size_t WaitForAuthorities(size_t count) {
    absl::MutexLock lock(&mutex_);
    const auto there = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      const auto certificates = Certificate::FromPem(authorities_);
      return certificates.ok() && certificates->size() == count;
    };
    EXPECT_TRUE(mutex_.AwaitWithTimeout(absl::Condition(&there), Patience(absl::Seconds(60))));
    const auto certificates = Certificate::FromPem(authorities_);
    return certificates.ok() ? certificates->size() : 0;
  }
  std::string authorities() {
    absl::MutexLock lock(&mutex_);
    return authorities_;
  }
  grpc::Status Rotate() {
    grpc::ClientContext context;
    v1::RotateAuthorityResponse response;
    return stub_->RotateAuthority(&context, {}, &response);
  }

 private:
  absl::Mutex mutex_;
  std::string authorities_ ABSL_GUARDED_BY(mutex_);
  std::vector<v1::Renewal> renewals_ ABSL_GUARDED_BY(mutex_);
};

TEST_F(RenewalTest, AMemberGetsANewCertificateForItsOwnKey) {
  const NodeIdentity n1 = Member("n1");
  auto worker = Listening("n1", n1);
  Ask(*worker, PrivateKey::FromPem(n1.key)->SigningRequest().value());
  const v1::Renewal renewal = WaitForRenewal(1);
  EXPECT_EQ(renewal.error(), "");
  EXPECT_TRUE(CheckIdentity({n1.key, renewal.certificate(), n1.authorities}, NodeName("n1"), absl::Now()).ok());
  auto again = MembersTest::Join("n1", As({n1.key, renewal.certificate(), n1.authorities}));
}

TEST_F(RenewalTest, NotForAnotherKey) {
  const NodeIdentity n1 = Member("n1");
  auto worker = Listening("n1", n1);
  Ask(*worker, PrivateKey::Make()->SigningRequest().value());
  EXPECT_THAT(WaitForRenewal(1).error(), HasSubstr("another key"));
  Ask(*worker, "no request");
  EXPECT_THAT(WaitForRenewal(2).error(), HasSubstr("signing request"));
}

TEST_F(RenewalTest, TheAuthorityChangesWhenAllHaveRenewed) {
  const NodeIdentity n1 = Member("n1"), away = Member("away");
  auto worker = Listening("n1", n1);
  EXPECT_EQ(WaitForAuthorities(1), 1u);
  ASSERT_TRUE(Rotate().ok());
  EXPECT_EQ(WaitForAuthorities(2), 2u);
  EXPECT_THAT(Rotate().error_message(), HasSubstr("not renewed yet: away, n1"));
  Ask(*worker, PrivateKey::FromPem(n1.key)->SigningRequest().value());
  const NodeIdentity renewed = {n1.key, WaitForRenewal(1).certificate(), authorities()};
  const auto both = Certificate::FromPem(renewed.authorities);
  EXPECT_TRUE(Certificate::FromPem(renewed.certificate)->front().IsSignedBy(both->back()));
  // The coordinator still shows itself by the old one, so who was away gets in, and a restart changes nothing.
  Start();
  auto late = MembersTest::Join("away", As(away));
  worker = Listening("n1", renewed);
  EXPECT_EQ(WaitForAuthorities(2), 2u);
  EXPECT_TRUE(Forget("away").ok()) << "who does not come back is left behind";
  EXPECT_EQ(WaitForAuthorities(1), 1u);
  EXPECT_EQ(authorities(), both->back().ToPem());
  auto again = MembersTest::Join("n1", As({n1.key, renewed.certificate, authorities()}));
}

TEST_F(RenewalTest, ACertificateCountsWhenTheMemberHasIt) {
  const NodeIdentity n1 = Member("n1");
  auto worker = Listening("n1", n1);
  ASSERT_TRUE(Rotate().ok());
  EXPECT_EQ(WaitForAuthorities(2), 2u);
  Ask(*worker, PrivateKey::FromPem(n1.key)->SigningRequest().value());
  const v1::Renewal renewal = WaitForRenewal(1);
  EXPECT_THAT(Rotate().error_message(), HasSubstr("not renewed yet: n1")) << "it was sent, and may be lost";
  v1::Renewal other = renewal;
  other.set_certificate("another one");
  SayStored(*worker, other);
  SayStored(*worker, renewal);
  EXPECT_EQ(WaitForAuthorities(1), 1u);
  auto again = MembersTest::Join("n1", As({n1.key, renewal.certificate(), authorities()}));
}

TEST_F(RenewalTest, WhoAsksWithoutPauseIsHeldBack) {
  const NodeIdentity n1 = Member("n1");
  auto worker = Listening("n1", n1);
  const std::string request = PrivateKey::FromPem(n1.key)->SigningRequest().value();
  Ask(*worker, request);
  EXPECT_EQ(WaitForRenewal(1).error(), "");
  Ask(*worker, request);
  EXPECT_THAT(WaitForRenewal(2).error(), HasSubstr("a moment ago"));
}

TEST_F(RenewalTest, WithoutMembersTheChangeIsSoonOver) {
  const std::string before = ParseJoinToken(Token())->authority;
  ASSERT_TRUE(Rotate().ok());
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + Patience(absl::Seconds(20))));
  v1::ListEventsRequest request;
  request.set_follow(true);
  const auto events = stub_->ListEvents(&context, request);
  v1::Event event;
  while (event.kind() != "authority_changed") ASSERT_TRUE(events->Read(&event));
  context.TryCancel();
  EXPECT_NE(ParseJoinToken(Token())->authority, before);
  EXPECT_TRUE(Rotate().ok());
}

}  // namespace
}  // namespace motley::coordinator
