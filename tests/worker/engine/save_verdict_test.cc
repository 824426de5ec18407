#include "worker/engine/save_verdict.h"

#include <gtest/gtest.h>

#include "common/base/fault.h"

namespace motley::engine {
namespace {

constexpr View kSame = View::kSame, kOther = View::kOther, kFailed = View::kFailed;

std::vector<DeviceId> DevicesOn(const std::vector<std::string>& nodes) {
  std::vector<DeviceId> devices;
  for (size_t r = 0; r < nodes.size(); ++r) devices.emplace_back(nodes[r] + "/gpu" + std::to_string(r));
  return devices;
}

absl::Status Verdict(const std::vector<std::string>& entries, const std::vector<std::string>& nodes) {
  return VerdictOf(entries, DevicesOn(nodes), "/c/job");
}

std::string Wrote(const std::string& token) { return EntryMessage(CheckpointFile{.name = "rank.bin"}, token); }
std::string Fails(const absl::Status& status) { return EntryMessage(WithFault(status, Fault::kStorage), ""); }

TEST(SaveVerdict, WhomMostDoNotSeeIsWrong) {
  struct Case {
    std::vector<std::string> nodes;
    std::vector<View> views;
    int blamed;  // -1: nobody
  };
  const Case cases[] = {
      {{"a", "b", "c"}, {kSame, kSame, kSame}, -1},
      {{"a", "b", "c"}, {kSame, kSame, kOther}, 2},
      {{"a", "b", "c"}, {kSame, kFailed, kSame}, 1},
      {{"a", "b", "c"}, {kSame, kOther, kOther}, 0},
      {{"a", "b", "c"}, {kFailed, kSame, kSame}, 0},
      {{"a", "b", "c"}, {kSame, kFailed, kFailed}, -1},  // the share, perhaps
      {{"a", "b", "c", "d"}, {kSame, kSame, kOther, kOther}, -1},
      {{"a", "b", "c", "d"}, {kSame, kOther, kOther, kOther}, 0},
      {{"a", "b", "c", "d", "e"}, {kSame, kSame, kFailed, kOther, kSame}, 2},
      {{"a"}, {kSame}, -1},
      {{"a"}, {kFailed}, -1},
      {{"a", "b"}, {kSame, kOther}, -1},
      {{"a", "b"}, {kSame, kFailed}, -1},
      // Ranks of one node look at one folder.
      {{"a", "b", "b"}, {kSame, kOther, kOther}, -1},
      {{"a", "a", "b"}, {kSame, kSame, kOther}, -1},
      {{"a", "b", "c", "c", "c"}, {kSame, kSame, kSame, kOther, kOther}, 3},
      {{"a", "a", "a", "b", "c"}, {kSame, kSame, kSame, kOther, kOther}, 0},
  };
  for (const Case& test : cases) {
    const std::optional<size_t> blamed = WhomToBlame(test.views, DevicesOn(test.nodes));
    EXPECT_EQ(blamed ? static_cast<int>(*blamed) : -1, test.blamed) << "case " << &test - cases;
  }
}

TEST(SaveVerdict, FilesBesideOneTokenAreOneCheckpoint) {
  EXPECT_TRUE(Verdict({Wrote("1-5-9"), Wrote("1-5-9"), Wrote("1-5-9")}, {"a", "b", "c"}).ok());
  for (const char* other : {"", "1-5-8"}) {
    const absl::Status status = Verdict({Wrote("1-5-9"), Wrote("1-5-9"), Wrote(other)}, {"a", "b", "c"});
    EXPECT_EQ(FaultOf(status), Fault::kStorage) << status;
    EXPECT_EQ(BlamedDeviceOf(status), "c/gpu2") << status;
    EXPECT_EQ(status.message(),
              "checkpoint on c/gpu2: /c/job is not the folder of the other nodes; mount checkpoint.folder there, the same on all "
              "nodes");
  }
  EXPECT_EQ(BlamedDeviceOf(Verdict({Wrote("1"), Wrote(""), Wrote("")}, {"a", "b", "c"})), "a/gpu0");
  const absl::Status two = Verdict({Wrote("1"), Wrote("")}, {"a", "b"});
  EXPECT_EQ(FaultOf(two), Fault::kStorage) << two;
  EXPECT_EQ(BlamedDeviceOf(two), "");
}

TEST(SaveVerdict, ADiskThatIsFullIsNobodysFault) {
  const std::string full = Fails(absl::ResourceExhaustedError("full")), broken = Fails(absl::UnavailableError("no medium"));
  const std::string limit = Fails(absl::OutOfRangeError("a file size limit"));
  EXPECT_EQ(BlamedDeviceOf(Verdict({Wrote("1"), full, Wrote("1")}, {"a", "b", "c"})), "");
  EXPECT_EQ(BlamedDeviceOf(Verdict({full, Wrote(""), Wrote("")}, {"a", "b", "c"})), "") << "it had no room for a token";
  const absl::Status status = Verdict({Wrote("1"), full, broken}, {"a", "b", "c"});
  EXPECT_EQ(BlamedDeviceOf(status), "c/gpu2");
  EXPECT_EQ(status.message(), "checkpoint on c/gpu2: no medium");
  EXPECT_EQ(BlamedDeviceOf(Verdict({broken, Wrote(""), Wrote("")}, {"a", "b", "c"})), "a/gpu0");
  EXPECT_EQ(BlamedDeviceOf(Verdict({Wrote("1"), limit, Wrote("1")}, {"a", "b", "c"})), "b/gpu1");
}

TEST(SaveVerdict, WhoRemovesWhatWasWritten) {
  const std::string broken = Fails(absl::UnavailableError("no medium")), full = Fails(absl::ResourceExhaustedError("full"));
  EXPECT_TRUE(LiesWithRank0({Wrote("1"), Wrote("1")}, 1));
  EXPECT_FALSE(LiesWithRank0({Wrote("1"), Wrote("")}, 1));
  EXPECT_FALSE(LiesWithRank0({Wrote("1"), broken}, 1));
  EXPECT_FALSE(LiesWithRank0({broken, Wrote("")}, 1));
  EXPECT_TRUE(LiesWithRank0({full, Wrote("")}, 1));
}

TEST(SaveVerdict, FilesThatRank0DoesNotSee) {
  const std::vector<DeviceId> three = DevicesOn({"a", "b", "c"});
  EXPECT_TRUE(NotAllSeen({}, three, "/c").ok());
  EXPECT_EQ(BlamedDeviceOf(NotAllSeen({1}, three, "/c")), "b/gpu1");
  EXPECT_EQ(BlamedDeviceOf(NotAllSeen({1, 2}, three, "/c")), "a/gpu0");
  EXPECT_EQ(FaultOf(NotAllSeen({1}, DevicesOn({"a", "b"}), "/c")), Fault::kStorage);
}

TEST(SaveVerdict, AVerdictTravelsWithAllThatItCarries) {
  const absl::Status said = WithBlamedDevice(WithFault(absl::UnavailableError("no medium here"), Fault::kStorage), "b/gpu1");
  const absl::Status heard = ErrorOf(VerdictMessage(said), DeviceId("a/gpu0"));
  EXPECT_EQ(heard.code(), said.code());
  EXPECT_EQ(FaultOf(heard), Fault::kStorage);
  EXPECT_EQ(BlamedDeviceOf(heard), "b/gpu1");
  EXPECT_EQ(heard.message(), "checkpoint on a/gpu0: no medium here");
  EXPECT_EQ(ErrorOf(VerdictMessage(heard), DeviceId("a/gpu0")).message(), heard.message()) << "named once";
  EXPECT_TRUE(ErrorOf(VerdictMessage(absl::OkStatus()), DeviceId("a/gpu0")).ok());
  EXPECT_EQ(ErrorOf("error ?", DeviceId("a/gpu0")).code(), absl::StatusCode::kInternal);
  EXPECT_EQ(FileOf(Wrote("1"))->name, "rank.bin");
  EXPECT_FALSE(FileOf("ok").ok());
}

}  // namespace
}  // namespace motley::engine
