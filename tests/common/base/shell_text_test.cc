#include "common/base/shell_text.h"

#include <gtest/gtest.h>

#include <string>

namespace motley {
namespace {

TEST(ShellTextTest, NothingIsExpanded) {
  EXPECT_EQ(ShellQuoted("/a b/$HOME/`id`"), "'/a b/$HOME/`id`'");
  EXPECT_EQ(ShellQuoted("it's"), "'it'\\''s'");
  EXPECT_EQ(ShellQuoted("a\nb"), "'a\\nb'") << "one line";
  EXPECT_EQ(ShellQuoted(std::string(300, 'x')).size(), 302u) << "all of it";
}

}  // namespace
}  // namespace motley
