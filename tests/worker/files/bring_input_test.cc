#include "worker/files/bring_input.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "tests/worker/files/giving_node.h"
#include "worker/files/file_blocks.h"
#include "worker/files/input_folder.h"

namespace motley::worker {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// "words", with a file of three blocks, one without a byte, and one in a folder.
class BringInputTest : public ::testing::Test {
 protected:
  BringInputTest() {
    std::string large;
    for (size_t i = 0; i < 2 * static_cast<size_t>(kCheckpointBlockBytes) + 1000; ++i)
      large += static_cast<char>(i * 31 + i / 4096);
    from_.Write("words/large.bin", large);
    from_.Write("words/empty.txt", "");
    from_.Write("words/part/small.txt", "small");
    list_ = ListInput(from_ / "words", [](int64_t, int64_t) { return true; }).value();
    input_ = InputOf(list_);
  }
  // From the folder that it was made of, counting.
  InputSource FromFolder() {
    InputSource source;
    source.progress = [this](int64_t bytes, int64_t here) { told_ = {bytes, here}; };
    source.stopped = [] { return false; };
    source.read = [this](const std::string& file, const std::vector<int64_t>& blocks, const InputSource::Take& take) {
      const std::string all = file.empty() ? InputListToJson(list_) : TempFolder::Read(from_ / file);
      for (const int64_t block : blocks) {
        if (left_ == 0) return absl::UnavailableError("it is gone");
        --left_;
        ++asked_[{file, block}];
        std::string bytes =
            file.empty() ? all : all.substr(static_cast<size_t>(block * kCheckpointBlockBytes), kCheckpointBlockBytes);
        if (lies_) bytes[0] ^= 1;
        MOTLEY_RETURN_IF_ERROR(take(block, bytes));
      }
      return absl::OkStatus();
    };
    return source;
  }
  absl::Status Bring() { return BringInput(to_.path(), input_.id, FromFolder(), {}); }
  void ExpectWhole(const std::string& local) const {
    for (const CheckpointFile& file : list_.files) {
      EXPECT_TRUE(TempFolder::Read(InputsFolder(local) + "/" + input_.id + "/" + file.name) ==
                  TempFolder::Read(from_ / file.name))
          << file.name;
    }
    EXPECT_THAT(WholeInputs(local, {input_.id, std::string(64, '0'), "../x"}), ElementsAre(input_.id));
    EXPECT_FALSE(fs::exists(PartOfInput(local, input_.id)));
  }

