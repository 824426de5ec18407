// motley-worker --join: what it writes, and what it refuses while the token is still good.
#include "worker/daemon/join_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/files.h"
#include "common/tls/join_token.h"
#include "tests/worker/daemon/joining_coordinator.h"
#include "worker/daemon/config.h"
#include "worker/daemon/identity_folder.h"

namespace motley::worker {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class JoinCommandTest : public testing::Test {
 protected:
  JoinCommandTest() {
    options_.token_file = folder_.Write("token", ToText(token_) + "\n");
    options_.coordinators = {coordinator_.address()};
    options_.node = "n1";
    options_.config = folder_ / "etc/worker.toml";
    options_.identity = folder_ / "identity";
    options_.roots = {"/data", "/check points"};
  }
  absl::Status Run(bool foreground = false) {
    std::ostringstream out;
    const absl::Status status = Join(options_, foreground, out);
    said_ = out.str();
    // Not even its beginning: what is left could be guessed.
    EXPECT_THAT(said_ + std::string(status.message()), Not(HasSubstr(token_.secret.substr(0, 8))));
    return status;
  }
  // That it ends before anything is sent or written; with what words.
  std::string WordsBefore(absl::StatusCode code) {
    const absl::Status status = Run();
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_TRUE(coordinator_.requests().empty()) << "the token is used up: " << status;
    EXPECT_FALSE(FileExists(options_.identity)) << status;
    return std::string(status.message());
  }
  std::string Toml(const std::string& name, const std::string& coordinator, const std::string& identity) const {
    return absl::StrCat("[worker]\nname = '", name, "'\ncoordinator = '", coordinator, "'\nidentity = '", identity,
                        "'\nstop_seconds = 7  # its owner's choice\n");
  }

