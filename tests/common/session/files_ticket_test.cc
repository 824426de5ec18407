#include "common/session/files_ticket.h"

#include <gtest/gtest.h>

#include <string>

namespace motley {
namespace {

const JobUid kUid(std::string(32, '1'));
const std::string kReader(64, 'a');

TEST(FilesTicket, LetsInWhoItIsForUntilItIsOver) {
  const FilesTicket ticket = MakeFilesTicket("secret", kReader, kUid, 1000);
  EXPECT_EQ(ticket.job_uid, kUid);
  EXPECT_TRUE(Admits("secret", ticket, kReader, 999));
  EXPECT_FALSE(Admits("secret", ticket, kReader, 1000));
  EXPECT_FALSE(Admits("secret", ticket, std::string(64, 'b'), 999)) << "shown by another";
  EXPECT_FALSE(Admits("another node's", ticket, kReader, 999));
}

TEST(FilesTicket, NothingOfItCanBeChanged) {
  const FilesTicket given = MakeFilesTicket("secret", kReader, kUid, 1000);
  FilesTicket ticket = given;
  ticket.expires_unix_ms = 5000;
  EXPECT_FALSE(Admits("secret", ticket, kReader, 999));
  ticket = given;
  ticket.job_uid = JobUid(std::string(32, '2'));
  EXPECT_FALSE(Admits("secret", ticket, kReader, 999));
  for (const std::string& proof : {std::string(), given.proof.substr(1), given.proof + "x"}) {
    ticket = given;
    ticket.proof = proof;
    EXPECT_FALSE(Admits("secret", ticket, kReader, 999));
  }
}

// A node that was told no secret yet lets nobody in, whatever somebody computes without one.
TEST(FilesTicket, WithoutASecretNobodyComesIn) {
  EXPECT_FALSE(Admits("", MakeFilesTicket("", kReader, kUid, 1000), kReader, 999));
}

}  // namespace
}  // namespace motley
