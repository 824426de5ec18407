#include "common/data/known_parts.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/sha256.h"

namespace motley {
namespace {

const std::string kDigest = Sha256Hex("a part");

class KnownPartsTest : public testing::Test {
 protected:
  ~KnownPartsTest() override { ::close(fd_); }
  int64_t Bytes() const {
    struct stat found;
    EXPECT_EQ(::fstat(fd_, &found), 0);
    return found.st_size;
  }
  static FilePart Part(int64_t number) { return {{1, 2, 3, 4, 5}, 6, number}; }
  const int fd_ = ::memfd_create("known-parts-test", MFD_CLOEXEC);
};

TEST_F(KnownPartsTest, TheNextProcessKnowsThem) {
  KnownParts first(fd_);
  EXPECT_FALSE(first.Has(Part(0), kDigest));
  first.Add(Part(0), kDigest);
  EXPECT_TRUE(first.Has(Part(0), kDigest));
  KnownParts second(fd_);
  second.Add(Part(KnownParts::kWholeFile), Sha256Hex("whole"));
  const KnownParts third(fd_);
  EXPECT_TRUE(third.Has(Part(0), kDigest));
  EXPECT_TRUE(third.Has(Part(KnownParts::kWholeFile), Sha256Hex("whole")));
  EXPECT_FALSE(third.Has(Part(1), kDigest));
  EXPECT_FALSE(third.Has(Part(0), Sha256Hex("whole"))) << "another folder's tokens.json";
}

TEST_F(KnownPartsTest, WhatWasAlteredInWhateverWayIsAnother) {
  KnownParts parts(fd_);
  parts.Add(Part(0), kDigest);
  for (int field = 0; field < 6; ++field) {
    FilePart other = Part(0);
    if (field == 0) ++other.file.device;
    if (field == 1) ++other.file.number;
    if (field == 2) ++other.file.bytes;
    if (field == 3) ++other.file.seconds;
    if (field == 4) ++other.file.nanoseconds;
    if (field == 5) ++other.altered_at;
    EXPECT_FALSE(parts.Has(other, kDigest)) << field;
    EXPECT_FALSE(KnownParts(fd_).Has(other, kDigest)) << field;
  }
}

TEST_F(KnownPartsTest, AloneAProcessKeepsItsOwn) {
  KnownParts parts;
  parts.Add(Part(0), kDigest);
  EXPECT_TRUE(parts.Has(Part(0), kDigest));
  EXPECT_FALSE(KnownParts().Has(Part(0), kDigest));
  parts.Add(Part(1), "no digest");
  EXPECT_FALSE(parts.Has(Part(1), "no digest"));
}

TEST_F(KnownPartsTest, AProcessThatWasKilledInTheMiddleCostsNothingButItsOwn) {
  KnownParts(fd_).Add(Part(0), kDigest);
  const int64_t one = Bytes();
  ASSERT_EQ(::ftruncate(fd_, one + 7), 0);
  KnownParts(fd_).Add(Part(1), kDigest);
  EXPECT_EQ(Bytes(), 2 * one);
  EXPECT_TRUE(KnownParts(fd_).Has(Part(0), kDigest));
  EXPECT_TRUE(KnownParts(fd_).Has(Part(1), kDigest));
}

TEST_F(KnownPartsTest, ItsMemoryHasABound) {
  KnownParts parts(fd_);
  parts.Add(Part(0), kDigest);
  const int64_t one = Bytes();
  ASSERT_EQ(::ftruncate(fd_, KnownParts::kMost * one), 0);
  parts.Add(Part(1), kDigest);
  EXPECT_EQ(Bytes(), one);
  EXPECT_FALSE(KnownParts(fd_).Has(Part(0), kDigest));
  EXPECT_TRUE(KnownParts(fd_).Has(Part(1), kDigest));
}

}  // namespace
}  // namespace motley
