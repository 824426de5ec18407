// What many cost one coordinator, in memory and processor time: 1,000 jobs with a watcher each, 3,000 workers, 1,000 listeners
// while a job says 100 lines a second; and what people wait for beside 10,000 workers. The coordinator runs in a process of its
// own; the crowd is all in this one.
//
//   crowd_bench [--json F] [--seconds S] [--only members]        S: of each measurement, 10
//
// `members`: 3,000 workers that come by TLS, which takes some two minutes, and what their heartbeats cost beside plaintext.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "common/base/logging.h"
#include "common/rpc/channel.h"
#include "common/rpc/tls_credentials.h"
#include "common/wire/job.h"
#include "coordinator/server.h"
#include "tests/bench/bench_report.h"
#include "tests/bench/crowd_clients.h"
#include "tests/bench/crowd_members.h"
#include "tests/coordinator/rpc/fake_worker.h"
#include "tests/coordinator/rpc/tiny_job.h"

namespace motley::bench {
namespace {

using coordinator::FakeWorker;

constexpr int kJobs = 1000, kWorkers = 3000, kListeners = 1000, kLinesPerSecond = 100;
// Flags of this program as a coordinator: without TLS, with a long lease, and with both.
constexpr char kPlain[] = "--serve", kPatient[] = "--serve-patient", kByTls[] = "--serve-tls";
constexpr int kFlood = 10000, kFloodOnAConnection = 5, kFloodHertz = 2;

[[noreturn]] void Give(const std::string& what) {
  std::fprintf(stderr, "crowd_bench: %s\n", what.c_str());
  std::exit(1);
}

// This program again, as a coordinator: prints its addresses and serves until its input ends.
int Serve(const std::string& folder, const std::string& manner) {
  RequireTls13();
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  coordinator::Config config;
  config.socket = folder + "/coordinator.sock";
  config.workers_listen = "127.0.0.1:0";
  config.workers_tls = manner == kByTls;
  // The crowd's own handshakes take this machine's processor, too, and its heartbeats wait behind them.
  if (manner != kPlain) config.lease = absl::Minutes(1);
  config.metrics = "";
  config.state_folder = folder + "/state";
  InitLogging("coordinator", LogLevel::kWarning);
  const auto server = coordinator::Server::Start(config);
  if (!server.ok()) Give(std::string(server.status().message()));
  std::printf("%s\n%s\n", (*server)->address().c_str(), (*server)->workers_address().c_str());
  std::fflush(stdout);
  while (std::getchar() != EOF) continue;
  return 0;
}

struct Usage {
  double cpu_seconds = 0, wall_seconds = 0;
};

// A coordinator of its own for each measurement, with its state in a temporary folder.
class Coordinator {
 public:
  explicit Coordinator(const char* manner = kPlain) {
    std::string pattern = (std::filesystem::temp_directory_path() / "motley-crowd-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    int in[2], out[2];
    if (pipe(in) != 0 || pipe(out) != 0) Give("no pipe");
    pid_ = fork();
    if (pid_ == 0) {
      dup2(in[0], STDIN_FILENO);
      dup2(out[1], STDOUT_FILENO);
      for (const int fd : {in[0], in[1], out[0], out[1]}) close(fd);
      execl("/proc/self/exe", "crowd_bench", manner, folder_.c_str(), nullptr);
      _exit(1);
    }
    close(in[0]), close(out[1]);
    input_ = in[1];
    std::FILE* said = fdopen(out[0], "r");
    for (std::string* address : {&people_, &workers_}) {
      char line[256];
      if (std::fgets(line, sizeof(line), said) == nullptr) Give("the coordinator did not start");
      *address = std::string(line, std::strcspn(line, "\n"));
    }
    std::fclose(said);
  }
  ~Coordinator() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    close(input_);
    std::filesystem::remove_all(folder_);
  }
  const std::string& people() const { return people_; }
  const std::string& workers() const { return workers_; }

