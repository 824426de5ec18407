// A valid program's text, what breaks it, and what Validate says of that.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <ostream>
#include <string>

#include "common/program/program.h"
#include "tests/common/program/program_texts.h"

namespace motley {

struct Broken {
  const char* name;
  const char* base;
  std::map<std::string, std::string> edits;  // as of Edited
  std::string appended;
  const char* message;  // a part of it
};

inline void PrintTo(const Broken& broken, std::ostream* out) { *out << broken.name; }
inline std::string NameOfBroken(const testing::TestParamInfo<Broken>& info) { return info.param.name; }

inline void ExpectRefused(const Broken& broken) {
  const auto program = ParseProgram(Edited(broken.base, broken.edits, broken.appended));
  ASSERT_TRUE(program.ok()) << program.status();
  const absl::Status status = Validate(*program);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("program of rank "));
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr(broken.message));
}

}  // namespace motley
