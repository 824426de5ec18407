#include "common/inputs/input_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/sha256.h"
#include "nlohmann/json.hpp"
#include "tests/common/base/temp_folder.h"

namespace motley {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

absl::StatusOr<InputList> List(const std::string& path) {
  return ListInput(path, [](int64_t, int64_t) { return true; });
}

std::vector<std::string> Names(const InputList& list) {
  std::vector<std::string> names;
  for (const CheckpointFile& file : list.files) names.push_back(file.name);
  return names;
}

class InputListTest : public ::testing::Test {
 protected:
  void Refuses(const std::string& path, absl::StatusCode code, const std::string& part) {
    const absl::Status refused = List(path).status();
    EXPECT_EQ(refused.code(), code) << refused;
    EXPECT_THAT(std::string(refused.message()), HasSubstr(part));
  }
  const TempFolder root_;
};

TEST_F(InputListTest, OfAFile) {
  const std::string bytes(static_cast<size_t>(kCheckpointBlockBytes) + 5, 'x');
  root_.Write("words.txt", bytes);
  int64_t read = 0, all = 0;
  const auto list = ListInput(root_ / "words.txt", [&](int64_t now, int64_t of) {
    read = now, all = of;
    return true;
  });
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_EQ(list->name, "words.txt");
  ASSERT_EQ(Names(*list), std::vector<std::string>{"words.txt"});
  EXPECT_EQ(list->bytes(), static_cast<int64_t>(bytes.size()));
  EXPECT_EQ(read, list->bytes());
  EXPECT_EQ(all, list->bytes());
  ASSERT_EQ(list->files[0].blocks.size(), 2u);
  EXPECT_EQ(list->files[0].blocks[0], Sha256Hex(bytes.substr(0, static_cast<size_t>(kCheckpointBlockBytes))));
  EXPECT_EQ(list->files[0].blocks[1], Sha256Hex("xxxxx"));
}

// Where it lies and when it was written is nothing of it; its name is.
TEST_F(InputListTest, IsKnownByWhatItHolds) {
  root_.Write("a/words/part/x.txt", "x");
  root_.Write("a/words/b.txt", "");
  root_.Write("b/words/b.txt", "");
  root_.Write("b/words/part/x.txt", "x");
  const auto a = List(root_ / "a/words"), b = List(root_ / "b/words/");
  ASSERT_TRUE(a.ok() && b.ok()) << a.status() << b.status();
  EXPECT_EQ(Names(*a), (std::vector<std::string>{"words/b.txt", "words/part/x.txt"}));
  EXPECT_EQ(InputOf(*a), InputOf(*b));
  const std::string text = InputListToJson(*a);
  const auto read = InputListFromJson(text, InputOf(*a).id);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(InputListToJson(*read), text);
  root_.Write("b/words/part/x.txt", "y");
  EXPECT_NE(InputOf(*List(root_ / "b/words")).id, InputOf(*a).id);
  fs::create_directory_symlink(root_ / "a/words", root_ / "linked");
  EXPECT_EQ(List(root_ / "linked")->name, "linked") << "what people name may be a link";
  EXPECT_EQ(List(root_ / "linked")->bytes(), a->bytes());
}

TEST_F(InputListTest, WhatIsNotSentIsNamed) {
  Refuses(root_ / "none", absl::StatusCode::kNotFound, "none");
  Refuses("/", absl::StatusCode::kInvalidArgument, "names no file or folder");
  fs::create_directory(root_ / "empty");
  Refuses(root_ / "empty", absl::StatusCode::kInvalidArgument, "holds no file");
  root_.Write("link/a.txt", "a");
  fs::create_symlink("a.txt", root_ / "link/b.txt");
  Refuses(root_ / "link", absl::StatusCode::kInvalidArgument, "link/b.txt is a symbolic link");
  root_.Write("pipe/a.txt", "a");
  ASSERT_EQ(mkfifo((root_ / "pipe/p").c_str(), 0600), 0);
  Refuses(root_ / "pipe", absl::StatusCode::kInvalidArgument, "pipe/p is a pipe");
  root_.Write("bytes/\xff.txt", "a");
  Refuses(root_ / "bytes", absl::StatusCode::kInvalidArgument, "no UTF-8");
  root_.Write("lines/a\nb.txt", "a");
  Refuses(root_ / "lines", absl::StatusCode::kInvalidArgument, "rename it");
}

TEST_F(InputListTest, WhatChangesMeanwhileIsNamed) {
  root_.Write("words.txt", "some words");
  const auto list = ListInput(root_ / "words.txt", [&](int64_t, int64_t) {
    std::ofstream(root_ / "words.txt", std::ios::app) << "more";
    return true;
  });
  EXPECT_TRUE(absl::IsAborted(list.status())) << list.status();
  EXPECT_TRUE(absl::IsCancelled(ListInput(root_ / "words.txt", [](int64_t, int64_t) { return false; }).status()));
}

// Whoever gives it: no path leads out of it, and every block has a digest.
TEST_F(InputListTest, AListThatLiesIsRefused) {
  root_.Write("words/a.txt", "a");
  root_.Write("words/b.txt", "b");
  const std::string good = InputListToJson(*List(root_ / "words"));
  const auto changed = [&](const std::function<void(nlohmann::json&)>& change) {
    nlohmann::json json = nlohmann::json::parse(good);
    change(json);
    const std::string text = json.dump();
    return InputListFromJson(text, Sha256Hex(text)).status();
  };
  EXPECT_TRUE(changed([](nlohmann::json&) {}).ok());
  EXPECT_TRUE(absl::IsDataLoss(InputListFromJson(good, std::string(64, '0')).status())) << "another's";
  for (const char* name :
       {"../a.txt", "/etc/passwd", "words/../../a", "other/a.txt", "words", "", "words/", "words//a", "words/b.txt"}) {
    EXPECT_TRUE(absl::IsDataLoss(changed([&](nlohmann::json& json) { json["files"][0]["name"] = name; }))) << name;
  }
  EXPECT_TRUE(absl::IsDataLoss(changed([](nlohmann::json& json) { json["files"][0]["name"] = "words/b.txt/x"; })));
  EXPECT_TRUE(absl::IsDataLoss(changed([](nlohmann::json& json) { json["files"][0]["bytes"] = -1; })));
  EXPECT_TRUE(absl::IsDataLoss(changed([](nlohmann::json& json) { json["files"][0]["bytes"] = int64_t{1} << 40; })));
  EXPECT_TRUE(absl::IsDataLoss(changed([](nlohmann::json& json) { json["files"][0]["blocks_sha256"][0] = "x"; })));
  EXPECT_TRUE(absl::IsDataLoss(changed([](nlohmann::json& json) { json["files"] = nlohmann::json::array(); })));
  EXPECT_TRUE(absl::IsDataLoss(changed([](nlohmann::json& json) { json["name"] = ".."; })));
  EXPECT_TRUE(absl::IsDataLoss(changed([](nlohmann::json& json) { json.erase("files"); })));
  EXPECT_TRUE(absl::IsDataLoss(changed([](nlohmann::json& json) { json["version"] = 2; })));
}

// A download of the hub: links to blobs, and files that nobody trains from.
TEST_F(InputListTest, OfWeightsWhatIsOfThem) {
  root_.Write("blobs/1", "weights");
  root_.Write("model/config.json", "{}");
  root_.Write("model/tokenizer.json", "{}");
  root_.Write("model/pytorch_model.bin", "the same, twice");
  root_.Write("model/onnx/model.safetensors", "the same, thrice");
  root_.Write("model/additional_chat_templates/tool.jinja", "t");
  fs::create_symlink("../blobs/1", root_ / "model/model.safetensors");
  const auto list = ListInput(
      root_ / "model", [](int64_t, int64_t) { return true; }, ChoiceOfWeights());
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_THAT(Names(*list), ::testing::ElementsAre("model/additional_chat_templates/tool.jinja", "model/config.json",
                                                   "model/model.safetensors", "model/tokenizer.json"));
  EXPECT_EQ(list->files[2].bytes, 7);
  EXPECT_EQ(list->files[2].blocks, std::vector<std::string>{Sha256Hex("weights")});
}

}  // namespace
}  // namespace motley
