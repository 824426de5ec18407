// Where a job's data is read: on the nodes, or here.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "common/job/job_input.h"
#include "nlohmann/json.hpp"
#include "tests/common/base/temp_folder.h"
#include "tests/coordinator/client/fake_motley.h"

namespace motley::client {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

class OwnInputsTest : public testing::Test {
 protected:
  OwnInputsTest() { fake_.knows_paths = true; }
  Ran Submit(const std::string& data, const std::string& checkpoint = "") {
    const std::string file =
        folder_.Write("job.toml", "[training]\nsteps = 3\n[data]\npath = \"" + data + "\"\n[checkpoint]\n" + checkpoint);
    return Motley(fake_, {"submit", file, "--id", "j"});
  }
  const TempFolder folder_;
  FakeMotley fake_;
  const std::string text_ = folder_.Write("words.txt", "In the beginning");
};

TEST_F(OwnInputsTest, WhatAllNodesHaveIsReadThere) {
  fake_.path_on_nodes = {{"a", v1::SAMPLED_SAME}, {"b", v1::SAMPLED_SAME}};
  EXPECT_EQ(Submit("words.txt").code, 0);
  EXPECT_EQ(fake_.submitted.back().spec().data().path(), text_);
  ASSERT_EQ(fake_.looked_at.size(), 1u);
  EXPECT_EQ(fake_.looked_at[0].path(), text_);
  EXPECT_EQ(fake_.looked_at[0].sample().bytes(), 16);
  EXPECT_EQ(fake_.looked_at[0].sample().blocks_size(), 8);
}

TEST_F(OwnInputsTest, WhatANodeLacksIsSent) {
  fake_.path_on_nodes = {{"a", v1::SAMPLED_SAME}, {"b", v1::SAMPLED_ABSENT}};
  const Ran ran = Submit("words.txt");
  EXPECT_THAT(ran.err, HasSubstr("data.path: " + text_ + " is not on node b: it comes from here and from node a"));
  ASSERT_EQ(fake_.submitted.size(), 1u);
  const auto input = ParseInput(fake_.submitted[0].spec().data().path());
  ASSERT_TRUE(input);
  EXPECT_EQ(input->name, "words.txt");
}

TEST_F(OwnInputsTest, OtherContentsAreNamed) {
  fake_.path_on_nodes = {{"a", v1::SAMPLED_OTHER}, {"b", v1::SAMPLED_ABSENT}};
  const Ran ran = Submit("words.txt");
  EXPECT_EQ(ran.code, 65);
  EXPECT_THAT(ran.err, HasSubstr("data.path: " + text_ + " is here, and with other contents on node a; give here:" + text_ +
                                 " for this machine's, or nodes:" + text_ + " for theirs"));
  EXPECT_TRUE(fake_.submitted.empty());
  EXPECT_EQ(Submit("nodes:words.txt").code, 0);
  EXPECT_EQ(fake_.submitted.back().spec().data().path(), text_);
  EXPECT_EQ(fake_.looked_at.size(), 1u) << "nobody is asked who has it";
}

// A command that is given again for a job goes on with what the job reads, whatever the nodes say by then.
TEST_F(OwnInputsTest, AJobThatIsKnownKeepsItsInput) {
  fake_.path_on_nodes = {{"a", v1::SAMPLED_ABSENT}};
  Submit("words.txt");
  ASSERT_EQ(fake_.submitted.size(), 1u);
  const std::string first = fake_.submitted[0].spec().data().path();
  ASSERT_TRUE(ParseInput(first));
  fake_.path_on_nodes.clear();
  Submit("words.txt");
  ASSERT_EQ(fake_.submitted.size(), 2u);
  EXPECT_EQ(fake_.submitted[1].spec().data().path(), first);
}

// What is not here, where no node is, where none says anything, and of an older coordinator.
TEST_F(OwnInputsTest, ElseItIsTheNodes) {
  EXPECT_EQ(Submit("/nowhere/words.txt").code, 0);
  EXPECT_TRUE(fake_.looked_at.empty());
  EXPECT_EQ(Submit("words.txt").code, 0);
  EXPECT_EQ(fake_.submitted.back().spec().data().path(), text_);
  fake_.path_on_nodes = {{"a", v1::SAMPLED_UNSPECIFIED}};
  EXPECT_EQ(Submit("words.txt").code, 0);
  EXPECT_EQ(fake_.submitted.back().spec().data().path(), text_);
  fake_.knows_paths = false;
  fake_.path_on_nodes = {{"a", v1::SAMPLED_ABSENT}};
  EXPECT_EQ(Submit("words.txt").code, 0);
  EXPECT_EQ(fake_.submitted.back().spec().data().path(), text_);
}

TEST_F(OwnInputsTest, OfAFolderWithoutWeightsNothingIsSent) {
  folder_.Write("other/readme.txt", "nothing");
  const Ran ran = Submit("nodes:words.txt", "initial = \"here:" + folder_ / "other" + "\"\n");
  EXPECT_EQ(ran.code, 65);
  EXPECT_THAT(ran.err,
              HasSubstr("checkpoint.initial: " + folder_ / "other" + " holds no weights as HuggingFace's libraries write them"));
}

TEST_F(OwnInputsTest, FilesAreListed) {
  v1::NodeFiles& a = *fake_.listing.add_nodes();
  a.set_node("a");
  v1::FilesOnNode& safe = *a.add_files();
  safe.mutable_listed()->set_job_id("words");
  safe.mutable_listed()->set_name("step-00000040-gen-3");
  safe.mutable_listed()->set_bytes(1 << 20);
  safe.add_jobs("words");
  safe.set_safe(true);
  v1::NodeFiles& b = *fake_.listing.add_nodes() = a;
  b.set_node("b");
  v1::FilesOnNode& left = *b.add_files();
  left.mutable_listed()->set_job_id("old");
  left.mutable_listed()->set_name("tb");
  v1::FilesOnNode& input = *b.add_files();
  input.mutable_listed()->set_name("words.txt");
  input.mutable_listed()->set_input(std::string(64, 'a'));
  input.add_jobs("words");
  fake_.listing.add_nodes()->set_node("c");
  fake_.listing.mutable_nodes(2)->set_error("it did not say in time what lies there");
  v1::UnwantedOnNode& unwanted = *fake_.listing.add_unwanted();
  unwanted.set_node("d");
  unwanted.set_job_id("older");
  const Ran ran = Motley(fake_, {"files"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  for (const char* part : {"2.0 MiB", "a, b", "safe", "motley delete old --files --uid", "words.txt", "input",
                           "node c: it did not say in time", "files of deleted job older go from node d"}) {
    EXPECT_THAT(ran.out, HasSubstr(part));
  }
  const json files = json::parse(Motley(fake_, {"files", "words", "-o", "json"}).out);
  EXPECT_EQ(files["nodes"][1]["files"][1]["job_id"], "old");
  EXPECT_EQ(files["unwanted"][0]["node"], "d");
}

}  // namespace
}  // namespace motley::client