  const TempFolder from_, to_;
  InputList list_;
  JobInput input_;
  std::map<std::pair<std::string, int64_t>, int> asked_;
  std::pair<int64_t, int64_t> told_;
  int left_ = 1000;
  bool lies_ = false;
};

TEST_F(BringInputTest, IsWholeThen) {
  EXPECT_TRUE(WholeInputs(to_.path(), {input_.id}).empty());
  ASSERT_TRUE(Bring().ok());
  ExpectWhole(to_.path());
  EXPECT_EQ(told_, std::pair(list_.bytes(), list_.bytes()));
  EXPECT_EQ(LocalPathOf(to_.path(), input_), absl::StrCat(to_.path(), "/inputs/", input_.id, "/words"));
  asked_.clear();
  EXPECT_TRUE(Bring().ok());
  EXPECT_TRUE(asked_.empty()) << "what is whole is not asked for";
}

TEST_F(BringInputTest, WhatWasCutOffGoesOn) {
  for (int blocks = 0;; ++blocks) {
    left_ = 1;
    const absl::Status brought = Bring();
    if (brought.ok()) break;
    EXPECT_TRUE(absl::IsUnavailable(brought)) << brought;
    EXPECT_TRUE(WholeInputs(to_.path(), {input_.id}).empty());
    ASSERT_LT(blocks, 10);
  }
  ExpectWhole(to_.path());
  for (const auto& [block, times] : asked_) EXPECT_EQ(times, 1) << block.first << " " << block.second;
  EXPECT_EQ(asked_.size(), 5u) << "the list, three blocks and one";
}

TEST_F(BringInputTest, NothingElseIsTaken) {
  lies_ = true;
  EXPECT_TRUE(absl::IsDataLoss(Bring())) << "the list";
  lies_ = false;
  left_ = 1;
  EXPECT_FALSE(Bring().ok());
  left_ = 1000;
  lies_ = true;
  EXPECT_TRUE(absl::IsDataLoss(Bring())) << "a block";
  EXPECT_TRUE(absl::IsInvalidArgument(BringInput(to_.path(), "../x", FromFolder(), {})));
  InputSource stopped = FromFolder();
  stopped.stopped = [] { return true; };
  lies_ = false;
  EXPECT_TRUE(absl::IsCancelled(BringInput(to_.path(), input_.id, stopped, {})));
}

TEST_F(BringInputTest, OthersGoWhereRoomLacks) {
  const std::string old(64, '1'), kept(64, '2');
  for (const std::string& id : {old, kept}) {
    fs::create_directories(absl::StrCat(InputsFolder(to_.path()), "/", id));
    to_.Write("inputs/" + id + ".json", "{}");
  }
  const auto age = [&](const std::string& id) {
    const timespec hours_ago[2] = {{1000, 0}, {1000, 0}};
    ASSERT_EQ(utimensat(AT_FDCWD, InputListPath(to_.path(), id).c_str(), hours_ago, 0), 0);
  };
  const absl::Status none = MakeRoomForInput(to_.path(), int64_t{1} << 60, {kept});
  EXPECT_TRUE(absl::IsResourceExhausted(none)) << none;
  EXPECT_THAT(std::string(none.message()), HasSubstr("there is no room for it here"));
  EXPECT_THAT(WholeInputs(to_.path(), {old, kept}), ElementsAre(old, kept)) << "nothing goes in vain";
  to_.Write("inputs/" + old + "/large", std::string(8 << 20, 'x'));
  constexpr int64_t kFree = 1000, kMore = 4 << 20;
  EXPECT_FALSE(MakeRoomForInput(to_.path(), kFree, kMore, {kept}).ok()) << "it was wanted a moment ago";
  age(old), age(kept);
  NoteWanted(to_.path(), {old});
  EXPECT_FALSE(MakeRoomForInput(to_.path(), kFree, kMore, {kept}).ok()) << "it is wanted again";
  age(old);
  EXPECT_TRUE(MakeRoomForInput(to_.path(), kFree, kFree, {kept}).ok());
  EXPECT_THAT(WholeInputs(to_.path(), {old, kept}), ElementsAre(old, kept)) << "there is room";
  const absl::Status made = MakeRoomForInput(to_.path(), kFree, kMore, {kept});
  EXPECT_TRUE(made.ok()) << made;
  EXPECT_THAT(WholeInputs(to_.path(), {old, kept}), ElementsAre(kept));
}

TEST_F(BringInputTest, FilesAreOpenedBeneathIt) {
  ASSERT_TRUE(Bring().ok());
  EXPECT_TRUE(OpenInputFile(to_.path(), input_.id, "").ok());
  EXPECT_TRUE(OpenInputFile(to_.path(), input_.id, "words/part/small.txt").ok());
  EXPECT_TRUE(absl::IsNotFound(OpenInputFile(to_.path(), input_.id, "words/none").status()));
  EXPECT_TRUE(absl::IsNotFound(OpenInputFile(to_.path(), std::string(64, '0'), "").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(OpenInputFile(to_.path(), input_.id, "words/../../x").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(OpenInputFile(to_.path(), "..", "").status()));
  fs::create_symlink("/etc/hostname", fs::path(InputsFolder(to_.path())) / input_.id / "words/link");
  EXPECT_TRUE(absl::IsNotFound(OpenInputFile(to_.path(), input_.id, "words/link").status()));
}

// From another node's files process, with a ticket of this input.
TEST_F(BringInputTest, FromNodes) {
  const GivingNode none("none"), giver("giver");
  ASSERT_TRUE(BringInput(giver.local(), input_.id, FromFolder(), {}).ok());
  const FilesIdentity reader = NewFilesIdentity();
  CopyCommand command{JobId("job"), Epoch(1), JobUid(std::string(32, 'a'))};
  command.copy_id = "input-1";
  command.input = input_.id;
  FetchReport last;
  const Bringing bringing{.local = to_.path(), .identity = reader, .progress = [&](const FetchReport& report) { last = report; }};
  const auto of = [&](const GivingNode& node, const std::string& what) {
    CheckpointHolder holder = node.Holder(reader, {});
    holder.ticket = node.Ticket(reader, JobUid(what));
    return holder;
  };
  command.source.holders = {of(giver, std::string(64, '0'))};
  EXPECT_FALSE(BringInputFromNodes(command, bringing).ok()) << "a ticket of another input";
  command.source.holders = {of(none, input_.id), of(giver, input_.id)};
  const absl::Status brought = BringInputFromNodes(command, bringing);
  ASSERT_TRUE(brought.ok()) << brought;
  ExpectWhole(to_.path());
  EXPECT_EQ(last.input, input_.id);
  EXPECT_EQ(last.copy_id, "input-1");
  EXPECT_EQ(last.bytes_here, list_.bytes());
}

// A block is given when it is here, whole.
TEST_F(BringInputTest, WhatComesIsGivenAsItComes) {
  left_ = 2;  // the list, and a block
  EXPECT_FALSE(Bring().ok());
  const auto coming = OpenInputBlocks(to_.path(), input_.id, "words/large.bin");
  ASSERT_TRUE(coming.ok()) << coming.status();
  std::string given;
  const auto give = [&](int64_t, std::string bytes) {
    given += bytes;
    return true;
  };
  ASSERT_TRUE(GiveBlocks(*coming, {0}, give).ok());
  EXPECT_EQ(given.size(), static_cast<size_t>(kCheckpointBlockBytes));
  int looks = 0;
  const absl::Status not_yet = GiveBlocks(*coming, {1}, give, [&] { return ++looks < 3; });
  EXPECT_TRUE(absl::IsResourceExhausted(not_yet)) << not_yet;
  EXPECT_EQ(looks, 3);
  // The rest comes while somebody waits for it, and the file is the same when it has its name.
  const auto comes = [&] {
    left_ = 1000;
    return ++looks < 10 && Bring().ok();
  };
  ASSERT_TRUE(GiveBlocks(*coming, {1, 2}, give, comes).ok());
  EXPECT_TRUE(given == TempFolder::Read(from_ / "words/large.bin"));
  EXPECT_TRUE(absl::IsNotFound(OpenInputBlocks(to_.path(), input_.id, "words/none").status()));
}

// A node that is told before the first byte has come there, and has all when that one has.
TEST_F(BringInputTest, FromANodeToWhichItComes) {
  const GivingNode giver("giver");
  const FilesIdentity reader = NewFilesIdentity();
  CopyCommand command{JobId("job"), Epoch(1), JobUid(std::string(32, 'a'))};
  command.copy_id = "input-1";
  command.input = input_.id;
  CheckpointHolder holder = giver.Holder(reader, {}, /*manifest=*/false);
  holder.ticket = giver.Ticket(reader, JobUid(input_.id));
  command.source.holders = {holder};
  // Each pause of the reader is a block for the giver.
  int pauses = 0;
  const auto comes = [&](absl::Duration) {
    left_ = ++pauses < 2 ? 0 : 1;
    (void)BringInput(giver.local(), input_.id, FromFolder(), {});
  };
  const Bringing bringing{.local = to_.path(), .identity = reader, .progress = [](const FetchReport&) {}, .pause = comes};
  const absl::Status brought = BringInputFromNodes(command, bringing);
  EXPECT_TRUE(brought.ok()) << brought;
  ExpectWhole(to_.path());
  EXPECT_GT(pauses, 1);
}

// Beneath a root, as the list says: it is not asked for. What is otherwise there is.
TEST_F(BringInputTest, WhatThisNodeHasElsewhereIsNotAskedFor) {
  const TempFolder own;
  std::string large = TempFolder::Read(from_ / "words/large.bin");
  large[static_cast<size_t>(kCheckpointBlockBytes)] ^= 1;
  own.Write("mine/large.bin", large);
  own.Write("mine/part/small.txt", "small");
  const FileRoots roots({own.path()});
  InputSource source = FromFolder();
  source.own = OpenerOfOwn(own / "mine", roots);
  ASSERT_TRUE(BringInput(to_.path(), input_.id, source, {}).ok());
  ExpectWhole(to_.path());
  EXPECT_EQ(asked_.size(), 2u) << "the list, and the block that is another one there";
  EXPECT_TRUE((asked_.contains({"words/large.bin", 1})));
  EXPECT_EQ(OpenerOfOwn("", roots), nullptr);
  EXPECT_FALSE(OpenerOfOwn("/elsewhere", roots)("words/large.bin").ok());
}

// Who gives something else is named; told to look, it finds what is altered, and brings that alone.
TEST_F(BringInputTest, WhatIsAlteredBehindAWholeInputsBackIsMended) {
  const GivingNode bad("bad"), good("good");
  for (const GivingNode* node : {&bad, &good}) ASSERT_TRUE(BringInput(node->local(), input_.id, FromFolder(), {}).ok());
  const std::string held = absl::StrCat(InputsFolder(bad.local()), "/", input_.id, "/words/large.bin");
  std::string bytes = TempFolder::Read(held);
  bytes[static_cast<size_t>(kCheckpointBlockBytes) + 5] ^= 1;
  std::ofstream(held, std::ios::binary) << bytes;
  const FilesIdentity reader = NewFilesIdentity();
  CopyCommand command{JobId("job"), Epoch(1), JobUid(std::string(32, 'a'))};
  command.copy_id = "input-1";
  command.input = input_.id;
  const auto of = [&](const GivingNode& node) {
    CheckpointHolder holder = node.Holder(reader, {});
    holder.ticket = node.Ticket(reader, JobUid(input_.id));
    return holder;
  };
  FetchReport last;
  const auto note = [&](const FetchReport& report) { last = report; };
  command.source.holders = {of(bad), of(good)};
  ASSERT_TRUE(BringInputFromNodes(command, {.local = to_.path(), .identity = reader, .progress = note}).ok());
  ExpectWhole(to_.path());
  EXPECT_EQ(last.damaged_files, (std::vector<DamagedFile>{{NodeName("bad"), "words/large.bin"}}));
  // It is told.
  command.source.holders = {of(good)};
  command.source.verify = true;
  last = {};
  ASSERT_TRUE(BringInputFromNodes(command, {.local = bad.local(), .identity = reader, .progress = note}).ok());
  ExpectWhole(bad.local());
  EXPECT_EQ(last.bytes, kCheckpointBlockBytes) << "one block";
  last = {};
  ASSERT_TRUE(BringInputFromNodes(command, {.local = bad.local(), .identity = reader, .progress = note}).ok());
  EXPECT_EQ(last.bytes, 0) << "what is right stays";
}

}  // namespace
}  // namespace motley::worker
