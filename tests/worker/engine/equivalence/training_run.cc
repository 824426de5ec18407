#include "tests/worker/engine/equivalence/training_run.h"

#include <algorithm>
#include <barrier>
#include <filesystem>
#include <memory>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/checkpoint_reader.h"
#include "common/data/sampling.h"
#include "common/model/parameters.h"
#include "tests/worker/engine/fake_card.h"
#include "tests/worker/engine/fake_host.h"
#include "tests/worker/engine/kernels/open_fake_kernels.h"
#include "tests/worker/engine/nccl/open_fake_nccl.h"
#include "worker/engine/device/host_backend.h"
#include "worker/engine/engine.h"

namespace motley::engine {
namespace {

constexpr uint64_t kOneIn = 4, kMostMicroseconds = 2000;

template <typename T>
absl::StatusOr<std::vector<double>> ReadArray(CheckpointReader& reader, int unit, StateTensor tensor, int64_t elements) {
  std::vector<T> values(elements);
  MOTLEY_RETURN_IF_ERROR(reader.Read(unit, tensor, 0, elements, values.data()));
  return std::vector<double>(values.begin(), values.end());
}

// A rank that gives up because of another says so; the other says why.
absl::Status FirstCause(const std::vector<absl::Status>& ends) {
  absl::Status cause;
  for (size_t rank = 0; rank < ends.size(); ++rank) {
    if (ends[rank].ok() || (!cause.ok() && absl::IsUnavailable(ends[rank]))) continue;
    if (cause.ok() || absl::IsUnavailable(cause)) cause = ends[rank];
  }
  return cause;
}

bool IsOnHost(Devices devices, int rank) {
  const bool among_hosts = devices == Devices::kCardsAndHosts || devices == Devices::kOneCardAndHosts;
  return devices == Devices::kHosts || (among_hosts && rank % 3 == 2);
}
bool IsReal(Devices devices) { return devices == Devices::kOneCard || devices == Devices::kOneCardAndHosts; }

// Null: the rank is on the host or on a card that is there.
std::unique_ptr<FakeCard> FakeCardOf(Devices devices, int rank, uint64_t seed) {
  if (IsOnHost(devices, rank) || IsReal(devices)) return nullptr;
  const NcclApi* const nccl = devices == Devices::kCardsOverTcp ? nullptr : &TheFakeNccl().library.api;
  auto card = std::make_unique<FakeCard>(static_cast<unsigned>(Mix64(seed + static_cast<uint64_t>(rank))), nccl,
                                         std::make_shared<IssuedMemory>());
  if (devices == Devices::kCardsWithKernels && rank % 3 != 2) card->set_kernels(&TheFakeKernels());
  return card;
}

// No rank begins its steps before all have rehearsed, or ended. A kernel's first launch and a handle's making wait for all that
// their process has on a card; of ranks that share both, one that rehearses would wait for another's receive from it.
class RehearsedTogether : public FakeHost {
 public:
  RehearsedTogether(FakeKv& kv, std::barrier<>& all) : FakeHost(kv), all_(all) {}
  ~RehearsedTogether() {
    if (ready == 0) all_.arrive_and_drop();
  }
  void OnReady(const std::vector<TransportUse>& uses, int64_t bytes) override {
    FakeHost::OnReady(uses, bytes);
    all_.arrive_and_wait();
  }

 private:
  std::barrier<>& all_;
};

// The first rank that goes back through the head; -1: none does.
int HeadsRank(const std::vector<RankAssignment>& assignments) {
  for (size_t rank = 0; rank < assignments.size(); ++rank) {
    const Program& program = assignments[rank].program;
    for (const Instruction& instruction : program.instructions) {
      const auto* whole = std::get_if<Backward>(&instruction.op);
      const auto* half = std::get_if<BackwardInput>(&instruction.op);
      const int32_t unit = whole != nullptr ? whole->unit : half != nullptr ? half->unit : -1;
      if (unit == program.num_units - 1) return static_cast<int>(rank);
    }
  }
  return -1;
}

bool Same(const std::vector<StepResult>& a, const std::vector<StepResult>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].loss != b[i].loss || a[i].validation_loss != b[i].validation_loss) return false;
    if (!IsSame(a[i].grad_norm, b[i].grad_norm)) return false;
    if (a[i].skipped != b[i].skipped || a[i].loss_scale != b[i].loss_scale) return false;
  }
  return true;
}

}  // namespace

absl::Duration DelayOf(uint64_t seed, int rank, int64_t instruction) {
  const uint64_t drawn = Mix64(Mix64(seed + static_cast<uint64_t>(rank)) + static_cast<uint64_t>(instruction));
  if (drawn % kOneIn != 0) return absl::ZeroDuration();
  return absl::Microseconds(static_cast<int64_t>(drawn / kOneIn % kMostMicroseconds));
}