  double ResidentMib() const {
    std::ifstream status("/proc/" + std::to_string(pid_) + "/status");
    for (std::string line; std::getline(status, line);) {
      if (line.rfind("VmRSS:", 0) == 0) return std::atof(line.c_str() + 6) / 1024;
    }
    Give("the coordinator has ended");
  }
  Usage Used() const {
    std::ifstream stat("/proc/" + std::to_string(pid_) + "/stat");
    std::string text((std::istreambuf_iterator<char>(stat)), {});
    const char* from = std::strrchr(text.c_str(), ')');
    long user = 0, system = 0;  // NOLINT: as printed by the kernel
    if (from == nullptr || std::sscanf(from + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %ld %ld", &user, &system) != 2) {
      Give("the coordinator has ended");
    }
    return {static_cast<double>(user + system) / static_cast<double>(sysconf(_SC_CLK_TCK)),
            absl::ToUnixMicros(absl::Now()) * 1e-6};
  }

 private:
  std::string folder_, people_, workers_;
  pid_t pid_ = 0;
  int input_ = -1;
};

// Cores that it takes meanwhile: processor time of another process, so `meanwhile` lasts in real seconds.
double Cores(const Coordinator& coordinator, const std::function<void()>& meanwhile) {
  const Usage before = coordinator.Used();
  meanwhile();
  const Usage after = coordinator.Used();
  return (after.cpu_seconds - before.cpu_seconds) / (after.wall_seconds - before.wall_seconds);
}

void WaitUntil(const std::string& what, const std::function<bool()>& done) {
  for (const absl::Time begin = absl::Now(); !done(); absl::SleepFor(absl::Milliseconds(20))) {
    if (absl::Now() - begin > absl::Minutes(2)) Give("two minutes are over: " + what);
  }
}

std::string JobName(int number) { return absl::StrCat("job-", number); }

void Submit(v1::Motley::Stub& stub, const std::string& id) {
  v1::SubmitJobRequest request;
  request.set_job_id(id);
  *request.mutable_spec() = wire::ToProto(coordinator::TinyJob(1'000'000, "/checkpoints"));
  grpc::ClientContext context;
  v1::SubmitJobResponse response;
  const grpc::Status status = stub.SubmitJob(&context, request, &response);
  if (!status.ok()) Give(absl::StrCat("submit ", id, ": ", status.error_message()));
}

std::unique_ptr<Listener<v1::JobUpdate>> WatchOf(const Coordinator& coordinator, const std::string& job,
                                                 std::atomic<int64_t>* seen) {
  v1::WatchJobRequest request;
  request.set_job_id(job);
  return std::make_unique<Listener<v1::JobUpdate>>(coordinator.people(), seen, [&](auto& stub, auto* context, auto* reactor) {
    stub.async()->WatchJob(context, &request, reactor);
  });
}

std::unique_ptr<Listener<v1::LogLine>> LogsOf(const Coordinator& coordinator, const std::string& job,
                                              std::atomic<int64_t>* seen) {
  v1::TailLogsRequest request;
  request.set_job_id(job);
  request.set_follow(true);
  return std::make_unique<Listener<v1::LogLine>>(coordinator.people(), seen, [&](auto& stub, auto* context, auto* reactor) {
    stub.async()->TailLogs(context, &request, reactor);
  });
}

template <typename Listeners>
void WaitForAll(const Listeners& listeners) {
  WaitUntil("not every stream began",
            [&] { return std::all_of(listeners.begin(), listeners.end(), [](const auto& l) { return l->began(); }); });
}

void JobsAndWatchers(absl::Duration time, Report* report) {
  Coordinator coordinator;
  const double idle = coordinator.ResidentMib();
  const auto stub = v1::Motley::NewStub(OpenChannel(coordinator.people()));
  for (int i = 0; i < kJobs; ++i) Submit(*stub, JobName(i));
  const double with_jobs = coordinator.ResidentMib();
  std::atomic<int64_t> seen = 0;
  std::vector<std::unique_ptr<Listener<v1::JobUpdate>>> watchers;
  for (int i = 0; i < kJobs; ++i) watchers.push_back(WatchOf(coordinator, JobName(i), &seen));
  WaitForAll(watchers);
  report->Add("coordinator alone: resident", idle, "MiB");
  report->Add("1,000 jobs: resident", with_jobs, "MiB");
  report->AddGoal("1,000 jobs with a watcher each: resident", coordinator.ResidentMib(), "MiB", 256);
  report->Add("1,000 jobs with a watcher each, nothing happens", Cores(coordinator, [&] { absl::SleepFor(time); }), "cores");
}

// Workers of one coordinator that beat evenly, each `hertz` times a second.
class Crowd {
 public:
  // `dial`: the channel of worker i's connection.
  Crowd(int count, int on_a_connection, int hertz, const std::function<std::shared_ptr<grpc::Channel>(int i)>& dial)
      : count_(count) {
    std::shared_ptr<grpc::Channel> channel;
    for (int i = 0; i < count; ++i) {
      if (i % on_a_connection == 0) channel = dial(i);
      workers_.push_back(std::make_unique<IdleWorker>(channel, absl::StrCat("n", i), &alive_));
    }
    heart_ = std::thread([this, hertz] {
      size_t at = 0;
      for (absl::Time next = absl::Now(); !over_; next += absl::Milliseconds(10)) {
        for (int i = 0; i < count_ * hertz / 100; ++i) workers_[at++ % workers_.size()]->Beat();
        absl::SleepFor(next - absl::Now());
      }
    });
    WaitUntil("not every worker was welcomed", [&] { return all_alive(); });
  }
  ~Crowd() {
    over_ = true;
    heart_.join();
  }
  bool all_alive() const { return alive_ == count_; }
  int64_t answers() const {
    int64_t answers = 0;
    for (const auto& worker : workers_) answers += worker->answers();
    return answers;
  }

