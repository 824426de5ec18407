#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "common/checkpoint.h"
#include "tests/common/checkpoint_fixture.h"
#include "tests/common/temp_folder.h"

namespace motley {
namespace {

namespace fs = std::filesystem;

std::set<std::string> Names(const std::string& root) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(root)) names.insert(entry.path().filename().string());
  return names;
}

TEST(CheckpointPruneTest, KeepsTheNewestAndWhatIsNotOurs) {
  TempFolder root;
  for (const int64_t step : {20, 40, 60, 100000000})
    ASSERT_TRUE(WriteTestCheckpoint(root.path(), step, TinyModel(true), 0.5).ok());
  for (const char* name :
       {".tmp-step-00000080-epoch-2", ".tmp-step-00000080-epoch-2.replaced", ".tmp-step-00000080-epoch-3", "mine"}) {
    root.Write(std::string(name) + "/x", "x");
  }
  ASSERT_TRUE(PruneCheckpoints(root.path(), 2, 3, 100000000).ok());
  EXPECT_EQ(Names(root.path()), (std::set<std::string>{"step-00000060", "step-100000000", ".tmp-step-00000080-epoch-3", "mine"}));
}

TEST(CheckpointPruneTest, WhatDidNotVerifyDoesNotCountAmongTheNewest) {
  TempFolder root;
  for (const int64_t step : {20, 30, 40, 60, 80})
    ASSERT_TRUE(WriteTestCheckpoint(root.path(), step, TinyModel(true), 0.5).ok());
  ASSERT_TRUE(PruneCheckpoints(root.path(), 2, 3, 40).ok());
  EXPECT_EQ(Names(root.path()), (std::set<std::string>{"step-00000030", "step-00000040"}));
}

TEST(CheckpointPruneTest, ZeroKeepsAll) {
  TempFolder root;
  for (const int64_t step : {20, 40, 60}) ASSERT_TRUE(WriteTestCheckpoint(root.path(), step, TinyModel(true), 0.5).ok());
  ASSERT_TRUE(PruneCheckpoints(root.path(), 0, 3, 20).ok());
  EXPECT_EQ(Names(root.path()).size(), 3u);
  EXPECT_EQ(PruneCheckpoints(root / "absent", 2, 3, 0).code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace motley
