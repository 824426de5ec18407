#include "worker/engine/transport/introduction.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "absl/strings/str_replace.h"
#include "tests/worker/engine/fake_host.h"

namespace motley::engine {
namespace {

using testing::HasSubstr;

struct Told {
  std::string text;
  absl::StatusOr<std::vector<Introduction>> all = absl::UnknownError("not asked");
};

// Rank 0 of two introduces itself, and reads what rank 1 said: what rank 0 says, changed.
Told Hear(const std::function<std::string(const std::string&)>& change,
          const std::vector<std::string>& addresses = {"127.0.0.1", "127.0.0.2"},
          DataAuthentication authentication = DataAuthentication::kBetweenMachines) {
  FakeKv kv;
  FakeHost host(kv);
  CommunicatorOptions options;
  options.devices = {DeviceId("n0/gpu0"), DeviceId("n1/gpu0")};
  options.data_addresses = addresses;
  options.authentication = authentication;
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

std::function<std::string(const std::string&)> Saying(DataAuthentication theirs, DataAuthentication ours) {
  return [=](const std::string& text) {
    const auto word = [](DataAuthentication value) { return " " + std::string(DataAuthenticationName(value)) + " "; };
    return absl::StrReplaceAll(text, {{word(ours), word(theirs)}});
  };
}

// Where they mean the same for this pair, another value is nothing to refuse.
TEST(IntroductionTest, OneThatWouldNotAuthenticateTheSameIsRefusedWithBothValues) {
  using enum DataAuthentication;
  const std::vector<std::string> apart = {"10.0.0.1", "10.0.0.2"}, together = {"127.0.0.1", "127.0.0.1"};
  const struct {
    DataAuthentication ours, theirs;
    const std::vector<std::string>& addresses;
    bool agree;
  } kCases[] = {{kBetweenMachines, kBetweenMachines, apart, true},
                {kBetweenMachines, kAlways, apart, true},
                {kBetweenMachines, kNever, apart, false},
                {kNever, kBetweenMachines, apart, false},
                {kNever, kAlways, apart, false},
                {kBetweenMachines, kNever, together, true},
                {kAlways, kBetweenMachines, together, false},
                {kNever, kNever, apart, true}};
  for (const auto& [ours, theirs, addresses, agree] : kCases) {
    const Told told = Hear(Saying(theirs, ours), addresses, ours);
    if (agree) {
      ASSERT_TRUE(told.all.ok()) << told.all.status();
      EXPECT_EQ(told.all->at(1).authentication, theirs);
      continue;
    }
    EXPECT_EQ(told.all.status().code(), absl::StatusCode::kFailedPrecondition) << told.all.status();
    for (const auto& [device, value] : {std::pair("n1/gpu0", theirs), std::pair("n0/gpu0", ours)}) {
      EXPECT_THAT(std::string(told.all.status().message()),
                  HasSubstr(std::string("that of ") + device + " at worker.data_authentication = '" +
                            std::string(DataAuthenticationName(value)) + "'"));
    }
  }
}

TEST(IntroductionTest, AValueThatIsNoneIsNotUnderstood) {
  const Told told = Hear([](const std::string& text) {
    return absl::StrReplaceAll(text, {{" between-machines ", " perhaps "}});
  });
  EXPECT_EQ(told.all.status().code(), absl::StatusCode::kInternal) << told.all.status();
}

}  // namespace
}  // namespace motley::engine
