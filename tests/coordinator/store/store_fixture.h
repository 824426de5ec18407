// A state folder for one test, gone afterwards.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <memory>
#include <string>

#include "coordinator/store/records.h"
#include "coordinator/store/row.h"
#include "coordinator/store/sqlite_store.h"

namespace motley::coordinator {

class StoreTest : public testing::Test {
 protected:
  explicit StoreTest(const std::filesystem::path& parent = std::filesystem::temp_directory_path()) {
    std::string pattern = (parent / "motley-store-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
  }
  ~StoreTest() override { std::filesystem::remove_all(folder_); }
  std::string Db() const { return folder_ + "/coordinator.db"; }
  std::unique_ptr<SqliteStore> Open() {
    auto store = SqliteStore::Open(folder_);
    EXPECT_TRUE(store.ok()) << store.status();
    return store.ok() ? *std::move(store) : nullptr;
  }
  // As that version of the schema wrote it: without the columns that came later.
  static Row RowOfVersion(int64_t version, const JobRecord& job) {
    Row row = ToRow(job);
    const auto& columns = Spec(TableId::kJobs).columns;
    while (columns[row.size() - 1].since > version) row.pop_back();
    return row;
  }
  std::string folder_;
};

}  // namespace motley::coordinator
