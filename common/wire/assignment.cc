#include "common/wire/assignment.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "common/base/job_uid.h"
#include "common/base/status_macros.h"
#include "common/wire/both_ways.h"
#include "common/wire/device.h"
#include "common/wire/job.h"
#include "common/wire/step_spans.h"

namespace motley::wire {
namespace {

constexpr int32_t kMostBlocks = 1 << 16;  // as programs have

std::string ProgramText(const Program& program) { return program.instructions.empty() ? std::string() : ToText(program); }

absl::StatusOr<Program> ParseField(std::string_view field, const std::string& text) {
  if (text.empty()) return Program();
  absl::StatusOr<Program> program = ParseProgram(text);
  if (program.ok()) return program;
  return absl::InvalidArgumentError(absl::StrCat(std::string(field), ": ", program.status().message()));
}

absl::Status CheckShape(const v1::RankAssignment& proto) {
  const int world = proto.device_ids_size();
  if (proto.rank() < 0 || proto.rank() >= world) {
    return absl::InvalidArgumentError(
        absl::StrCat("rank must be in 0..", world - 1, " (device_ids has ", world, "), got ", proto.rank()));
  }
  if (proto.data_addresses_size() != world) {
    return absl::InvalidArgumentError(
        absl::StrCat("data_addresses must have one entry for each of ", world, " device_ids, got ", proto.data_addresses_size()));
  }
  if (!proto.job_uid().empty() && !IsJobUid(proto.job_uid())) {
    return absl::InvalidArgumentError("job_uid must be 32 hexadecimal digits, or empty");
  }
  for (const v1::RankPair& pair : proto.link_pairs()) {
    const bool are_ranks = pair.a() >= 0 && pair.a() < pair.b() && pair.b() < world;
    if (!are_ranks || NodeOf(DeviceId(proto.device_ids(pair.a()))) != NodeOf(DeviceId(proto.device_ids(pair.b())))) {
      return absl::InvalidArgumentError(absl::StrCat("link_pairs must be of two ranks of one node below ", world,
                                                     ", the lower one first, got ", pair.a(), " and ", pair.b()));
    }
  }
  return absl::OkStatus();
}

WIRE_MESSAGE(v1::OwnedRange, OwnedRange) {
  WIRE_FIELD(rank, plain.rank);
  WIRE_FIELD(begin, plain.begin);
  WIRE_FIELD(end, plain.end);
}

v1::OwnedAlike AlikeToProto(const Ownership::Alike& alike) {
  v1::OwnedAlike proto;
  for (const BlockSpan& span : alike.blocks) {
    v1::BlockSpan* out = proto.add_blocks();
    out->set_first(span.first);
    out->set_last(span.last);
  }
  for (const OwnedRange& range : *alike.ranges) *proto.add_ranges() = ToProto(range);
  return proto;
}

// Whether every element has one owner is checked where the model's arrays are known.
absl::StatusOr<Ownership> OwnershipFromProto(const v1::RankAssignment& proto) {
  std::map<int32_t, const v1::OwnedAlike*> by_block;
  for (const v1::OwnedAlike& alike : proto.ownership()) {
    for (const v1::BlockSpan& span : alike.blocks()) {
      if (span.first() < 0 || span.last() < span.first() || span.last() >= kMostBlocks) {
        return absl::InvalidArgumentError(
            absl::StrCat("ownership: blocks ", span.first(), " to ", span.last(), " are not in 0..", kMostBlocks - 1));
      }
      for (int32_t block = span.first(); block <= span.last(); ++block) {
        if (!by_block.emplace(block, &alike).second) {
          return absl::InvalidArgumentError(absl::StrCat("ownership: block ", block, " is there twice"));
        }
      }
    }
  }
  Ownership ownership;
  for (const auto& [block, alike] : by_block) {
    if (block != ownership.num_blocks()) {
      return absl::InvalidArgumentError(absl::StrCat("ownership: block ", ownership.num_blocks(), " is missing"));
    }
    OwnedRanges ranges;
    for (const v1::OwnedRange& range : alike->ranges()) ranges.push_back(FromProto(range));
    ownership.Add(ranges);
  }
  return ownership;
}

absl::StatusOr<ModelSlice> SliceFromProto(const v1::ModelSlice& proto, const ModelShape& model) {
  if (proto.first() < 0 || proto.end() <= proto.first() || proto.end() > proto.parts() || proto.parts() > NumParts(model)) {
    return absl::InvalidArgumentError(absl::StrCat("slice: parts ", proto.first(), " to ", proto.end(), " of ", proto.parts(),
                                                   ", the model has ", NumParts(model), " key-value heads"));
  }
  return ModelSlice{proto.first(), proto.end(), proto.parts()};
}

}  // namespace

WIRE_FIELDS(v1::RankAssignment, RankAssignment) {
  WIRE_STAMP();
  WIRE_FIELD(job_uid, plain.job_uid);
  WIRE_FIELD(owns_unnamed_checkpoints, plain.owns_unnamed_checkpoints);
  WIRE_FIELD(rank, plain.rank);
  WIRE_LIST(device_ids, plain.devices);
  WIRE_LIST(data_addresses, plain.data_addresses);
  WIRE_FIELD(programs_digest, plain.programs_digest);
  WIRE_FIELD(predicted_step_seconds, plain.predicted_step_seconds);
  WIRE_PART(predicted_lanes, plain.predicted_lanes);
  WIRE_FIELD(pipeline, plain.pipeline);
  WIRE_FIELD(stage, plain.stage);
  WIRE_LIST(spared_checkpoints, plain.spared_checkpoints);
  WIRE_FIELD(start_step, plain.start_step);
  WIRE_FIELD(resume_from, plain.resume_from);
  WIRE_PART(spec, plain.config);
  WIRE_FIELD(data_digest, plain.data_digest);
  WIRE_FIELD(validation_digest, plain.validation_digest);
  WIRE_PART(device, plain.device);
  WIRE_FIELD(planned_context_bytes, plain.planned_context_bytes);
  WIRE_FIELD(planned_host_bytes, plain.planned_host_bytes);
  WIRE_FIELD(planned_bytes, plain.planned_bytes);
  WIRE_FIELD(first_progress_seconds, plain.first_progress_seconds);
}

v1::RankAssignment ToProto(const RankAssignment& a) {
  v1::RankAssignment proto;
  ToWire way;
  Fields(way, proto, a);
  for (const Ownership::Alike& alike : a.ownership.AlikeBlocks()) *proto.add_ownership() = AlikeToProto(alike);
  proto.set_program(ProgramText(a.program));
  proto.set_evaluation_program(ProgramText(a.evaluation));
  for (const auto& [one, other] : a.link_pairs) {
    v1::RankPair* out = proto.add_link_pairs();
    out->set_a(one);
    out->set_b(other);
  }
  proto.set_model_config_json(ToHfConfig(a.model));
  if (!a.slice.whole()) {
    proto.mutable_slice()->set_first(static_cast<int32_t>(a.slice.first));
    proto.mutable_slice()->set_end(static_cast<int32_t>(a.slice.end));
    proto.mutable_slice()->set_parts(static_cast<int32_t>(a.slice.parts));
  }
  return proto;
}

absl::StatusOr<RankAssignment> FromProto(const v1::RankAssignment& proto) {
  MOTLEY_RETURN_IF_ERROR(CheckShape(proto));
  if (proto.planned_host_bytes() < 0) {
    return absl::InvalidArgumentError(absl::StrCat("planned_host_bytes must be at least 0, got ", proto.planned_host_bytes()));
  }
  RankAssignment a;
  FromWire way;
  Fields(way, proto, a);
  MOTLEY_ASSIGN_OR_RETURN(a.ownership, OwnershipFromProto(proto));
  MOTLEY_ASSIGN_OR_RETURN(a.program, ParseField("program", proto.program()));
  MOTLEY_ASSIGN_OR_RETURN(a.evaluation, ParseField("evaluation_program", proto.evaluation_program()));
  for (const v1::RankPair& pair : proto.link_pairs()) a.link_pairs.emplace_back(pair.a(), pair.b());
  MOTLEY_ASSIGN_OR_RETURN(a.model, ParseHfConfig(proto.model_config_json(), "model_config_json"));
  if (proto.has_slice()) {
    MOTLEY_ASSIGN_OR_RETURN(a.slice, SliceFromProto(proto.slice(), a.model));
  }
  MOTLEY_RETURN_IF_ERROR(way.status);
  return a;
}

}  // namespace motley::wire
