#include "coordinator/client/cli.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <regex>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/build_info.h"
#include "coordinator/client/command.h"
#include "nlohmann/json.hpp"
#include "tests/coordinator/client/fake_motley.h"

namespace motley::client {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

Ran RunAlone(const std::vector<std::string>& arguments) {
  std::ostringstream out, err;
  const int code = RunCli(arguments, out, err, {.connect = absl::Milliseconds(300)});
  return {code, out.str(), err.str()};
}

TEST(CliTest, UsageErrorsAre64) {
  EXPECT_EQ(RunAlone({}).code, 64);
  EXPECT_EQ(RunAlone({"nonsense"}).code, 64);
  EXPECT_EQ(RunAlone({"status"}).code, 64);
  EXPECT_EQ(RunAlone({"-o", "xml", "list"}).code, 64);
  EXPECT_EQ(RunAlone({"list", "--nonsense"}).code, 64);
  EXPECT_EQ(RunAlone({"nodes", "drain"}).code, 64);
  EXPECT_FALSE(RunAlone({"status"}).err.empty());
  EXPECT_EQ(RunAlone({"sumbit", "x"}).err, "motley: unknown command 'sumbit'; did you mean 'submit'?\n");
}

TEST(CliTest, OutputThatIsNotTakenIs74) {
  class FullDisk : public std::streambuf {
  } full;
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{"models"}, {"-o", "json", "cards"}, {"--version"}}) {
    std::ostream out(&full);
    std::ostringstream err;
    EXPECT_EQ(RunCli(arguments, out, err), 74) << arguments[0];
    EXPECT_NE(err.str().find("cannot write to standard output"), std::string::npos) << err.str();
  }
}

TEST(CliTest, WrongOptionsNameTheNearest) {
  EXPECT_EQ(RunAlone({"list", "--jsno"}).err, "motley: 'motley list' has no option --jsno; did you mean --json?\n");
  EXPECT_THAT(RunAlone({"plan", "--optimizer", "adam8bit"}).err, HasSubstr("--optimizer: AdamW with its state in float32 is"));
  EXPECT_THAT(RunAlone({"plan", "--lora=16"}).err, HasSubstr("has no option --lora=16: Motley trains all weights"));
  EXPECT_THAT(RunAlone({"plan", "--nodes=a"}).err, HasSubstr("--exclude, of a job planner.exclude, leaves some out"));
  EXPECT_THAT(RunAlone({"estimate", "--seq-len", "2k"}).err, HasSubstr("got 2k; numbers are written out: 2048 or 2000"));
  EXPECT_THAT(RunAlone({"plan", "--cluster", "2x3090"}).err, HasSubstr("`motley clusters two-4090 >lab.toml`"));
  EXPECT_THAT(RunAlone({"submit", "x", "--offload=never"}).err, HasSubstr("a job's file says it: planner.offload"));
  EXPECT_THAT(RunAlone({"plan", "--turbo"}).err, HasSubstr("has no option --turbo; see 'motley help plan'"))
      << "nothing is like it, though all begin with two dashes";
  EXPECT_EQ(RunAlone({"submit", "x", "--st=a=b"}).err, "motley: 'motley submit' has no option --st=a=b; did you mean --set?\n");
  EXPECT_NE(RunAlone({"logs", "j", "--zzzzzzzzz"}).err.find("see 'motley help logs'"), std::string::npos);
  const Ran more = RunAlone({"status", "a", "b"});
  EXPECT_EQ(more.code, 64);
  EXPECT_EQ(more.err, "motley: 'motley status' has no use for 'b'; it is called as: motley status [OPTIONS] JOB\n");
  for (const auto& [typed, meant] :
       std::vector<std::pair<std::vector<std::string>, std::string>>{{{"drain", "a"}, "nodes drain"},
                                                                     {{"forget", "a"}, "node forget"},
                                                                     {{"nodes", "forget", "c"}, "node forget"},
                                                                     {{"node", "undrain", "c"}, "nodes undrain"},
                                                                     {{"cancel", "j"}, "stop"},
                                                                     {{"help", "nodes", "token"}, "node token"}}) {
    EXPECT_NE(RunAlone(typed).err.find("did you mean '" + meant + "'?"), std::string::npos) << RunAlone(typed).err;
  }
  EXPECT_EQ(RunAlone({"help", "sumbit"}).err, "motley: unknown command 'sumbit'; did you mean 'submit'?\n");
  EXPECT_NE(RunAlone({"status"}).err.find("see 'motley help status'"), std::string::npos);
}