 private:
  const int count_;
  std::atomic<int> alive_ = 0;
  std::vector<std::unique_ptr<IdleWorker>> workers_;
  std::atomic<bool> over_ = false;
  std::thread heart_;
};

void Workers(absl::Duration time, Report* report) {
  Coordinator coordinator;
  const Crowd crowd(kWorkers, 1, 1, [&](int) { return OpenChannel(coordinator.workers()); });
  const double cores = Cores(coordinator, [&] { absl::SleepFor(time); });
  report->AddGoal("3,000 workers: resident", coordinator.ResidentMib(), "MiB", 256);
  report->AddGoal("3,000 workers, a heartbeat a second each", cores, "cores", 0.5);
  report->AddCheck("3,000 workers: none was lost meanwhile", crowd.all_alive());
}

// All dial at once, as after a restart of the coordinator. Then the same heartbeats with and without TLS, in turns.
void MembersByTls(absl::Duration time, Report* report) {
  RequireTls13();
  Coordinator by_tls(kByTls);
  Members members;
  if (const grpc::Status status = members.Join(by_tls.people(), by_tls.workers(), kWorkers); !status.ok())
    Give("join: " + status.error_message());
  const double before = by_tls.ResidentMib();
  const Usage begin = by_tls.Used();
  const Crowd crowd(kWorkers, 1, 1, [&](int i) { return members.Dial(i); });
  const Usage end = by_tls.Used();
  report->AddGoal("3,000 members dial at once: until all are in", end.wall_seconds - begin.wall_seconds, "s", 60);
  report->AddGoal("3,000 members dial at once: processor time", end.cpu_seconds - begin.cpu_seconds, "s", 15);
  report->AddGoal("a session by TLS: resident", (by_tls.ResidentMib() - before) * 1024 / kWorkers, "KiB", 150);
  Coordinator plain(kPatient);
  const Crowd plain_crowd(kWorkers, 1, 1, [&](int) { return OpenChannel(plain.workers()); });
  std::vector<double> ratios;
  for (int turn = 0; turn < 5; ++turn) {
    const double without = Cores(plain, [&] { absl::SleepFor(time); });
    ratios.push_back(Cores(by_tls, [&] { absl::SleepFor(time); }) / without);
  }
  std::sort(ratios.begin(), ratios.end());
  report->AddGoal("heartbeats by TLS / in plaintext, median of 5", ratios[2], "1", 1.15);
  report->AddCheck("3,000 members: none was lost meanwhile", crowd.all_alive() && plain_crowd.all_alive());
}

// What people wait for beside more heartbeats than one coordinator can take: asked without a pause, each time anew.
void PeopleBesideAFlood(absl::Duration time, Report* report) {
  Coordinator coordinator;
  const Crowd crowd(kFlood, kFloodOnAConnection, kFloodHertz, [&](int) { return OpenChannel(coordinator.workers()); });
  const auto ask = [&](const std::string& what, const std::function<void(v1::Motley::Stub&)>& call) {
    std::vector<double> seconds;
    for (const absl::Time end = absl::Now() + time; absl::Now() < end;) {
      const absl::Time begin = absl::Now();
      call(*v1::Motley::NewStub(OpenChannel(coordinator.people())));
      seconds.push_back(absl::ToDoubleSeconds(absl::Now() - begin));
    }
    std::sort(seconds.begin(), seconds.end());
    report->Add(absl::StrCat("10,000 workers flood: ", what, ", median"), seconds[seconds.size() / 2], "s");
    report->AddGoal(absl::StrCat("10,000 workers flood: ", what, ", longest"), seconds.back(), "s", 2);
  };
  const int64_t before = crowd.answers();
  absl::SleepFor(time);
  report->Add("10,000 workers flood: heartbeats answered while nobody asks",
              static_cast<double>(crowd.answers() - before) / absl::ToDoubleSeconds(time), "1/s");
  ask("motley list", [](v1::Motley::Stub& stub) {
    grpc::ClientContext context;
    v1::ListJobsResponse response;
    const grpc::Status status = stub.ListJobs(&context, {}, &response);
    if (!status.ok()) Give("list the jobs: " + status.error_message());
  });
  ask("motley nodes", [](v1::Motley::Stub& stub) {
    if (ListNodes(stub) != kFlood) Give("a page has gone");
  });
  report->AddCheck("10,000 workers flood: none was lost meanwhile", crowd.all_alive());
}

// A job that trains on one invented worker, which says 100 lines a second while `listeners` listen.
class TalkingJob {
 public:
  explicit TalkingJob(const Coordinator& coordinator)
      : stub_(v1::Motley::NewStub(OpenChannel(coordinator.people()))), worker_(coordinator.workers(), "n1", {}) {
    Submit(*stub_, "talks");
    ranks_ = worker_.WaitForStart();
    if (ranks_.empty()) Give("the job did not start");
    worker_.SendAll(v1::RankEvent::KIND_READY);
    worker_.StepTo(1);
  }
  void Talk(absl::Duration time) {
    const absl::Time begin = absl::Now();
    for (int i = 0; i < kLinesPerSecond * absl::ToInt64Seconds(time); ++i) {
      v1::WorkerMessage message;
      v1::LogChunk* log = message.mutable_log();
      log->set_job_id("talks");
      log->set_epoch(ranks_[0].epoch());
      log->set_source(ranks_[0].device().id());
      log->set_text(absl::StrCat("line ", i, " of what a rank may say\n"));
      worker_.Send(message);
      absl::SleepFor(begin + absl::Seconds(1.0 * (i + 1) / kLinesPerSecond) - absl::Now());
    }
  }