  const CertificateAuthority authority_ = CertificateAuthority::Make(absl::Now()).value();
  const JoinToken token_ = MakeJoinToken(authority_.certificate()).value();
  const TempFolder folder_;
  JoiningCoordinator coordinator_{authority_};
  JoinOptions options_;
  std::string said_;
};

TEST_F(JoinCommandTest, WritesWhatTheNodeNeeds) {
  ASSERT_EQ(Run(), absl::OkStatus());
  const auto config = LoadWorkerConfig(options_.config);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(Validate(*config), absl::OkStatus());
  EXPECT_EQ(config->name, "n1");
  EXPECT_EQ(config->coordinators, std::vector<std::string>{coordinator_.address()});
  EXPECT_EQ(config->data_address, "127.0.0.1") << "this machine's end of the way there";
  EXPECT_EQ(config->file_roots, options_.roots);
  EXPECT_TRUE(UsesTls(*config)) << "over loopback, too";
  const auto identity = IdentityFolder(IdentityFolderOf(*config)).Load();
  ASSERT_TRUE(identity.ok()) << identity.status();
  EXPECT_EQ(CheckIdentity(*identity, NodeName("n1"), absl::Now()), absl::OkStatus());
  EXPECT_THAT(said_, HasSubstr("written: " + options_.config));
  EXPECT_THAT(said_, HasSubstr("start it: motley-worker --config " + options_.config));
  ASSERT_EQ(coordinator_.requests().size(), 1u);
  EXPECT_EQ(coordinator_.requests()[0].token(), ToText(token_)) << "without the end of its line";
}

TEST_F(JoinCommandTest, TheTokenMayBeGivenItself) {
  options_.token = ToText(token_), options_.token_file.clear(), options_.roots.clear();
  options_.data_address = "127.0.0.2";
  ASSERT_EQ(Run(/*foreground=*/true), absl::OkStatus());
  EXPECT_THAT(said_, Not(HasSubstr("start it"))) << "it is about to run";
  EXPECT_THAT(said_, HasSubstr("roots are none: jobs read no folder of this node"));
  EXPECT_EQ(LoadWorkerConfig(options_.config)->data_address, "127.0.0.2");
}

TEST_F(JoinCommandTest, AConfigurationOfThisNodeIsKept) {
  const std::string text = Toml("n1", coordinator_.address(), options_.identity);
  folder_.Write("etc/worker.toml", text);
  ASSERT_EQ(Run(), absl::OkStatus());
  EXPECT_EQ(TempFolder::Read(options_.config), text);
  EXPECT_THAT(said_, HasSubstr("kept as it is, flags for it do not count: " + options_.config));
  EXPECT_TRUE(IdentityFolder(options_.identity).Load().ok());
}

// The package's own worker.toml names another coordinator; nobody chose that.
TEST_F(JoinCommandTest, AConfigurationAsItWasInstalledIsReplaced) {
  const std::string installed = "[worker]\ncoordinator = '127.0.0.1:7073'\n";
  options_.as_installed = folder_.Write("share/worker.toml", installed);
  folder_.Write("etc/worker.toml", installed + "stop_seconds = 7\n");
  EXPECT_THAT(WordsBefore(absl::StatusCode::kFailedPrecondition), HasSubstr("is there already"));
  folder_.Write("etc/worker.toml", installed);
  ASSERT_EQ(Run(), absl::OkStatus());
  EXPECT_EQ(LoadWorkerConfig(options_.config)->coordinators, std::vector<std::string>{coordinator_.address()});
}

TEST_F(JoinCommandTest, AnothersConfigurationIsRefusedBeforeTheTokenIsUsed) {
  const auto refusal = [&](const std::string& text, absl::StatusCode code = absl::StatusCode::kFailedPrecondition) {
    folder_.Write("etc/worker.toml", text);
    const std::string words = WordsBefore(code);
    EXPECT_THAT(words, HasSubstr(options_.config));
    EXPECT_EQ(TempFolder::Read(options_.config), text);
    return words;
  };
  EXPECT_THAT(refusal(Toml("n1", "elsewhere:7073", options_.identity)), HasSubstr("worker.coordinator = 'elsewhere:7073'"));
  EXPECT_THAT(refusal(Toml("n2", coordinator_.address(), options_.identity)), HasSubstr("worker.name = 'n2'"));
  EXPECT_THAT(refusal(Toml("n1", coordinator_.address(), "/srv/other")), HasSubstr("worker.identity = '/srv/other'"));
  EXPECT_THAT(refusal("[worker]\ncordinator = 'x'\n", absl::StatusCode::kInvalidArgument), HasSubstr("unknown key"));
}

// A file without a name is of the host's, whatever --node says.
TEST_F(JoinCommandTest, AConfigurationThatLeavesTheNameToTheHostIsOfTheHost) {
  options_.node = "no-host-is-called-so";
  folder_.Write("etc/worker.toml",
                absl::StrCat("[worker]\ncoordinator = '", coordinator_.address(), "'\nidentity = '", options_.identity, "'\n"));
  EXPECT_THAT(WordsBefore(absl::StatusCode::kFailedPrecondition), HasSubstr("worker.name"));
}

TEST_F(JoinCommandTest, WrongFlagsAreRefusedBeforeTheTokenIsUsed) {
  const JoinOptions good = options_;
  const auto refusal = [&](auto JoinOptions::*flag, const auto& value,
                           absl::StatusCode code = absl::StatusCode::kInvalidArgument) {
    options_ = good;
    options_.*flag = value;
    return WordsBefore(code);
  };
  using Roots = std::vector<std::string>;
  using Addresses = std::vector<std::string>;
  EXPECT_THAT(refusal(&JoinOptions::node, "n1/gpu0"), HasSubstr("--node"));
  EXPECT_THAT(refusal(&JoinOptions::node, ""), HasSubstr("--node"));
  EXPECT_THAT(refusal(&JoinOptions::coordinators, Addresses{"nohost"}), HasSubstr("--coordinator"));
  EXPECT_THAT(refusal(&JoinOptions::coordinators, Addresses{good.coordinators[0], "unix:/run/motley/workers"}),
              HasSubstr("--coordinator"));
  EXPECT_THAT(refusal(&JoinOptions::data_address, "localhost"), HasSubstr("--data-address"));
  EXPECT_THAT(refusal(&JoinOptions::data_address, "0.0.0.0"), HasSubstr("--data-address = '0.0.0.0' stands for every address"));
  EXPECT_THAT(refusal(&JoinOptions::data_address, "203.0.113.7", absl::StatusCode::kFailedPrecondition),
              HasSubstr("is not an address of this machine"));
  EXPECT_THAT(refusal(&JoinOptions::roots, Roots{"/data", "relative"}), HasSubstr("'relative'"));
  EXPECT_THAT(refusal(&JoinOptions::roots, Roots{"/"}), HasSubstr("'/'"));
  EXPECT_THAT(refusal(&JoinOptions::roots, Roots{"/a/../b"}), HasSubstr("'..'"));
  EXPECT_FALSE(FileExists(options_.config));
}

// A file of TOML cannot say it.
TEST_F(JoinCommandTest, ARootThatIsNoTextIsRefusedBeforeTheTokenIsUsed) {
  options_.roots = {"/data/\xff"};
  EXPECT_THAT(WordsBefore(absl::StatusCode::kInvalidArgument), HasSubstr("/data/"));
}

TEST_F(JoinCommandTest, TokensThatAreNoneAreRefused) {
  options_.token_file = folder_.Write("token", ToText(token_).substr(0, 60));
  EXPECT_THAT(WordsBefore(absl::StatusCode::kInvalidArgument), HasSubstr("cut or glued"));
  options_.token_file = folder_.Write("token", "");
  WordsBefore(absl::StatusCode::kInvalidArgument);
  options_.token_file = folder_.Write("token", std::string(1 << 20, 'm'));
  WordsBefore(absl::StatusCode::kInvalidArgument);
  options_.token_file = folder_ / "nowhere";
  EXPECT_THAT(WordsBefore(absl::StatusCode::kNotFound), HasSubstr("nowhere"));
}

TEST_F(JoinCommandTest, AConfigurationThatCannotBeWrittenIsKnownBefore) {
  options_.config = folder_ / "token/worker.toml";
  WordsBefore(absl::StatusCode::kNotFound);
  options_.config = folder_.path();
  WordsBefore(absl::StatusCode::kInvalidArgument);
}

TEST_F(JoinCommandTest, ARefusalIsPassedOnAndNothingIsConfigured) {
  coordinator_.AnswerWith([](const auto&, auto&) { return grpc::Status(grpc::StatusCode::ALREADY_EXISTS, "n1 is taken"); });
  EXPECT_EQ(Run(), absl::AlreadyExistsError("n1 is taken"));
  EXPECT_FALSE(FileExists(options_.config));
}

}  // namespace
}  // namespace motley::worker