TEST(CliTest, WholeNumbersAreSaidToBeWanted) {
  EXPECT_EQ(RunAlone({"data", "show", "x", "--row", "y"}).err,
            "motley: --row: must be a whole number from 0, got 'y'; see 'motley help data show'\n");
  EXPECT_EQ(RunAlone({"metrics", "j", "-n", "0"}).err,
            "motley: --limit: must be a whole number from 1, got '0'; see 'motley help metrics'\n");
  EXPECT_EQ(RunAlone({"wait", "j", "--timeout", "x"}).err,
            "motley: --timeout: must be a number of seconds, more than 0, got 'x'; see 'motley help wait'\n");
  for (const char* words : {"data show x --row -1", "data show x --row 1.5", "logs j -n 1e400", "plan j --programs --rank -1"}) {
    const Ran ran = RunAlone(absl::StrSplit(words, ' '));
    EXPECT_EQ(ran.code, 64) << words;
    EXPECT_NE(ran.err.find("must be a whole number from 0, got '"), std::string::npos) << ran.err;
  }
}

TEST(CliTest, HelpNamesEveryCommand) {
  const Ran help = RunAlone({"--help"});
  EXPECT_EQ(help.code, 0);
  for (const Command& command : Commands()) {
    EXPECT_EQ(RunAlone({command.name, "--help"}).code, 0) << command.name;
    if (std::string(command.name) == "man" || std::string(command.name) == "completion") continue;  // hidden
    EXPECT_NE(help.out.find(command.name), std::string::npos) << command.name;
  }
  EXPECT_EQ(RunAlone({"--version"}).out, BuildInfo("motley") + "\n");
}

TEST(CliTest, UnreachableCoordinatorIs69AndSaysWhatToDo) {
  for (const char* command : {"list", "nodes", "events"}) {
    const Ran ran = RunAlone({"--coordinator", "127.0.0.1:1", command});
    EXPECT_EQ(ran.code, 69) << command;
    EXPECT_NE(ran.err.find("no coordinator answers at 127.0.0.1:1"), std::string::npos) << ran.err;
    EXPECT_NE(ran.err.find("MOTLEY_COORDINATOR"), std::string::npos);
  }
}

// By the reason, not by a clock: one that waited would say so.
TEST(CliTest, ARefusalAndAnUnknownHostAreSaidAtOnce) {
  const auto refused = Connection::Open("127.0.0.1:1", {.connect = absl::InfiniteDuration()});
  EXPECT_NE(std::string(refused.status().message()).find("Connection refused"), std::string::npos) << refused.status();
  const auto unknown = Connection::Open("no-such-host.invalid:7070", {.connect = absl::Minutes(5)});
  EXPECT_EQ(std::string(unknown.status().message()).find("waited"), std::string::npos) << unknown.status();
  const auto no_socket = Connection::Open("unix:/nowhere/coordinator.sock", {.connect = absl::InfiniteDuration()});
  EXPECT_NE(std::string(no_socket.status().message()).find("No such file"), std::string::npos) << no_socket.status();
}

TEST(CliTest, AProxyOfTheEnvironmentIsNotAsked) {
  FakeMotley server;
  for (const char* variable : {"http_proxy", "https_proxy", "grpc_proxy"}) {
    setenv(variable, "http://127.0.0.1:9", 1);
    EXPECT_EQ(RunAlone({"--coordinator", server.address(), "list"}).code, 0) << variable;
    unsetenv(variable);
  }
}

TEST(CliTest, OnlyARefusalOfGrpcItselfIsAnotherVersions) {
  const absl::Status own = FromGrpc({grpc::StatusCode::UNIMPLEMENTED, "planner.plan_json: each rank needs a key-value head"});
  EXPECT_EQ(own.message(), "planner.plan_json: each rank needs a key-value head");
  EXPECT_EQ(own.code(), absl::StatusCode::kUnimplemented);
  const absl::Status lacks = FromGrpc({grpc::StatusCode::UNIMPLEMENTED, ""});
  EXPECT_EQ(lacks.message(), "the coordinator does not know this request; is it another version?");
}

