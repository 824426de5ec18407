// What submit sends, by a coordinator that plays the node that reads it.
#include "coordinator/client/send_input.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <map>

#include "common/checkpoint/block_parts.h"
#include "tests/common/base/temp_folder.h"
#include "tests/coordinator/client/fake_motley.h"

namespace motley::client {
namespace {

using ::testing::HasSubstr;

class ReadingMotley : public FakeMotley {
 public:
  using Stream = grpc::ServerReaderWriter<v1::CarryMessage, v1::CarryMessage>;

  grpc::Status Carry(grpc::ServerContext*, Stream* stream) override {
    v1::CarryMessage message;
    if (!stream->Read(&message) || !message.has_begin()) return {grpc::StatusCode::INVALID_ARGUMENT, "no begin"};
    begun.push_back(message.begin());
    if (on_begin) {
      if (const grpc::Status refused = on_begin(message.begin()); !refused.ok()) return refused;
    }
    message.mutable_begun()->set_node(node_of ? node_of(begun.back()) : "a");
    stream->Write(message);
    if (!Read(*stream, "", {0})) return {grpc::StatusCode::UNAVAILABLE, "it is gone"};
    const auto list = InputListFromJson(got.at({"", 0}), begun.back().input());
    if (!list.ok()) return {grpc::StatusCode::DATA_LOSS, std::string(list.status().message())};
    for (const CheckpointFile& file : list->files) {
      for (int64_t block = 0; block < static_cast<int64_t>(file.blocks.size()); ++block) {
        if (got.contains({file.name, block})) continue;
        if (breaks_after-- == 0) return {grpc::StatusCode::UNAVAILABLE, "it is gone"};
        if (!Read(*stream, file.name, {block})) return {grpc::StatusCode::UNAVAILABLE, "it is gone"};
      }
    }
    return end;
  }

  std::function<grpc::Status(const v1::CarryBegin&)> on_begin;
  std::function<std::string(const v1::CarryBegin&)> node_of;
  std::vector<v1::CarryBegin> begun;
  std::map<std::pair<std::string, int64_t>, std::string> got;
  int blocks_read = 0, breaks_after = -1;
  grpc::Status end;

 private:
  bool Read(Stream& stream, const std::string& file, const std::vector<int64_t>& blocks) {
    v1::CarryMessage message;
    message.mutable_read()->set_file(file);
    message.mutable_read()->mutable_blocks()->Add(blocks.begin(), blocks.end());
    stream.Write(message);
    BlockParts parts(blocks, file.empty() ? kMostInputListBytes : kCheckpointBlockBytes,
                     [&](int64_t block, std::string_view bytes) {
                       got[{file, block}] = std::string(bytes);
                       blocks_read += !file.empty();
                       return absl::OkStatus();
                     });
    while (stream.Read(&message)) {
      if (message.has_answered()) return parts.Finish().ok();
      if (!parts.Add(message.part().block(), message.part().bytes()).ok()) return false;
    }
    return false;
  }
};

class SendInputTest : public ::testing::Test {
 protected:
  SendInputTest() {
    laptop_.Write("words/a.txt", std::string(3 * static_cast<size_t>(kCheckpointBlockBytes) + 9, 'a'));
    laptop_.Write("words/b/c.txt", "c");
    laptop_.Write("words/empty.txt", "");
  }
  absl::Status Send(absl::Duration patience = absl::ZeroDuration()) {
    const InputList list = ListInput(laptop_ / "words", [](int64_t, int64_t) { return true; }).value();
    if (before_) before_();
    auto connection = Connection::Open(fake_.address(), {});
    if (!connection.ok()) return connection.status();
    const Sending sending = {.progress = [&](const SentBytes& bytes) { told_ = bytes; },
                             .say = [&](const std::string& text) { said_ = text; },
                             .pause = [](absl::Duration) {},
                             .patience = patience};
    return SendInput(*connection, "job", list, laptop_ / "words", sending);
  }

