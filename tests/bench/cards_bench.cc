// What one device reaches: the rates of matrix product, attention and copy by themselves, and whole steps of the engine beside
// them.
//   cards_bench --device cuda|cpu [--only ceilings|attention|copies|kernels|steps|head|memory|soak] [--model gpt2:124M]
//               [--layers N] [--seq-len 1024] [--samples N] [--microbatches N] [--steps N] [--dtype float32|bfloat16|float16]
//               [--size N] [--seconds N] [--without-cudnn yes] [--recorded yes] [--json F]
//     --samples of a step, in --microbatches; --layers: fewer than the flavor's, where memory asks; --size: of the matrices, and
//     a copy has the bytes of one; --seconds: of the load; --recorded: of steps, each kernel's time in them
// `./run bench gpu` runs it with rows of its own, beside PyTorch.
#include <ATen/ATen.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"
#include "common/model/model_family.h"
#include "common/model/operators.h"
#include "tests/bench/bench_report.h"
#include "tests/bench/cards_kernels.h"
#include "tests/bench/cards_recorded.h"
#include "tests/worker/engine/equivalence/equivalence.h"
#include "tests/worker/engine/equivalence/plan_assignments.h"
#include "tests/worker/engine/fake_host.h"
#include "worker/engine/base/scalar_type.h"
#include "worker/engine/device/device_backend.h"
#include "worker/engine/engine.h"
#include "worker/engine/operators/attention.h"