TEST(CliTest, APageOfHttpIsNoCoordinator) {
  const absl::Status portal = FromGrpc({grpc::StatusCode::UNIMPLEMENTED, "Received http2 header with status: 404"});
  EXPECT_EQ(portal.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(portal.message(),
            "who answers there is no coordinator: it says HTTP status 404; is the port right, or does a proxy or a login page "
            "answer in its place?");
}

// A port where the connection is taken and nobody speaks.
TEST(CliTest, SilenceIsSaidBeforeItIsGivenUp) {
  const int listening = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  ASSERT_EQ(bind(listening, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(listen(listening, 8), 0);
  ASSERT_EQ(getsockname(listening, reinterpret_cast<sockaddr*>(&address), &size), 0);
  std::ostringstream out, err;
  const std::string where = absl::StrCat("127.0.0.1:", ntohs(address.sin_port));
  const int code = RunCli({"--coordinator", where, "list"}, out, err,
                          {.connect = absl::Milliseconds(300), .silence = absl::Milliseconds(100)});
  close(listening);
  EXPECT_EQ(code, 69);
  EXPECT_NE(err.str().find(absl::StrCat("no answer from ", where, " yet; waiting 200 ms more\n")), std::string::npos)
      << err.str();
  EXPECT_NE(err.str().find("waited 300 ms"), std::string::npos) << err.str();
}

TEST(CliTest, AUrlIsWrongUsageAndSaysWhatToWrite) {
  const Ran ran = RunAlone({"--coordinator", "http://127.0.0.1:7070/", "list"});
  EXPECT_EQ(ran.code, 64);
  EXPECT_NE(ran.err.find("is a URL; the coordinator speaks gRPC: write 127.0.0.1:7070"), std::string::npos) << ran.err;
  EXPECT_NE(RunAlone({"--coordinator", "https://host", "list"}).err.find("write HOST:PORT"), std::string::npos);
}

TEST(CliTest, ASocketThatIsNotThereIs69) {
  const Ran ran = RunAlone({"--coordinator", "unix:/nowhere/coordinator.sock", "list"});
  EXPECT_EQ(ran.code, 69);
  EXPECT_NE(ran.err.find("no coordinator answers at unix:/nowhere/coordinator.sock"), std::string::npos) << ran.err;
}

TEST(CliTest, AnAddressThatCannotBeOneIsWrongUsage) {
  for (const char* address : {"foo", ":7070", "host:port", "host:0", "host:70000", "unix:"}) {
    const Ran ran = RunAlone({"--coordinator", address, "list"});
    EXPECT_EQ(ran.code, 64) << address;
    EXPECT_NE(ran.err.find("is not HOST:PORT"), std::string::npos) << ran.err;
  }
}

TEST(CliTest, UnknownJobsAndNodesAre66) {
  FakeMotley fake;
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {"status", "x"}, {"metrics", "x"}, {"stop", "x"}, {"plan", "x"}, {"export", "x", "--out", "/nowhere"}}) {
    const Ran ran = Motley(fake, arguments);
    EXPECT_EQ(ran.code, 66) << arguments[0];
    EXPECT_EQ(ran.err, "motley: no job 'x'\n");
  }
  EXPECT_EQ(Motley(fake, {"nodes", "drain", "x"}).code, 66);
}

TEST(CliTest, NodesAsTableAndJson) {
  FakeMotley fake;
  v1::Node& node = fake.nodes["a"];
  node.set_name("a");
  node.set_state("ready");
  v1::Device* device = node.add_devices();
  device->set_id("a/gpu0");
  device->set_model("L4");
  device->set_memory_bytes(int64_t{24} << 30);
  device->set_measured_tokens_per_second(1234);
  device->set_measured_model("gpt2 124M");
  const Ran table = Motley(fake, {"nodes"});
  EXPECT_EQ(table.code, 0);
  for (const char* part : {"a/gpu0", "L4", "24.0 GiB", "1.2k tokens/s of gpt2 124M", "ready"})
    EXPECT_NE(table.out.find(part), std::string::npos) << part;
  const json parsed = json::parse(Motley(fake, {"-o", "json", "nodes"}).out);
  EXPECT_EQ(parsed["nodes"][0]["devices"][0]["memory_bytes"], int64_t{24} << 30);
  EXPECT_EQ(parsed["nodes"][0]["devices"][0]["declared_flops_per_second"], json());  // what is not known is null
  EXPECT_EQ(json::parse(Motley(fake, {"nodes", "-o", "json"}).out), parsed);
  EXPECT_EQ(table.out.find("CARD"), std::string::npos) << "there is none";
  EXPECT_EQ(Motley(fake, {"nodes", "drain", "a"}).out, "node a is draining\n");
  EXPECT_EQ(json::parse(Motley(fake, {"nodes", "undrain", "a", "-o", "json"}).out)["state"], "ready");
}

TEST(CliTest, StatusWithMemory) {
  FakeMotley fake;
  fake.AddJob("j-1", v1::JOB_STATE_RUNNING);
  v1::RankMemory& rank = fake.memory.emplace_back();
  rank.set_device("n1/gpu0");
  const auto add = [&rank](const char* tier, const char* purpose, int64_t planned) {
    v1::MemoryUse* use = rank.add_uses();
    use->set_tier(tier);
    use->set_purpose(purpose);
    use->set_planned_bytes(planned);
    return use;
  };
  add("device", "parameters", 3 << 20);
  add("device", "slots", 0)->set_measured_bytes(0);
  v1::MemoryUse* tensors = add("device", "tensors", 5 << 20);
  tensors->set_measured_bytes(4 << 20);
  tensors->set_left_bytes(1 << 20);
  const Ran ran = Motley(fake, {"status", "j-1", "--memory"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  for (const char* line :
       {"RANK +DEVICE +TIER +PURPOSE +PLANNED +MEASURED +LEFT", "0 +n1/gpu0 +device +parameters +3.0 MiB +- +-",
        "0 +n1/gpu0 +device +tensors +5.0 MiB +4.0 MiB +1.0 MiB"}) {
    EXPECT_TRUE(std::regex_search(ran.out, std::regex(line))) << line << "\n" << ran.out;
  }
  EXPECT_EQ(ran.out.find("slots"), std::string::npos) << "it has none";
  EXPECT_EQ(ran.out.find("ran out of memory"), std::string::npos) << ran.out;
  rank.set_memory_bytes(16 << 20);
  rank.set_usable_memory_bytes(12 << 20);
  rank.set_memory_corrections(1);
  EXPECT_NE(Motley(fake, {"status", "j-1", "--memory"})
                .out.find("n1/gpu0 ran out of memory: plans count on 12.0 MiB of its 16.0 MiB, corrected 1 time; "
                          "`motley node measure n1` takes that back\n"),
            std::string::npos);
  rank.set_memory_corrections(0);
  EXPECT_NE(Motley(fake, {"status", "j-1", "--memory"})
                .out.find("n1/gpu0 has less memory by its probe: plans count on 12.0 MiB of its 16.0 MiB; `motley node measure"),
            std::string::npos);
  rank.set_memory_corrections(1);
  const json memory = json::parse(Motley(fake, {"-o", "json", "status", "j-1", "--memory"}).out)["memory"];
  ASSERT_EQ(memory.size(), 1u);
  EXPECT_EQ(memory[0]["rank"], 0);
  EXPECT_EQ(memory[0]["uses"].size(), 3u);
  EXPECT_EQ(memory[0]["usable_memory_bytes"], 12 << 20);
  EXPECT_EQ(memory[0]["memory_corrections"], 1);
  EXPECT_TRUE(memory[0]["uses"][0]["measured_bytes"].is_null());
  EXPECT_EQ(memory[0]["uses"][2]["left_bytes"], 1 << 20);
  EXPECT_TRUE(json::parse(Motley(fake, {"-o", "json", "status", "j-1"}).out)["memory"].is_null());
  EXPECT_EQ(Motley(fake, {"status", "x", "--memory"}).code, 66);
}

TEST(CliTest, ListAndStatus) {
  FakeMotley fake;
  EXPECT_NE(Motley(fake, {"list"}).out.find("no jobs"), std::string::npos);
  fake.AddJob("j-1", v1::JOB_STATE_RUNNING).set_reason("with \x1b[31mcolour");
  fake.AddRun("j-1", 2);
  fake.jobs["j-1"].mutable_spec()->mutable_training()->set_global_batch_size(8);
  fake.jobs["j-1"].mutable_spec()->mutable_training()->set_seq_len(1000);
  fake.jobs["j-1"].set_training_tokens(10'000);
  fake.jobs["j-1"].set_epoch(1);
  const Ran list = Motley(fake, {"list"});
  EXPECT_NE(list.out.find("j-1"), std::string::npos);
  EXPECT_NE(list.out.find("running"), std::string::npos);
  EXPECT_NE(list.out.find("2/3"), std::string::npos);
  EXPECT_EQ(list.out.find('\x1b'), std::string::npos) << "control characters must not reach the terminal";
  fake.jobs["j-1"].set_step(1);
  EXPECT_EQ(Motley(fake, {"list"}).out.find("3.0000"), std::string::npos) << "the loss of another step than is shown";
  fake.jobs["j-1"].set_step(2);
  const Ran status = Motley(fake, {"status", "j-1"});
  for (const char* part : {"step        2 of 3, generation 1 of its plan\n", "loss        3.0000",
                           "tokens      16 000 of 24 000 seen, 1.60 passes over the data\n"})
    EXPECT_NE(status.out.find(part), std::string::npos) << status.out;
  EXPECT_NE(status.out.find("predicted 0.400 s, +25.0 %"), std::string::npos) << status.out;
  const json parsed = json::parse(Motley(fake, {"-o", "json", "status", "j-1"}).out);
  EXPECT_EQ(parsed["state"], "running");
  EXPECT_EQ(parsed["finished_unix_ms"], json());
  EXPECT_EQ(parsed["last_step"]["generation"], 1);
  EXPECT_FALSE(parsed["last_step"].contains("epoch") || parsed["last_step"].contains("has_validation_loss"));
  for (const char* none : {"validation_loss", "validation_perplexity", "validation_bits_per_byte"})
    EXPECT_EQ(parsed["last_step"].at(none), json()) << none;
  EXPECT_EQ(parsed["step"], 2);
  const json listed = json::parse(Motley(fake, {"-o", "json", "list"}).out)["jobs"][0];
  EXPECT_FALSE(listed.contains("spec"));
  EXPECT_EQ(listed["steps"], 3);
  EXPECT_EQ(listed["last_step"], parsed["last_step"]);
  EXPECT_EQ(status.out.find("host  "), std::string::npos) << status.out;
  v1::StepRecord& validated = *fake.jobs["j-1"].mutable_last_step();
  validated.set_has_validation_loss(true);
  validated.set_validation_loss(1.2345);
  validated.set_validation_perplexity(3.4367);
  validated.set_validation_bits_per_byte(0.714);
  EXPECT_NE(Motley(fake, {"status", "j-1"}).out.find("validation  loss 1.2345 (perplexity 3.44; 0.71 bits a byte)\n"),
            std::string::npos);
  const json figures = json::parse(Motley(fake, {"-o", "json", "status", "j-1"}).out)["last_step"];
  EXPECT_EQ(figures["validation_perplexity"], 3.4367);
  EXPECT_EQ(figures["validation_bits_per_byte"], 0.714);
  fake.jobs["j-1"].mutable_last_step()->set_lateness_seconds(0.3);
  EXPECT_NE(Motley(fake, {"status", "j-1"})
                .out.find("\nhost        too slow for the emulation: it made a device late by 0.3 s in a "
                          "step of 0.5 s"),
            std::string::npos);
  // Replanned: what the generation before did says nothing of the steps to come.
  fake.jobs["j-1"].set_epoch(2);
  fake.jobs["j-1"].set_step(1);
  const std::string replanned = Motley(fake, {"status", "j-1"}).out;
  EXPECT_NE(replanned.find("last step   2 of generation 1; generation 2 has made none yet and repeats"), std::string::npos)
      << replanned;
  for (const char* stale : {"loss  ", "speed  ", "left"}) EXPECT_EQ(replanned.find(stale), std::string::npos) << replanned;
}

TEST(CliTest, ListFollowsAllPages) {
  FakeMotley fake;  // has two jobs on a page
  for (const char* id : {"a", "b", "c", "d", "e"}) fake.AddJob(id, v1::JOB_STATE_QUEUED);
  const json list = json::parse(Motley(fake, {"-o", "json", "list"}).out);
  ASSERT_EQ(list["jobs"].size(), 5u);
  EXPECT_EQ(list["jobs"][4]["id"], "e");
  EXPECT_FALSE(list.contains("next_page_token"));
}

TEST(CliTest, EventsAndLogs) {
  FakeMotley fake;
  fake.AddJob("j", v1::JOB_STATE_RUNNING);
  for (int i = 1; i <= 2; ++i) {
    v1::Event& event = fake.events.emplace_back();
    event.set_sequence(i);
    event.set_kind("node_joined");
    event.set_node(absl::StrCat("n", i));
    event.set_job_id(i == 1 ? "j" : "");
    v1::LogLine& line = fake.lines.emplace_back();
    line.set_sequence(i);
    line.set_source("a/gpu0");
    line.set_text(absl::StrCat("line ", i));
  }
  EXPECT_EQ(json::parse(Motley(fake, {"-o", "json", "events"}).out)["events"].size(), 2u);
  EXPECT_EQ(json::parse(Motley(fake, {"-o", "json", "events", "j"}).out)["events"].size(), 1u);
  EXPECT_NE(Motley(fake, {"events", "-f"}).out.find("node_joined  n2"), std::string::npos);
  EXPECT_NE(Motley(fake, {"logs", "j"}).out.find("a/gpu0  line 2"), std::string::npos);
  EXPECT_EQ(json::parse(Motley(fake, {"-o", "json", "logs", "j"}).out)["lines"][1]["text"], "line 2");
}

}  // namespace
}  // namespace motley::client