  const TempFolder laptop_;
  ReadingMotley fake_;
  std::function<void()> before_;
  SentBytes told_;
  std::string said_;
};

TEST_F(SendInputTest, GivesWhatIsRead) {
  ASSERT_TRUE(Send().ok());
  ASSERT_EQ(fake_.begun.size(), 1u);
  EXPECT_EQ(fake_.begun[0].job_id(), "job");
  EXPECT_EQ(fake_.blocks_read, 5);
  EXPECT_EQ((fake_.got.at({"words/a.txt", 3})), "aaaaaaaaa");
  EXPECT_EQ((fake_.got.at({"words/b/c.txt", 0})), "c");
  EXPECT_EQ(told_.node, "a");
  EXPECT_GT(told_.all, 3 * kCheckpointBlockBytes);
}

TEST_F(SendInputTest, WhatIsThereIsNotSent) {
  fake_.on_begin = [](const v1::CarryBegin&) { return grpc::Status(grpc::StatusCode::ALREADY_EXISTS, "node a has it"); };
  EXPECT_TRUE(Send().ok());
  EXPECT_EQ(fake_.blocks_read, 0);
}

// The node, or the coordinator, goes away: what it has is not sent again.
TEST_F(SendInputTest, GoesOnWhenItBreaks) {
  for (int blocks = 0; blocks < 5; ++blocks) {
    fake_.got.clear();
    fake_.blocks_read = 0;
    fake_.breaks_after = blocks;
    ASSERT_TRUE(Send(absl::InfiniteDuration()).ok()) << blocks;
    EXPECT_EQ(fake_.blocks_read, 5) << blocks;
    EXPECT_THAT(said_, HasSubstr("it is gone; trying again"));
  }
  fake_.got.clear();
  fake_.breaks_after = 1;
  EXPECT_TRUE(absl::IsUnavailable(Send())) << "without patience";
}

TEST_F(SendInputTest, ANodeThatCannotTakeItIsNotAskedAgain) {
  fake_.node_of = [](const v1::CarryBegin& begin) { return begin.not_from_size() == 0 ? "a" : "b"; };
  fake_.end = grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "there is no room for it here");
  fake_.on_begin = [&](const v1::CarryBegin& begin) {
    if (begin.not_from_size() == 1) fake_.end = grpc::Status::OK;
    return grpc::Status::OK;
  };
  ASSERT_TRUE(Send().ok());
  ASSERT_EQ(fake_.begun.size(), 2u);
  EXPECT_EQ(fake_.begun[1].not_from(0), "a");
  fake_.end = grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "there is no room for it here");
  fake_.on_begin = [](const v1::CarryBegin& begin) {
    return begin.not_from_size() == 0 ? grpc::Status::OK
                                      : grpc::Status(grpc::StatusCode::NOT_FOUND, "no other node is here that can take it");
  };
  const absl::Status nobody = Send();
  EXPECT_TRUE(absl::IsNotFound(nobody)) << nobody;
  EXPECT_THAT(std::string(nobody.message()), HasSubstr("node a: there is no room for it here"));
}

TEST_F(SendInputTest, WhatChangedSinceIsNamed) {
  before_ = [&] { std::ofstream(laptop_ / "words/a.txt", std::ios::in | std::ios::out) << "b"; };
  const absl::Status changed = Send();
  EXPECT_TRUE(absl::IsAborted(changed)) << changed;
  EXPECT_THAT(std::string(changed.message()), HasSubstr("words/a.txt changed while it was sent"));
  before_ = [&] { std::filesystem::resize_file(laptop_ / "words/a.txt", 10); };
  EXPECT_TRUE(absl::IsAborted(Send()));
  laptop_.Write("words/a.txt", std::string(3 * static_cast<size_t>(kCheckpointBlockBytes) + 9, 'a'));
  before_ = [&] { std::filesystem::remove(laptop_ / "words/b/c.txt"); };
  EXPECT_TRUE(absl::IsNotFound(Send()));
}

// By the command line.
TEST_F(SendInputTest, SubmitSendsWhatTheJobNames) {
  laptop_.Write("job.toml", "[data]\npath = \"here:words\"\n[training]\nsteps = 1\nseq_len = 16\nglobal_batch_size = 2\n");
  const Ran ran = Motley(fake_, {"submit", laptop_ / "job.toml", "--id", "job"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("words, 12.0 MiB, is on the cluster"));
  ASSERT_EQ(fake_.submitted.size(), 1u);
  const std::string path = fake_.submitted[0].spec().data().path();
  EXPECT_EQ(path.substr(0, 6), "input:");
  EXPECT_EQ(path.substr(path.size() - 6), "/words");
  EXPECT_EQ(fake_.begun.at(0).input(), path.substr(6, 64));
  fake_.end = grpc::Status(grpc::StatusCode::PERMISSION_DENIED, "job is ann's job");
  const Ran refused = Motley(fake_, {"submit", laptop_ / "job.toml", "--id", "job"});
  EXPECT_NE(refused.code, 0);
  EXPECT_THAT(refused.err, HasSubstr("job job waits for words; the same command with --id job goes on"));
  laptop_.Write("tokens.bin", "abcd");
  laptop_.Write("tokens.idx", "efgh");
  const Ran pair = Motley(fake_, {"submit", laptop_ / "job.toml", "--set", "data.path=here:" + (laptop_ / "tokens.bin")});
  EXPECT_EQ(pair.code, 65);
  EXPECT_THAT(pair.err, HasSubstr("tokens.bin goes with "));
  laptop_.Write("wrong.toml", "[data]\npath = \"here:nowhere\"\n");
  const Ran nowhere = Motley(fake_, {"submit", laptop_ / "wrong.toml", "--id", "job"});
  EXPECT_EQ(nowhere.code, 66);
  EXPECT_THAT(nowhere.err, HasSubstr("data.path: "));
}

}  // namespace
}  // namespace motley::client
