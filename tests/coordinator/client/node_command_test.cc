#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "common/model/model.h"
#include "coordinator/client/format.h"
#include "planner/costs/workload.h"
#include "tests/common/base/temp_folder.h"
#include "tests/coordinator/client/fake_motley.h"

namespace motley::client {
namespace {

constexpr int64_t kMarchMs = 1'772'366'400'000;  // 2026-03-01 12:00 UTC

void OfferToken(FakeMotley& fake, const std::string& workers_listen = "10.0.0.1:7073") {
  fake.new_token.set_token("id1.secret");
  fake.new_token.set_id("id1");
  fake.new_token.set_expires_unix_ms(kMarchMs);
  fake.new_token.set_workers_listen(workers_listen);
}

v1::Token ListedToken(const std::string& id, bool reusable, int64_t joins, const std::string& state) {
  v1::Token token;
  token.set_id(id);
  token.set_reusable(reusable);
  token.set_joins(joins);
  token.set_made_unix_ms(kMarchMs - 1000);
  token.set_expires_unix_ms(kMarchMs);
  token.set_state(state);
  return token;
}

// The line of the table that begins with these words.
std::string LineOf(const std::string& text, const std::string& begin) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(begin)) return line;
  }
  return "";
}

bool HasText(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(NodeCommand, TheTokenStandsAloneOnTheStandardOutput) {
  FakeMotley fake;
  OfferToken(fake);
  const Ran ran = Motley(fake, {"node", "token"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.out, "id1.secret\n");
  EXPECT_TRUE(HasText(ran.err, "good for one node until " + FormatTime(kMarchMs))) << ran.err;
  EXPECT_TRUE(HasText(ran.err, "motley-worker --join TOKEN --coordinator 10.0.0.1:7073 --root FOLDER\n")) << ran.err;
  EXPECT_FALSE(HasText(ran.err, "secret")) << ran.err;
  ASSERT_EQ(fake.tokens_asked.size(), 1u);
  EXPECT_EQ(fake.tokens_asked[0].ttl_seconds(), 3600);
  EXPECT_FALSE(fake.tokens_asked[0].reusable());
}

TEST(NodeCommand, WhereToDialIsNotGuessed) {
  for (const char* listen : {"0.0.0.0:7073", "[::]:7073"}) {
    FakeMotley fake;
    OfferToken(fake, listen);
    const Ran ran = Motley(fake, {"node", "token"});
    EXPECT_TRUE(HasText(ran.err, "--coordinator ADDRESS-OF-THIS-MACHINE:7073 ")) << ran.err;
  }
}

TEST(NodeCommand, HowLongAndForHowManyReachesTheCoordinator) {
  FakeMotley fake;
  OfferToken(fake);
  const std::vector<std::pair<std::string, int64_t>> times = {
      {"90m", 90 * 60}, {"7d", 7 * 24 * 3600}, {"12h", 12 * 3600}, {"1h30m", 90 * 60}, {"1s", 1}, {"1.5h", 90 * 60}};
  for (const auto& [text, seconds] : times) {
    const Ran ran = Motley(fake, {"node", "token", "--ttl", text, "--reusable"});
    EXPECT_EQ(ran.code, 0) << ran.err;
    EXPECT_TRUE(HasText(ran.err, "good for any number of nodes until ")) << ran.err;
    EXPECT_EQ(fake.tokens_asked.back().ttl_seconds(), seconds) << text;
    EXPECT_TRUE(fake.tokens_asked.back().reusable());
  }
}

TEST(NodeCommand, ATimeThatIsNoneIsRefusedBeforeAnybodyIsAsked) {
  FakeMotley fake;
  for (const std::string text :
       {"0", "soon", "-1h", "", "0d", "-7d", "d", "7", "7dd", "1e99d", "inf", "1ms", "9999999999999999999d"}) {
    const Ran ran = Motley(fake, {"node", "token", "--ttl", text});
    EXPECT_EQ(ran.code, 65) << text << ": " << ran.err;
    EXPECT_EQ(ran.out, "") << text;
    EXPECT_TRUE(HasText(ran.err, "--ttl " + text + ": how long is that? say 90m, 12h or 7d")) << ran.err;
  }
  EXPECT_TRUE(fake.tokens_asked.empty());
}

TEST(NodeCommand, ATokenThatTheCoordinatorRefusesIsNoneAndSaysWhy) {
  FakeMotley fake;
  fake.refusal = {grpc::StatusCode::FAILED_PRECONDITION, "no machine could join: workers.listen is this machine's"};
  const Ran ran = Motley(fake, {"node", "token"});
  EXPECT_NE(ran.code, 0);
  EXPECT_EQ(ran.out, "");
  EXPECT_TRUE(HasText(ran.err, "no machine could join: workers.listen is this machine's")) << ran.err;
}

TEST(NodeCommand, ATokenForPrograms) {
  FakeMotley fake;
  OfferToken(fake);
  const Ran ran = Motley(fake, {"node", "token", "-o", "json"});
  const nlohmann::json token = nlohmann::json::parse(ran.out);
  EXPECT_EQ(token["token"], "id1.secret");
  EXPECT_EQ(token["id"], "id1");
  EXPECT_EQ(token["expires_unix_ms"], kMarchMs);
  EXPECT_EQ(token["workers_listen"], "10.0.0.1:7073");
  EXPECT_EQ(ran.err, "");
}

TEST(NodeCommand, TokensAreListedWithWhatBecameOfThem) {
  FakeMotley fake;
  EXPECT_EQ(Motley(fake, {"node", "tokens"}).out, "no tokens; 'motley node token' makes one\n");
  EXPECT_EQ(nlohmann::json::parse(Motley(fake, {"node", "tokens", "-o", "json"}).out)["tokens"], nlohmann::json::array());
  fake.tokens["t1"] = ListedToken("t1", false, 1, "used");
  fake.tokens["t2"] = ListedToken("t2", true, 12, "open");
  const std::string out = Motley(fake, {"node", "tokens"}).out;
  const std::string until = FormatTime(kMarchMs);
  EXPECT_EQ(LineOf(out, "TOKEN"), "TOKEN  STATE  FOR         JOINED  UNTIL");
  EXPECT_EQ(LineOf(out, "t1"), "t1     used   one node    1       " + until);
  EXPECT_EQ(LineOf(out, "t2"), "t2     open   any number  12      " + until);
  const nlohmann::json listed = nlohmann::json::parse(Motley(fake, {"node", "tokens", "-o", "json"}).out)["tokens"];
  ASSERT_EQ(listed.size(), 2u);
  EXPECT_EQ(listed[1]["id"], "t2");
  EXPECT_EQ(listed[1]["reusable"], true);
  EXPECT_EQ(listed[1]["state"], "open");
  EXPECT_EQ(listed[1]["made_unix_ms"], kMarchMs - 1000);
  EXPECT_EQ(listed[1]["expires_unix_ms"], kMarchMs);
}

TEST(NodeCommand, ATokenIsRevoked) {
  FakeMotley fake;
  fake.tokens["t1"] = ListedToken("t1", false, 0, "open");
  const Ran ran = Motley(fake, {"node", "revoke", "t1"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.out, "token t1 is revoked; nodes that joined by it stay members\n");
  const Ran again = Motley(fake, {"node", "revoke", "t1"});
  EXPECT_EQ(again.code, 66);
  EXPECT_EQ(again.out, "");
  EXPECT_TRUE(HasText(again.err, "there is no token 't1'")) << again.err;
  EXPECT_EQ(fake.revoked, (std::vector<std::string>{"t1", "t1"}));
  EXPECT_EQ(Motley(fake, {"node", "revoke"}).code, 64);
}

TEST(NodeCommand, ANodeIsForgotten) {
  FakeMotley fake;
  fake.nodes["b"].set_name("b");
  const Ran ran = Motley(fake, {"node", "forget", "b"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.out, "node b is forgotten; a member comes back with a new token\n");
  const Ran again = Motley(fake, {"node", "forget", "b"});
  EXPECT_EQ(again.code, 66);
  EXPECT_EQ(again.out, "");
  EXPECT_TRUE(HasText(again.err, "no member is named 'b'")) << again.err;
  EXPECT_EQ(fake.forgotten, (std::vector<std::string>{"b", "b"}));
  EXPECT_EQ(Motley(fake, {"node", "forget"}).code, 64);
}

TEST(NodeCommand, ANodeIsMeasuredAgain) {
  FakeMotley fake;
  fake.nodes["b"].set_name("b");
  EXPECT_EQ(Motley(fake, {"node", "measure", "b"}).out, "node b is measured again: the next job that uses it does so first\n");
  fake.measuring_job = "train";
  EXPECT_EQ(Motley(fake, {"node", "measure", "b"}).out, "node b is measured again: job train saves, measures and goes on\n");
  EXPECT_EQ(nlohmann::json::parse(Motley(fake, {"node", "measure", "b", "-o", "json"}).out)["job_id"], "train");
  EXPECT_EQ(Motley(fake, {"node", "measure", "c"}).code, 66);
  EXPECT_EQ(Motley(fake, {"node", "measure"}).code, 64);
}

class NodeProbe : public testing::Test {
 protected:
  NodeProbe() {
    fake_.probe.set_node("b");
    fake_.probe.set_model(config_);
    fake_.probe.set_layers(2);
    v1::ProbedDevice* device = fake_.probe.add_devices();
    device->set_device("b/gpu0");
    device->set_largest_samples(2);
    for (const double seconds : {0.5, 1.0, 0.0}) {
      v1::MemoryTrial* trial = device->add_trials();
      trial->set_samples(int64_t{1} << (device->trials_size() - 1));
      trial->set_seconds(seconds);
      if (seconds > 0) trial->set_peak_bytes(int64_t{3} << 20);
    }
    device->set_memory_bytes(int64_t{8} << 20);
    device->set_ledger_bytes(int64_t{4} << 20);
    device->set_usable_memory_bytes(int64_t{4} << 20);
    device->set_limited(true);
  }
  Ran Probe(const std::vector<std::string>& more) {
    std::vector<std::string> words = {"node", "measure", "b", "--probe"};
    words.insert(words.end(), more.begin(), more.end());
    return Motley(fake_, words);
  }
  const TempFolder folder_;
  const std::string config_ = folder_.Write("config.json", R"({"model_type": "gpt2", "n_layer": 3})");
  FakeMotley fake_;
};

TEST_F(NodeProbe, SaysWhatRanAndWhatPlansCountOn) {
  const Ran ran = Probe({"--model", config_, "--seq-len", "64", "--layers", "2", "--dtype", "bf16"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  ASSERT_EQ(fake_.probed.size(), 1u);
  EXPECT_EQ(fake_.probed[0].node(), "b");
  EXPECT_EQ(fake_.probed[0].model_name(), config_);
  EXPECT_EQ(fake_.probed[0].model_config_json(), R"({"model_type": "gpt2", "n_layer": 3})");
  EXPECT_EQ(fake_.probed[0].seq_len(), 64);
  EXPECT_EQ(fake_.probed[0].layers(), 2);
  EXPECT_EQ(fake_.probed[0].dtype(), "bf16");
  EXPECT_TRUE(HasText(ran.out,
                      "DEVICE  SAMPLES  TRIALS  STEP     HELD     LEDGER   MEMORY   PLANS USE\n"
                      "b/gpu0  2        3       1.000 s  3.0 MiB  4.0 MiB  8.0 MiB  4.0 MiB\n"))
      << ran.out;
  EXPECT_TRUE(HasText(ran.out, "b/gpu0: the ledger would allow more than the 2 samples that ran, so plans of " + config_ +
                                   " count on 4.0 MiB of its memory from now on; `motley node measure b` takes that back"))
      << ran.out;
  const nlohmann::json json = nlohmann::json::parse(Probe({"--model", config_, "--seq-len", "64", "-o", "json"}).out);
  EXPECT_EQ(json["devices"][0]["largest_samples"], 2);
  EXPECT_EQ(json["devices"][0]["trials"].size(), 3u);
  EXPECT_EQ(json["devices"][0]["trials"][1]["seconds"], 1.0);
  fake_.probe.mutable_devices(0)->set_limited(false);
  fake_.probe.mutable_devices(0)->set_usable_memory_bytes(0);
  const std::string all = Probe({"--model", config_, "--seq-len", "64"}).out;
  EXPECT_TRUE(HasText(all, "8.0 MiB  all\n")) << all;
  EXPECT_FALSE(HasText(all, "from now on")) << all;
}

TEST_F(NodeProbe, ModelsWithoutAFileArePresets) {
  EXPECT_EQ(Probe({"--model", "llama-7b", "--seq-len", "64"}).code, 0);
  const auto sent = ParseHfConfig(fake_.probed.at(0).model_config_json(), "sent");
  ASSERT_TRUE(sent.ok()) << sent.status();
  EXPECT_EQ(*sent, planner::LoadModel("llama-7b")->model);
}

TEST_F(NodeProbe, WrongWordsAreNamed) {
  const Ran none = Probe({});
  EXPECT_EQ(none.code, 64);
  EXPECT_TRUE(HasText(none.err, "--model is missing") && HasText(none.err, "--seq-len is missing")) << none.err;
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"node", "measure", "b", "--model", "x"},
        {"node", "measure", "b", "--layers", "2"},
        {"node", "measure", "b", "--probe", "--model", "x", "--seq-len", "64", "--layers", "0"},
        {"node", "measure", "b", "--probe", "--model", "x", "--seq-len", "many"}}) {
    EXPECT_EQ(Motley(fake_, words).code, 64) << words.back();
  }
  EXPECT_EQ(Probe({"--model", folder_.path() + "/none.json", "--seq-len", "64"}).code, 66);
  EXPECT_EQ(Probe({"--model", folder_.path(), "--seq-len", "64"}).code, 66);
  EXPECT_TRUE(fake_.probed.empty()) << "nobody was asked";
}

TEST_F(NodeProbe, WhatTheCoordinatorRefusesIsSaid) {
  const std::vector<std::string> words = {"--model", config_, "--seq-len", "64"};
  for (const auto& [code, exit] : {std::pair(grpc::StatusCode::NOT_FOUND, 66),
                                   {grpc::StatusCode::FAILED_PRECONDITION, 65},
                                   {grpc::StatusCode::RESOURCE_EXHAUSTED, 65},
                                   {grpc::StatusCode::ABORTED, 75},
                                   {grpc::StatusCode::UNIMPLEMENTED, 78}}) {
    fake_.refusal = {code, "why it is so"};
    const Ran ran = Probe(words);
    EXPECT_EQ(ran.code, exit);
    EXPECT_TRUE(HasText(ran.err, "why it is so")) << ran.err;
  }
}

TEST(NodeCommand, TheAuthorityChanges) {
  FakeMotley fake;
  const Ran ran = Motley(fake, {"node", "rotate-authority"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_TRUE(ran.out.starts_with("authority 2 was made; the one before ends when every member has renewed")) << ran.out;
  EXPECT_EQ(nlohmann::json::parse(Motley(fake, {"node", "rotate-authority", "-o", "json"}).out)["authority"], 3);
  fake.refusal = {grpc::StatusCode::FAILED_PRECONDITION, "the authority changes already; not renewed yet: b"};
  const Ran refused = Motley(fake, {"node", "rotate-authority"});
  EXPECT_NE(refused.code, 0);
  EXPECT_TRUE(HasText(refused.err, "not renewed yet: b")) << refused.err;
}

TEST(NodeCommand, AloneItIsWrongUsage) {
  FakeMotley fake;
  const Ran ran = Motley(fake, {"node"});
  EXPECT_EQ(ran.code, 64);
  EXPECT_EQ(ran.out, "");
  EXPECT_EQ(Motley(fake, {"node", "tokn"}).code, 64);
}

TEST(NodeCommand, NodesShowUntilWhenAMembersCertificateIsGood) {
  FakeMotley fake;
  for (const char* name : {"a", "b", "c"}) fake.nodes[name].set_name(name), fake.nodes[name].set_state("ready");
  fake.nodes["a"].add_devices()->set_id("a/cpu0");
  for (const char* member : {"b", "c"}) {
    fake.nodes[member].set_member_since_unix_ms(kMarchMs - 1000);
    fake.nodes[member].set_certificate_until_unix_ms(kMarchMs);
  }
  for (const char* id : {"b/cpu0", "b/gpu0"}) fake.nodes["b"].add_devices()->set_id(id);
  const std::string out = Motley(fake, {"nodes"}).out;
  const size_t at = LineOf(out, "NODE").find("MEMBER UNTIL");
  ASSERT_NE(at, std::string::npos) << out;
  const std::string date = FormatTime(kMarchMs).substr(0, 10);
  EXPECT_EQ(LineOf(out, "a ").substr(at), "-") << out;
  EXPECT_EQ(LineOf(out, "b ").substr(at), date) << out;
  EXPECT_EQ(LineOf(out, "c ").substr(at), date) << "without devices, too\n" << out;
}

}  // namespace
}  // namespace motley::client
