#include "common/base/accounts.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"

namespace motley {
namespace {

TEST(Accounts, AreFoundByNameAndByNumber) {
  const auto root = AccountNamed("root");
  ASSERT_TRUE(root.ok()) << root.status();
  EXPECT_EQ(root->uid, 0u);
  EXPECT_EQ(AccountOf(0)->name, "root");
  EXPECT_EQ(UidOfAccount("root").value(), 0u);
  EXPECT_TRUE(IsInGroup(*root, "root"));
  EXPECT_FALSE(IsInGroup(*root, "no such group"));
}

TEST(Accounts, ANumberNeedsNoAccount) {
  EXPECT_EQ(UidOfAccount("3999999999").value(), 3999999999u);
  EXPECT_TRUE(absl::IsNotFound(AccountOf(3999999999u).status()));
  for (const char* none : {"", "-1", "4294967295", "4294967296", "1001 ", "0x0"}) {
    EXPECT_TRUE(absl::IsNotFound(UidOfAccount(none).status())) << none;
  }
}

TEST(Accounts, OneThatIsNotThereIsNamed) {
  const absl::Status status = AccountNamed("alcie\n").status();
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_NE(status.message().find("alcie\\n"), std::string::npos) << status;
  EXPECT_TRUE(absl::IsNotFound(AccountNamed(std::string("root\0x", 6)).status()));
}

}  // namespace
}  // namespace motley
