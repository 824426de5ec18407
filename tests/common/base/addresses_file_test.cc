#include "common/base/addresses_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/common/base/temp_folder.h"

namespace motley {
namespace {

TEST(AddressesFile, SaysWhoTookWhichAddresses) {
  const TempFolder folder;
  const std::string path = folder / "addresses.json";
  ASSERT_TRUE(WriteAddressesFile(path, {{"people", "127.0.0.1:41"}, {"socket", ""}, {"metrics", "[::1]:42"}}).ok());
  EXPECT_EQ(nlohmann::json::parse(TempFolder::Read(path)),
            nlohmann::json({{"pid", getpid()}, {"people", "127.0.0.1:41"}, {"metrics", "[::1]:42"}}));
}

TEST(AddressesFile, ReplacesAnEarlierOneAndLeavesNothingElse) {
  const TempFolder folder;
  const std::string path = folder.Write("addresses.json", R"({"pid":1,"people":"127.0.0.1:1"})");
  ASSERT_TRUE(WriteAddressesFile(path, {{"people", "127.0.0.1:2"}}).ok());
  EXPECT_EQ(nlohmann::json::parse(TempFolder::Read(path))["people"], "127.0.0.1:2");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

TEST(AddressesFile, APathWithWrongBytesStaysReadable) {
  const TempFolder folder;
  const std::string path = folder / "addresses.json";
  ASSERT_TRUE(WriteAddressesFile(path, {{"socket", "unix:/tmp/\xff.sock"}}).ok());
  EXPECT_EQ(nlohmann::json::parse(TempFolder::Read(path))["socket"], "unix:/tmp/\\xff.sock");
}

TEST(AddressesFile, AnErrorNamesThePathAndLeavesNothing) {
  const TempFolder folder;
  EXPECT_EQ(WriteAddressesFile(folder / "nowhere/addresses.json", {}).code(), absl::StatusCode::kNotFound);
  std::filesystem::create_directory(folder / "taken");
  const absl::Status status = WriteAddressesFile(folder / "taken", {});
  EXPECT_FALSE(status.ok());
  EXPECT_NE(status.message().find(folder / "taken"), std::string::npos) << status;
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

}  // namespace
}  // namespace motley
