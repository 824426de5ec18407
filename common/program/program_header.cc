#include "common/program/program_header.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/clean_text.h"
#include "common/base/status_macros.h"

namespace motley {
namespace {

absl::Status CheckGroups(const Program& p) {
  for (size_t g = 0; g < p.groups.size(); ++g) {
    std::vector<int32_t> members = p.groups[g];
    std::sort(members.begin(), members.end());
    const bool twice = std::adjacent_find(members.begin(), members.end()) != members.end();
    if (!members.empty() && !twice && members.front() >= 0 && members.back() < p.world) continue;
    return absl::FailedPreconditionError(absl::StrCat("program of rank ", p.rank, ", header: group ", g,
                                                      " must name ranks of 0..", p.world - 1, ", each once, got ",
                                                      members.empty() ? "none" : Echo(absl::StrJoin(p.groups[g], ","))));
  }
  return absl::OkStatus();
}

// A range counts as one instruction for each of its units and microbatches.
int64_t SinglesOf(const Operation& op) {
  return std::visit(
      [](const auto& o) {
        int64_t singles = 1;
        if constexpr (requires { o.more_units; }) singles *= int64_t{std::max(0, o.more_units)} + 1;
        if constexpr (requires { o.more_microbatches; }) singles *= int64_t{std::max(0, o.more_microbatches)} + 1;
        return singles;
      },
      op);
}

absl::Status CheckHeader(const Program& p) {
  const auto error = [&p](const std::string& rule) {
    return absl::FailedPreconditionError(absl::StrCat("program of rank ", p.rank, ", header: ", rule));
  };
  if (p.version != kProgramVersion) {
    return error(UnknownVersion(p.version));
  }
  if (p.world < 1 || p.rank < 0 || p.rank >= p.world) return error(absl::StrCat("rank must be in 0..world-1 of world ", p.world));
  // More would be no model, and the validator's own tables grow with it.
  constexpr int32_t kMaxUnits = 1 << 16;
  if (p.num_units < 2 || p.num_units > kMaxUnits) {
    return error(absl::StrCat("units must be 2 (embedding and head) to ", kMaxUnits, ", got ", p.num_units));
  }
  if (p.head_rows < kHeadChunkTokens || p.head_rows > kMostHeadRows) {
    return error(absl::StrCat("head_rows must be ", kHeadChunkTokens, " to ", kMostHeadRows, ", got ", p.head_rows));
  }
  int32_t previous = -1;
  for (const int32_t unit : p.units) {
    if (unit <= previous || unit >= p.num_units) {
      return error(absl::StrCat("the units held must be ascending and in 0..", p.num_units - 1, ", got ", unit));
    }
    previous = unit;
  }
  return absl::OkStatus();
}

absl::Status CheckCount(const Program& p) {
  const auto error = [&p](const std::string& rule) {
    return absl::FailedPreconditionError(absl::StrCat("program of rank ", p.rank, ", header: ", rule));
  };
  // The validator looks at each unit and microbatch of a range.
  constexpr int64_t kMostOfRanges = int64_t{1} << 20;
  int64_t singles = 0, of_ranges = 0;
  for (const Instruction& instruction : p.instructions) {
    const int64_t of_this = SinglesOf(instruction.op);
    if (of_this > 1) of_ranges += std::min(of_this, kMostOfRanges + 1);
    if (of_ranges > kMostOfRanges) {
      return error(absl::StrCat("its ranges are of more than ", kMostOfRanges, " units and microbatches in all"));
    }
    singles += of_this;
  }
  // Every unit held runs every microbatch forward: fewer instructions cannot be a program (and bounds the tables).
  if (p.microbatches.size() * std::max<size_t>(1, p.units.size()) > static_cast<size_t>(singles)) {
    return error(absl::StrCat(singles, " instructions are fewer than ", p.microbatches.size(), " microbatches x ", p.units.size(),
                              " units held"));
  }
  return absl::OkStatus();
}

absl::Status CheckMicrobatches(const Program& p) {
  const auto error = [&p](const std::string& rule) {
    return absl::FailedPreconditionError(absl::StrCat("program of rank ", p.rank, ", header: ", rule));
  };
  constexpr int64_t kMaxSamples = std::numeric_limits<int32_t>::max();  // hand-overs name them in 32 bits
  for (size_t i = 0; i < p.microbatches.size(); ++i) {
    const Microbatch& m = p.microbatches[i];
    if (m.samples < 1 || m.first < 0 || m.samples > kMaxSamples || m.first > kMaxSamples - m.samples) {
      return error(absl::StrCat("microbatch ", i, " must have at least 1 sample, of 0 to ", kMaxSamples, ", got ", m.samples, "@",
                                m.first));
    }
  }
  std::vector<Microbatch> by_first = p.microbatches;
  std::sort(by_first.begin(), by_first.end(), [](const Microbatch& a, const Microbatch& b) { return a.first < b.first; });
  for (size_t i = 1; i < by_first.size(); ++i) {
    if (by_first[i].first < by_first[i - 1].end()) {
      return error(absl::StrCat("sample ", by_first[i].first, " is in two microbatches"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckBuffers(const Program& p, const char* what, const std::vector<UnitBuffer>& buffers) {
  std::vector<bool> has_home(p.num_units, false);
  for (size_t i = 0; i < buffers.size(); ++i) {
    const auto error = [&](const std::string& rule) {
      return absl::FailedPreconditionError(absl::StrCat("program of rank ", p.rank, ", header: ", what, " buffer ", i, rule));
    };
    const int64_t least = buffers[i].IsShard() ? 0 : 1;
    if (buffers[i].elements < least) {
      return error(absl::StrCat(" must have a size of at least ", least, ", got ", buffers[i].elements));
    }
    if (buffers[i].num_units < 1) {
      return error(absl::StrCat(" must have room for at least 1 unit, got ", buffers[i].num_units));
    }
    if (buffers[i].shard_group != -1) {
      if (buffers[i].shard_group < 0 || static_cast<size_t>(buffers[i].shard_group) >= p.groups.size()) {
        return error(absl::StrCat(" is a shard among group ", buffers[i].shard_group, ", of which there are ", p.groups.size()));
      }
      const std::vector<int32_t>& members = p.groups[static_cast<size_t>(buffers[i].shard_group)];
      if (std::find(members.begin(), members.end(), p.rank) == members.end()) {
        return error(absl::StrCat(" is a shard among group ", buffers[i].shard_group, ", in which the rank is not"));
      }
      if (buffers[i].home_of < 0 || buffers[i].num_units != 1) return error(" is a shard, which is of one unit");
    }
    if (buffers[i].home_of == -1) continue;
    for (int64_t unit = buffers[i].home_of; unit < int64_t{buffers[i].home_of} + buffers[i].num_units; ++unit) {
      if (!std::binary_search(p.units.begin(), p.units.end(), unit)) {
        return error(absl::StrCat(" is the home of unit ", unit, ", which the rank does not hold"));
      }
      if (has_home[unit]) return error(absl::StrCat(" is a second home of unit ", unit));
      has_home[unit] = true;
    }
  }
  return absl::OkStatus();
}

absl::Status CheckSlots(const Program& p) {
  for (size_t i = 0; i < p.slots.size(); ++i) {
    if (p.slots[i] >= 1) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("program of rank ", p.rank, ", header: slot ", i, " must have at least 1 byte, got ", p.slots[i]));
  }
  return absl::OkStatus();
}

// What does not wait in host memory is not copied.
absl::Status CheckOffloads(const Program& p) {
  for (size_t i = 0; i < p.instructions.size(); ++i) {
    const Operation& op = p.instructions[i].op;
    const char* missing = nullptr;
    const auto needs = [&missing](bool is, const char* kind) { missing = is ? missing : kind; };
    if (std::holds_alternative<OffloadActivation>(op) || std::holds_alternative<PrefetchActivation>(op)) {
      needs(p.offloads.activations, "activations");
    } else if (std::holds_alternative<PrefetchParameters>(op)) {
      needs(p.offloads.parameters, "parameters");
    } else if (std::holds_alternative<OffloadGradients>(op)) {
      needs(p.offloads.gradients, "gradients");
    } else if (std::holds_alternative<PrefetchOptimizer>(op) || std::holds_alternative<OffloadOptimizer>(op)) {
      needs(p.offloads.takes_state(), "parameters, gradients or optimizer");
    }
    if (missing == nullptr) continue;
    return absl::FailedPreconditionError(absl::StrCat("program of rank ", p.rank, ", instruction ", i, " (",
                                                      std::string(OperationName(op)), "): its header does not offload ",
                                                      missing));
  }
  return absl::OkStatus();
}

absl::Status CheckDependencies(const Program& p) {
  for (size_t i = 0; i < p.instructions.size(); ++i) {
    int64_t previous = -1;
    for (const int32_t dependency : p.instructions[i].after) {
      if (dependency <= previous || dependency >= static_cast<int64_t>(i)) {
        return absl::FailedPreconditionError(
            absl::StrCat("program of rank ", p.rank, ", instruction ", i, " (", std::string(OperationName(p.instructions[i].op)),
                         "): `after` must be ascending and name earlier instructions, got ", dependency));
      }
      previous = dependency;
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::string UnknownVersion(int32_t version) {
  return absl::StrCat("version ", version, " is not known, this build reads ", kProgramVersion, "; the program comes from ",
                      version < kProgramVersion ? "an older" : "a newer", " coordinator: update ",
                      version < kProgramVersion ? "the coordinator" : "this node", " so that both are of one build");
}

absl::Status ValidateHeader(const Program& program) {
  MOTLEY_RETURN_IF_ERROR(CheckHeader(program));
  MOTLEY_RETURN_IF_ERROR(CheckCount(program));
  MOTLEY_RETURN_IF_ERROR(CheckMicrobatches(program));
  MOTLEY_RETURN_IF_ERROR(CheckGroups(program));
  MOTLEY_RETURN_IF_ERROR(CheckBuffers(program, "parameter", program.parameter_buffers));
  MOTLEY_RETURN_IF_ERROR(CheckBuffers(program, "gradient", program.gradient_buffers));
  MOTLEY_RETURN_IF_ERROR(CheckSlots(program));
  MOTLEY_RETURN_IF_ERROR(CheckOffloads(program));
  return CheckDependencies(program);
}

}  // namespace motley
