#include "worker/engine/host_tier.h"

#include <cstdlib>
#include <cstring>
#include <variant>

#include "absl/strings/str_cat.h"
#include "common/base/memory_shortage.h"
#include "common/base/status_macros.h"
#include "common/program/host_slots.h"
#include "worker/engine/check_slots.h"

namespace motley::engine {
namespace {

absl::StatusOr<char*> BlockOf(DeviceMemory* memory, int64_t bytes) {
  if (memory != nullptr) {
    MOTLEY_ASSIGN_OR_RETURN(void* const pinned, memory->AllocateHost(bytes));
    return static_cast<char*>(pinned);
  }
  void* block = nullptr;
  if (posix_memalign(&block, static_cast<size_t>(kHostSlotAlignment), static_cast<size_t>(bytes)) != 0) {
    return absl::ResourceExhaustedError("the host has no more");
  }
  std::memset(block, 0, static_cast<size_t>(bytes));  // or its pages would be made in the first step
  return static_cast<char*>(block);
}

}  // namespace

int64_t HostBytesFor(const RankAssignment& assignment, Precision precision) {
  return AssignHostSlots(assignment.program).BlockBytes(InputBytesOfASample(assignment, precision)) +
         HostAreas(assignment, precision).bytes();
}

absl::StatusOr<std::unique_ptr<HostTier>> HostTier::Make(const RankAssignment& assignment, Precision precision,
                                                         DeviceMemory* memory) {
  auto tier = std::unique_ptr<HostTier>(new HostTier(memory, HostAreas(assignment, precision)));
  const HostSlots slots = AssignHostSlots(assignment.program);
  const int64_t sample_bytes = InputBytesOfASample(assignment, precision), of_inputs = slots.BlockBytes(sample_bytes);
  const int64_t bytes = of_inputs + tier->areas_.bytes();
  if (bytes == 0) return tier;
  const auto where = [&] {
    return absl::StrCat(assignment.devices[assignment.rank].value(), " (rank ", assignment.rank, "): what waits there needs ",
                        bytes, " bytes of the host's memory");
  };
  if (bytes > assignment.planned_host_bytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat(where(), ", ", assignment.planned_host_bytes, " are planned; the job must be planned again"));
  }
  // It has less than was planned with: the job is planned again with what went.
  const auto refused = [&](const std::string& why, int64_t went) {
    return WithMemoryShortage(absl::ResourceExhaustedError(absl::StrCat(where(), ": ", why)),
                              {.tier = MemoryTier::kHost,
                               .held_bytes = went,
                               .asked_bytes = bytes,
                               .planned_bytes = assignment.planned_host_bytes,
                               .where = "making room in the host's memory"});
  };
  const int64_t there = assignment.device.node_host_memory_bytes;  // 0: nobody said
  if (there > 0 && bytes > there) return refused(absl::StrCat("it has ", there), there);
  absl::StatusOr<char*> block = BlockOf(memory, bytes);
  if (!block.ok()) {
    const int64_t went = MemoryShortageOf(block.status()).value_or(MemoryShortage()).held_bytes;
    return refused(std::string(block.status().message()), went);
  }
  tier->block_ = *block;
  tier->bytes_ = bytes;
  tier->areas_.Place(tier->block_ + of_inputs);
  for (size_t i = 0; i < slots.of.size(); ++i) {
    const auto* leaves = std::get_if<OffloadActivation>(&assignment.program.instructions[i].op);
    if (leaves != nullptr) tier->inputs_[{leaves->unit, leaves->microbatch}] = slots.of[i] * slots.SlotBytes(sample_bytes);
  }
  return tier;
}

HostMemoryByPurpose HostTier::by_purpose() const {
  HostMemoryByPurpose of = areas_.by_purpose();
  of.inputs = bytes_ - areas_.bytes();
  return of;
}

HostTier::~HostTier() {
  if (memory_ != nullptr && block_ != nullptr) {
    memory_->FreeHost(block_);
  } else {
    std::free(block_);
  }
}

}  // namespace motley::engine
