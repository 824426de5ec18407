#include "worker/engine/transport/introduction.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/worker/engine/fake_host.h"

namespace motley::engine {
namespace {

using testing::HasSubstr;

struct Told {
  std::string text;
  absl::StatusOr<std::vector<Introduction>> all = absl::UnknownError("not asked");
};

// Rank 0 of two introduces itself, and reads what rank 1 said: what rank 0 says, changed.
Told Hear(const std::function<std::string(const std::string&)>& change) {
  FakeKv kv;
  FakeHost host(kv);
  CommunicatorOptions options;
  options.devices = {DeviceId("n0/gpu0"), DeviceId("n1/gpu0")};
  options.data_addresses = {"127.0.0.1", "127.0.0.2"};
  options.key_prefix = "train/1/";
  options.introduction_timeout = absl::ZeroDuration();
  const MeetingPoint point = {.port = 4711, .secret = std::string(kSecretBytes, 's')};
  (void)Introduce(options, point, host);  // rank 1 is not there yet
  Told told;
  told.text = change(*kv.Get("train/1/peer/0", absl::ZeroDuration()));
  kv.Set("train/1/peer/1", told.text);
  told.all = Introduce(options, point, host);
  return told;
}

TEST(IntroductionTest, OneOfTheSameBuildIsUnderstood) {
  const Told told = Hear([](const std::string& text) { return text; });
  ASSERT_TRUE(told.all.ok()) << told.all.status();
  EXPECT_EQ(told.all->at(1).point.port, 4711);
  EXPECT_EQ(told.all->at(1).point.address, "127.0.0.2");
  EXPECT_EQ(told.all->at(1).boot_id, told.all->at(0).boot_id);
}

// Whatever else another build says, and an older one that named no build.
TEST(IntroductionTest, OneOfAnotherBuildIsRefusedByName) {
  const auto without_build = [](const std::string& text) { return text.substr(text.find(' ') + 1); };
  for (const auto& change : std::vector<std::function<std::string(const std::string&)>>{
           [&](const std::string& text) { return "0.0.9/2 " + without_build(text); },
           [&](const std::string& text) { return "0.1.0/1 something new"; }, without_build}) {
    const Told told = Hear(change);
    const std::string build = told.text.substr(0, told.text.find(' '));
    EXPECT_EQ(told.all.status().code(), absl::StatusCode::kFailedPrecondition) << told.all.status();
    EXPECT_THAT(told.all.status().message(), HasSubstr("the rank of n1/gpu0 is of build '" + build + "'"));
    EXPECT_THAT(told.all.status().message(), HasSubstr("that of n0/gpu0 of '"));
  }
}

}  // namespace
}  // namespace motley::engine
