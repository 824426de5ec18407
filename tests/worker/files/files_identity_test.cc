#include "worker/files/files_identity.h"

#include <gtest/gtest.h>

#include "common/tls/certificate.h"
#include "common/tls/private_key.h"

namespace motley::worker {
namespace {

TEST(FilesIdentityTest, IsAKeyAndItsCertificateAndNoOther) {
  const absl::Time now = absl::FromUnixSeconds(1'800'000'000);
  const FilesIdentity one = MakeFilesIdentity(now).value(), other = MakeFilesIdentity(now).value();
  const std::vector<Certificate> shown = Certificate::FromPem(one.certificate).value();
  ASSERT_EQ(shown.size(), 1u);
  EXPECT_EQ(shown.front().Hash(), one.digest);
  EXPECT_EQ(shown.front().PublicHash(), PrivateKey::FromPem(one.key)->PublicHash());
  EXPECT_LT(shown.front().not_before(), now);
  EXPECT_GT(shown.front().not_after(), now);
  EXPECT_NE(one.digest, other.digest);
}

}  // namespace
}  // namespace motley::worker