 private:
  std::unique_ptr<v1::Motley::Stub> stub_;
  FakeWorker worker_;
  std::vector<v1::RankAssignment> ranks_;
};

template <typename MakeListener>
void Listeners(const std::string& what, absl::Duration time, bool jobs, const MakeListener& make, Report* report) {
  Coordinator coordinator;
  TalkingJob talking(coordinator);
  if (jobs) {
    const auto stub = v1::Motley::NewStub(OpenChannel(coordinator.people()));
    for (int i = 0; i < kListeners; ++i) Submit(*stub, JobName(i));
  }
  talking.Talk(absl::Seconds(1));  // a first line for those who wait for one
  std::atomic<int64_t> seen = 0;
  std::vector<decltype(make(coordinator, 0, &seen))> listeners;
  for (int i = 0; i < kListeners; ++i) listeners.push_back(make(coordinator, i, &seen));
  WaitForAll(listeners);
  const int64_t before = seen;
  const double cores = Cores(coordinator, [&] { talking.Talk(time); });
  report->Add(what, cores, "cores");
  report->Add(what + ": received", static_cast<double>(seen - before) / absl::ToDoubleSeconds(time), "messages/s");
}

int Main(int argc, char** argv) {
  rlimit files;
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  for (const char* manner : {kPlain, kPatient, kByTls}) {
    if (const std::string folder = Report::Flag(argc, argv, manner); !folder.empty()) return Serve(folder, manner);
  }
  const std::string seconds = Report::Flag(argc, argv, "--seconds");
  const absl::Duration time = absl::Seconds(seconds.empty() ? 10 : std::max(1, std::atoi(seconds.c_str())));
  Report report;
  if (Report::Flag(argc, argv, "--only") == "members") {
    MembersByTls(time, &report);
    return report.Finish(argc, argv);
  }
  JobsAndWatchers(time, &report);
  Workers(time, &report);
  PeopleBesideAFlood(time, &report);
  Listeners(
      "1,000 watchers of other jobs, a job says 100 lines/s", time, true,
      [](const Coordinator& c, int i, std::atomic<int64_t>* seen) { return WatchOf(c, JobName(i), seen); }, &report);
  Listeners(
      "1,000 watchers of a job that says 100 lines/s", time, false,
      [](const Coordinator& c, int, std::atomic<int64_t>* seen) { return WatchOf(c, "talks", seen); }, &report);
  Listeners(
      "1,000 readers of the log of a job that says 100 lines/s", time, false,
      [](const Coordinator& c, int, std::atomic<int64_t>* seen) { return LogsOf(c, "talks", seen); }, &report);
  return report.Finish(argc, argv);
}

}  // namespace
}  // namespace motley::bench

int main(int argc, char** argv) { return motley::bench::Main(argc, argv); }
