// Strangers at the workers' port of a running coordinator, one dial after the other: greetings that invent generations and marks
// of the store, or nodes that declare impossible devices. tests/integration/faults_strangers.py measures what a job beside them
// loses.
//
//   strangers_bench --workers HOST:PORT --kind greetings|declarations --job ID [--seconds S] [--each S] [--tls yes]
//
// Prints how many dials there were and how many were let in.
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/rpc/tls_credentials.h"
#include "tests/coordinator/rpc/fake_worker.h"

namespace motley::bench {
namespace {

using coordinator::FakeWorker;

constexpr int64_t kClaims[] = {5, 50, 1'000, 1'000'000, 1'000'000'000'000, 1'000'000'000'000'000, int64_t{1} << 62};
constexpr int64_t kMemory[] = {1, 100, int64_t{1} << 20, int64_t{1} << 50, int64_t{9'000'000'000'000'000}};

template <typename T, size_t N>
T Turn(const T (&values)[N], int64_t dial) {
  return values[static_cast<size_t>(dial) % N];
}

FakeWorker::Options Greeting(const std::string& job, const v1::StoreMark& known, int64_t dial) {
  FakeWorker::Options options;
  options.answer_storage = false;
  options.on_hello = [=](v1::Hello& hello) {
    v1::JobEpoch* newest = hello.add_newest_epochs();
    newest->set_job_id(job);
    newest->set_epoch(Turn(kClaims, dial) + dial);
    *hello.mutable_store_mark() = known;
    hello.mutable_store_mark()->set_commits(known.commits() + Turn(kClaims, dial + 1));
  };
  return options;
}

FakeWorker::Options Declaration(int64_t dial) {
  FakeWorker::Options options;
  options.on_hello = [dial](v1::Hello& hello) {
    for (v1::DeviceDescription& device : *hello.mutable_devices()) device.set_memory_bytes(Turn(kMemory, dial));
  };
  return options;
}

// Who has no certificate and believes whoever answers.
std::shared_ptr<grpc::ChannelCredentials> Nobodys() {
  return TlsCredentialsJudging([](const auto&) { return absl::OkStatus(); });
}

int Run(std::map<std::string, std::string> flags) {
  const bool greets = flags["--kind"] == "greetings";
  if (flags["--workers"].empty() || flags["--job"].empty() || (!greets && flags["--kind"] != "declarations")) {
    std::fprintf(stderr,
                 "usage: strangers_bench --workers HOST:PORT --kind greetings|declarations --job ID [--seconds S] [--each S] "
                 "[--tls yes]\n");
    return 64;
  }
  const absl::Duration each = absl::Seconds(std::atof(flags["--each"].c_str()));
  const absl::Time end = absl::Now() + absl::Seconds(std::atof(flags["--seconds"].c_str()));
  v1::StoreMark known;
  int64_t dials = 0, welcomed = 0;
  for (absl::Time next = absl::Now(); next < end; next += each, ++dials) {
    absl::SleepFor(next - absl::Now());
    const std::string name = absl::StrCat("stranger-", dials);
    FakeWorker::Options options = greets ? Greeting(flags["--job"], known, dials) : Declaration(dials);
    if (!flags["--tls"].empty()) options.credentials = Nobodys();
    FakeWorker worker(flags["--workers"], name, std::move(options));
    absl::SleepFor(each * 0.8);  // it stays for most of the time until the next one
    if (worker.mark().store_id().empty()) continue;
    known = worker.mark();
    ++welcomed;
  }
  std::printf("{\"dials\": %lld, \"welcomed\": %lld}\n", static_cast<long long>(dials), static_cast<long long>(welcomed));
  return 0;
}

}  // namespace
}  // namespace motley::bench

int main(int argc, char** argv) {
  std::map<std::string, std::string> flags = {{"--seconds", "60"}, {"--each", "1"}};
  for (int i = 1; i + 1 < argc; i += 2) flags[argv[i]] = argv[i + 1];
  motley::RequireTls13();
  return motley::bench::Run(std::move(flags));
}