namespace motley::engine {
namespace {

struct Options {
  DeviceKind kind = DeviceKind::kCuda;
  std::string only, model = "gpt2:124M";
  DType dtype = DType::kFloat32;
  bool without_cudnn = false, recorded = false;
  int64_t layers = 0, seq_len = 1024, samples = 8, microbatches = 1, steps = 10, size = 8192, seconds = 60;
};

absl::StatusOr<Options> ReadOptions(int argc, char** argv) {
  Options options;
  const auto flag = [&](const char* name) { return bench::Report::Flag(argc, argv, name); };
  if (flag("--device") == "cpu") options.kind = DeviceKind::kCpu;
  options.without_cudnn = flag("--without-cudnn") == "yes";
  options.recorded = flag("--recorded") == "yes";
  options.only = flag("--only");
  if (const std::string model = flag("--model"); !model.empty()) options.model = model;
  if (const std::string dtype = flag("--dtype"); !dtype.empty()) {
    MOTLEY_ASSIGN_OR_RETURN(options.dtype, ParseDType(dtype));
  }
  const std::pair<const char*, int64_t*> numbers[] = {{"--layers", &options.layers},   {"--seq-len", &options.seq_len},
                                                      {"--samples", &options.samples}, {"--microbatches", &options.microbatches},
                                                      {"--steps", &options.steps},     {"--size", &options.size},
                                                      {"--seconds", &options.seconds}};
  for (const auto& [name, number] : numbers) {
    const std::string text = flag(name);
    if (!text.empty() && (!absl::SimpleAtoi(text, number) || *number < 0)) {
      return absl::InvalidArgumentError(absl::StrCat(name, " wants a whole number, got '", text, "'"));
    }
  }
  if (options.microbatches < 1 || options.samples % options.microbatches != 0) {
    return absl::InvalidArgumentError("--samples must be a multiple of --microbatches");
  }
  return options;
}

// Of a call in the fastest of several rows of calls: others disturb, nothing speeds up. A row is long beside the wait at its end.
double SecondsOf(DeviceBackend& backend, const std::function<void()>& call) {
  constexpr int kRows = 5, kMostCalls = 100;
  constexpr double kRowSeconds = 3e-3;
  const auto seconds_of = [&](int calls) {
    backend.Synchronize();
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < calls; ++i) call();
    backend.Synchronize();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / calls;
  };
  (void)seconds_of(1);
  const int calls = static_cast<int>(std::clamp(kRowSeconds / seconds_of(1), 1.0, static_cast<double>(kMostCalls)));
  double best = 1e9;
  for (int i = 0; i < kRows; ++i) best = std::min(best, seconds_of(calls));
  return best;
}

// Causal: two products of seq_len x seq_len, half of it masked, forward; five backward.
void MeasureAttention(const Options& options, const HeadLayout& heads, int64_t samples, int64_t seq_len, DeviceBackend& backend,
                      bench::Report* report) {
  const auto type = at::TensorOptions().dtype(ScalarTypeOf(options.dtype)).device(backend.tensors());
  const at::Tensor qkv = at::randn({samples, seq_len, heads.width()}, type);
  const at::Tensor grad = at::randn({samples, seq_len, heads.heads * heads.head_dim}, type);
  const double pairs = 0.5 * static_cast<double>(samples * heads.heads * seq_len * seq_len);
  const double flops = 2 * 2 * pairs * static_cast<double>(heads.head_dim);
  const AttentionOutput saved = AttentionForward(qkv, heads);
  const std::string what = absl::StrCat(" by ", NameOfAttention(qkv, heads), ", ", samples, " x ", seq_len, ", ", heads.heads,
                                        " heads of ", heads.head_dim, " over ", heads.kv_heads);
  report->Add("attention forward" + what, flops / SecondsOf(backend, [&] { AttentionForward(qkv, heads); }) / 1e12, "TFLOP/s");
  report->Add("attention backward" + what,
              2.5 * flops / SecondsOf(backend, [&] { AttentionBackward(grad, qkv, saved, heads); }) / 1e12, "TFLOP/s");
}

// Of the models whose steps are measured, of as many tokens as a microbatch of theirs has.
void MeasureAttentions(const Options& options, DeviceBackend& backend, bench::Report* report) {
  const int64_t tokens = options.kind == DeviceKind::kCpu ? 1024 : 16384;
  const HeadLayout layouts[] = {{.heads = 12, .kv_heads = 12, .head_dim = 64},
                                {.heads = 25, .kv_heads = 25, .head_dim = 64},
                                {.heads = 32, .kv_heads = 8, .head_dim = 128}};
  for (const HeadLayout& heads : layouts) {
    for (const int64_t seq_len : {tokens / 16, tokens / 2}) {
      MeasureAttention(options, heads, tokens / seq_len, seq_len, backend, report);
    }
  }
}

void MeasureCeilings(const Options& options, DeviceBackend& backend, bench::Report* report) {
  const auto type = at::TensorOptions().dtype(ScalarTypeOf(options.dtype)).device(backend.tensors());
  const double n = static_cast<double>(options.size);
  const at::Tensor a = at::randn({options.size, options.size}, type), b = at::randn({options.size, options.size}, type);
  at::Tensor c = at::empty_like(a);
  report->Add("matrix product", 2 * n * n * n / SecondsOf(backend, [&] { at::mm_out(c, a, b); }) / 1e12, "TFLOP/s");
  const double bytes = 2 * static_cast<double>(a.nbytes());
  report->Add("copy on the device, read and written", bytes / SecondsOf(backend, [&] { c.copy_(a); }) / 1e9, "GB/s");

  MeasureAttention(options, {.heads = 16, .kv_heads = 16, .head_dim = 64}, options.samples, options.seq_len, backend, report);
}

// The products of a GPT-2's head of as many columns as it has words, and as the next multiple of 64 has.
void MeasureHead(const Options& options, DeviceBackend& backend, bench::Report* report) {
  constexpr int64_t kHidden = 1600;
  const auto type = at::TensorOptions().dtype(ScalarTypeOf(options.dtype)).device(backend.tensors());
  for (const int64_t columns : {50257, 50304}) {
    const at::Tensor rows = at::randn({options.size, kHidden}, type), weight = at::randn({columns, kHidden}, type);
    at::Tensor logits = at::empty({options.size, columns}, type), to_rows = at::empty_like(rows),
               to_weight = at::empty_like(weight);
    const double flops = 2.0 * static_cast<double>(options.size) * static_cast<double>(kHidden) * static_cast<double>(columns);
    const auto add = [&](const char* what, const std::function<void()>& call) {
      report->Add(absl::StrCat(what, " of ", columns, " columns"), flops / SecondsOf(backend, call) / 1e12, "TFLOP/s");
    };
    add("logits", [&] { at::mm_out(logits, rows, weight.t()); });
    add("gradient of rows", [&] { at::mm_out(to_rows, logits, weight); });
    add("gradient of weights", [&] { at::mm_out(to_weight, logits.t(), rows); });
  }
}

void MeasureKernels(const Options& options, DeviceBackend& backend, bench::Report* report) {
  const AddRate add = [&](const std::string& what, size_t bytes, const std::function<void()>& call) {
    report->Add(what, static_cast<double>(bytes) / SecondsOf(backend, call) / 1e9, "GB/s");
  };
  KernelsBench(options.dtype, options.size, backend, add).Run();
}

// What the process holds of the card that no tensor has.
void MeasureMemory(const Options& options, DeviceBackend& backend, bench::Report* report) {
  const auto add = [&](const char* when) {
    report->Add(absl::StrCat("beside the allocator, ", when), static_cast<double>(backend.BytesBesideAllocator()) / (1 << 20),
                "MiB");
  };
  add("opened");
  const at::Tensor a = at::randn({1024, 1024}, at::TensorOptions().dtype(ScalarTypeOf(options.dtype)).device(backend.tensors()));
  at::mm(a, a).sum().item();
  add("after a product");
  MeasureHead({.size = 64}, backend, report);
  add("after products of other shapes");
}

// The way to the host's memory: each direction alone, both at once, and what it takes to make such memory. On a host they are
// copies in its own memory.
absl::Status MeasureCopies(const Options& options, DeviceBackend& backend, bench::Report* report) {
  constexpr int kBlocks = 16;  // of a copy's bytes
  const int64_t bytes = options.size * options.size * 4;
  DeviceMemory* const memory = backend.memory();
  const auto plain = at::TensorOptions().dtype(at::kByte);
  const at::Tensor there = at::zeros({2, bytes}, plain.device(backend.tensors()));
  at::Tensor on_host;
  char* host = nullptr;
  const auto begin = std::chrono::steady_clock::now();
  if (memory == nullptr) {
    on_host = at::zeros({kBlocks * bytes}, plain);
    host = static_cast<char*>(on_host.mutable_data_ptr());
  } else {
    MOTLEY_ASSIGN_OR_RETURN(void* const pinned, memory->AllocateHost(kBlocks * bytes));
    host = static_cast<char*>(pinned);
  }
  const double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  report->Add("pinning", took / (static_cast<double>(kBlocks * bytes) / (1 << 30)), "s/GiB");
  char* const out = static_cast<char*>(there[0].mutable_data_ptr());
  char* const in = static_cast<char*>(there[1].mutable_data_ptr());
  absl::Status status;
  const auto copy = [&](char* to, const char* from, Lane lane) {
    if (memory == nullptr) {
      std::memcpy(to, from, static_cast<size_t>(bytes));
    } else {
      status.Update(memory->CopyAsync(to, from, bytes, backend.StreamOf(lane)->handle()));
    }
  };
  const auto leave = [&] { copy(host, out, Lane::kCopy); };
  const auto come = [&] { copy(in, host + bytes, Lane::kReceive); };
  const double gigabytes = static_cast<double>(bytes) / 1e9;
  report->Add("out", gigabytes / SecondsOf(backend, leave), "GB/s");
  report->Add("in", gigabytes / SecondsOf(backend, come), "GB/s");
  const auto both = [&] {
    leave();
    come();
  };
  report->Add("out and in at once", 2 * gigabytes / SecondsOf(backend, both), "GB/s");
  if (memory != nullptr) memory->FreeHost(host);
  return status;
}

// Whether the card keeps the rate that it begins with.
void MeasureSoak(const Options& options, DeviceBackend& backend, bench::Report* report) {
  const auto type = at::TensorOptions().dtype(ScalarTypeOf(options.dtype)).device(backend.tensors());
  const double n = static_cast<double>(options.size);
  const at::Tensor a = at::randn({options.size, options.size}, type);
  at::Tensor c = at::empty_like(a);
  const auto rate_of = [&](double seconds) {
    const auto begin = std::chrono::steady_clock::now();
    double products = 0, took = 0;
    for (; took < seconds; ++products) {
      at::mm_out(c, a, a);
      backend.Synchronize();
      took = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    }
    return 2 * n * n * n * products / took / 1e12;
  };
  const auto all = static_cast<double>(options.seconds);
  (void)rate_of(0);  // opens libraries
  const double first = rate_of(all / 60);
  (void)rate_of(all * 49 / 60);
  const double last = rate_of(all / 6);
  report->Add("matrix product, first", first, "TFLOP/s");
  report->Add("matrix product, last", last, "TFLOP/s");
  report->Add("last over first", last / first, "1");
}

absl::StatusOr<TinyJob> JobOf(const Options& options, const std::filesystem::path& folder) {
  const std::vector<std::string> name = absl::StrSplit(options.model, ':');
  TinyJob job;
  MOTLEY_ASSIGN_OR_RETURN(job.model, ModelFlavor(name[0], name.size() > 1 ? name[1] : ""));
  if (options.layers > 0) job.model.num_layers = std::min(job.model.num_layers, options.layers);
  WriteTinyText(folder);
  job.config = MakeTinyJob(job.model.family, kTinySizes[0], DType::kFloat32, folder).config;
  job.config.checkpoint = {};
  job.config.data.validation_fraction = 0;
  job.config.data.validation_samples = job.config.data.validation_interval = 0;
  job.config.training.steps = options.steps;
  job.config.training.seq_len = options.seq_len;
  job.config.training.mixed_precision_param = std::string(DTypeName(options.dtype));
  job.config.training.global_batch_size = options.samples;
  return job;
}

// What a step needs at least: three times its forward's products, the masked half of attention left out, nothing computed twice.
double CausalFlops(const ModelShape& model, int64_t samples, int64_t seq_len) {
  const auto product = [](int64_t a, int64_t b) { return static_cast<double>(a) * static_cast<double>(b); };
  const int64_t attended = model.num_heads * model.head_dim;
  const int64_t ups = TraitsOf(model.family).activation == ActivationKind::kSwiGlu ? 2 : 1;
  const double layer = product(model.hidden_size, 2 * attended + 2 * model.num_kv_heads * model.head_dim) +
                       static_cast<double>(ups + 1) * product(model.hidden_size, model.intermediate_size);
  const double weights = static_cast<double>(model.num_layers) * layer + product(model.vocab_size, model.hidden_size);
  const double pairs = 0.5 * product(seq_len, seq_len) * static_cast<double>(samples * model.num_layers * attended);
  return 3 * (2 * weights * static_cast<double>(samples * seq_len) + 2 * 2 * pairs);
}

absl::Status MeasureSteps(const Options& options, const std::filesystem::path& folder, bench::Report* report) {
  MOTLEY_ASSIGN_OR_RETURN(const TinyJob job, JobOf(options, folder));
  planner::Plan plan = OneDevicePlan(job);
  plan.pipelines[0].stages[0].units[0].microbatches.assign(options.microbatches, options.samples / options.microbatches);
  MOTLEY_ASSIGN_OR_RETURN(std::vector<RankAssignment> assignments, AssignmentsOf(job.model, job.config, plan, {{}}));
  assignments[0].device.kind = options.kind;
  // As a plan gives it that has room.
  const int64_t tokens = options.samples / options.microbatches * options.seq_len;
  if (options.kind == DeviceKind::kCuda && tokens > kHeadChunkTokens) {
    assignments[0].program.head_rows = HeadRowsOfCards(job.model.vocab_size);
  }
  assignments[0].device.threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  FakeKv kv;
  FakeHost host(kv);
  std::optional<RecordedKernels> recorded;
  if (options.recorded) {
    MOTLEY_RETURN_IF_ERROR(OpenBackend(assignments[0].device, "127.0.0.1").status());  // what is recorded must be loaded
    recorded.emplace(options.kind == DeviceKind::kCuda);
  }
  MOTLEY_RETURN_IF_ERROR(CreateEngine(host, {})->Run(assignments[0]).status());
  std::vector<double> seconds;
  for (size_t i = host.steps.size() / 3; i < host.steps.size(); ++i) seconds.push_back(host.steps[i].step_seconds);
  std::sort(seconds.begin(), seconds.end());
  const double step = seconds[seconds.size() / 2];
  report->Add("step, median", step, "s");
  report->Add("tokens", static_cast<double>(options.samples * options.seq_len) / step, "tokens/s");
  report->Add("model FLOPs", CausalFlops(job.model, options.samples, options.seq_len) / step / 1e12, "TFLOP/s");
  const auto peak = static_cast<double>(host.steps.back().peak_memory_bytes);
  MOTLEY_ASSIGN_OR_RETURN(const int64_t predicted, PredictedPeakBytes(job.model, plan, options.dtype));
  report->Add("peak memory", peak / (1 << 20), "MiB");
  report->Add("peak memory, predicted", static_cast<double>(predicted) / (1 << 20), "MiB");
  report->Add("peak memory, measured over predicted", peak / static_cast<double>(predicted), "1");
  report->Add("loss of the last step", host.steps.back().loss, "1");
  if (recorded) recorded->Report(options.steps, report);
  return absl::OkStatus();
}

absl::Status Measure(int argc, char** argv, const std::filesystem::path& folder, bench::Report* report) {
  MOTLEY_ASSIGN_OR_RETURN(const Options options, ReadOptions(argc, argv));
  DeviceDescription device;
  device.kind = options.kind;
  using Measurement = void (*)(const Options&, DeviceBackend&, bench::Report*);
  const std::map<std::string, Measurement> measurements = {{"ceilings", MeasureCeilings}, {"attention", MeasureAttentions},
                                                           {"head", MeasureHead},         {"kernels", MeasureKernels},
                                                           {"memory", MeasureMemory},     {"soak", MeasureSoak}};
  if (options.without_cudnn) at::globalContext().setSDPUseCuDNN(false);
  const auto only = measurements.find(options.only);
  if (options.only != "steps") {
    MOTLEY_ASSIGN_OR_RETURN(const std::unique_ptr<DeviceBackend> backend, OpenBackend(device, "127.0.0.1"));
    if (options.only == "copies") return MeasureCopies(options, *backend, report);
    (only == measurements.end() ? MeasureCeilings : only->second)(options, *backend, report);
  }
  return only != measurements.end() ? absl::OkStatus() : MeasureSteps(options, folder, report);
}

int Run(int argc, char** argv) {
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / ("cards_bench-" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  bench::Report report;
  const absl::Status status = Measure(argc, argv, folder, &report);
  std::filesystem::remove_all(folder);
  if (status.ok()) return report.Finish(argc, argv);
  std::fprintf(stderr, "cards_bench: %s\n", status.ToString().c_str());
  return status.code() == absl::StatusCode::kInvalidArgument ? 64 : 69;
}

}  // namespace
}  // namespace motley::engine

int main(int argc, char** argv) { return motley::engine::Run(argc, argv); }