absl::StatusOr<TrainingState> ReadState(const std::string& checkpoint_folder) {
  MOTLEY_ASSIGN_OR_RETURN(CheckpointReader reader, CheckpointReader::Open(checkpoint_folder));
  const bool wide = reader.manifest().dtype == DType::kFloat64;
  TrainingState state;
  for (const UnitSpec& unit : ParameterLayout(reader.manifest().model)) {
    const int index = static_cast<int>(state.size());
    state.emplace_back();
    for (int t = 0; t < kNumStateTensors; ++t) {
      const auto tensor = static_cast<StateTensor>(t);
      MOTLEY_ASSIGN_OR_RETURN(std::vector<double> values, wide ? ReadArray<double>(reader, index, tensor, unit.num_elements)
                                                               : ReadArray<float>(reader, index, tensor, unit.num_elements));
      state.back().push_back(std::move(values));
    }
  }
  return state;
}

absl::StatusOr<Checkpoints> TrainAndKeep(const std::vector<RankAssignment>& assignments, std::optional<uint64_t> delays,
                                         Devices devices, int64_t overflowing_step) {
  std::filesystem::remove_all(assignments[0].config.checkpoint.folder);
  const int world = static_cast<int>(assignments.size()), overflows = HeadsRank(assignments);
  FakeKv kv;
  std::vector<absl::Status> ends(world);
  std::vector<std::vector<StepResult>> steps(world);
  std::map<int64_t, std::string> checkpoints;
  for (const RankAssignment& assignment : assignments) MakeCheckpointFolder(assignment.config);
  std::barrier rehearsed(world);
  OnRanks(world, [&](int rank) {
    RehearsedTogether host(kv, rehearsed);
    EngineOptions options;
    const std::unique_ptr<FakeCard> card = FakeCardOf(devices, rank, delays.value_or(0));
    HostBackend on_host(std::make_shared<MemoryAccount>());
    options.backend = card.get();
    if (IsOnHost(devices, rank)) options.backend = &on_host;
    if (delays) {
      options.before_instruction = [seed = *delays, rank](int64_t instruction) {
        const absl::Duration delay = DelayOf(seed, rank, instruction);
        if (delay > absl::ZeroDuration()) absl::SleepFor(delay);
      };
    }
    if (rank == overflows && overflowing_step >= 0) {
      options.overflows = [overflowing_step](int64_t step) { return step == overflowing_step; };
    }
    RankAssignment assignment = assignments[rank];
    if (card != nullptr) assignment.device.card.uuid = absl::StrCat("GPU-", rank);
    if (IsReal(devices) && !IsOnHost(devices, rank)) assignment.device.kind = DeviceKind::kCuda;
    ends[rank] = CreateEngine(host, options)->Run(assignment).status();
    if (card != nullptr && ends[rank].ok() && !card->handles().MadeInSteps().empty()) {
      ends[rank] = absl::InternalError("a step made a handle for a product");
    }
    steps[rank] = host.steps;
    if (rank == 0) checkpoints = host.checkpoints;
  });
  MOTLEY_RETURN_IF_ERROR(FirstCause(ends));
  for (int rank = 1; rank < world; ++rank) {
    if (!Same(steps[rank], steps[0]))
      return absl::InternalError(absl::StrCat("rank ", rank, " reports other numbers than rank 0"));
  }
  Checkpoints kept{steps[0], checkpoints, {}, {}, {}};
  for (const std::vector<StepResult>& of_rank : steps) {
    int64_t &peak = kept.peak_bytes.emplace_back(0), &host = kept.host_bytes.emplace_back(0);
    MeasuredMemory& memory = kept.memory.emplace_back();
    for (const StepResult& step : of_rank) {
      peak = std::max(peak, step.peak_memory_bytes);
      host = std::max(host, step.host_memory_bytes);
      if (&step == &of_rank.front() && of_rank.size() > 1) continue;
      memory.has_passes = step.memory.has_passes;
      memory.host = step.memory.host;
      for (const auto& [purpose, name, bytes] : kMemoryPurposes) {
        memory.most.*bytes = std::max(memory.most.*bytes, step.memory.most.*bytes);
      }
    }
  }
  return kept;
}

absl::StatusOr<TrainingRun> TrainOnThreads(const std::vector<RankAssignment>& assignments, std::optional<uint64_t> delays,
                                           Devices devices, int64_t overflowing_step) {
  MOTLEY_ASSIGN_OR_RETURN(const Checkpoints kept, TrainAndKeep(assignments, delays, devices, overflowing_step));
  TrainingRun run{kept.steps, {}, kept.peak_bytes, kept.host_bytes};
  for (const auto& [step, folder] : kept.folders) {
    MOTLEY_ASSIGN_OR_RETURN(run.states[step], ReadState(folder));
  }
  std::filesystem::remove_all(assignments[0].config.checkpoint.folder);
  return run;
}

}  // namespace motley::engine
