#include "common/program/parameter_rules.h"

#include <algorithm>

namespace motley {

absl::Status ParameterRules::Check(const Gather& g) {
  MOTLEY_RETURN_IF_ERROR(Fill(g, g.elements));
  return ComesFromShards(g);
}

absl::Status ParameterRules::ComesFromShards(const Gather& g) const {
  const int32_t shard = check_.index.parameter_shard[g.unit];
  if (shard == g.buffer) {
    const int64_t room = check_.program.parameter_buffers[shard].elements;
    if (g.elements.end() <= room) return absl::OkStatus();
    return check_.Error(absl::StrCat("elements to ", g.elements.end(), ": parameter buffer ", shard, " is a shard of ", room));
  }
  return check_.ForUnits(g.unit, g.more_units, [&](int32_t unit) -> absl::Status {
    const int32_t from = check_.index.parameter_shard[unit];
    if (from < 0) return absl::OkStatus();
    MOTLEY_RETURN_IF_ERROR(check_.SharesOut(unit, check_.program.parameter_buffers[from], g.group));
    return check_.program.parameter_buffers[from].elements == 0 ? absl::OkStatus() : IsFilled(from, unit);
  });
}

absl::Status ParameterRules::Check(const Broadcast& b) {
  MOTLEY_RETURN_IF_ERROR(check_.InGroup(b.group));
  MOTLEY_RETURN_IF_ERROR(check_.RootInGroup(b.root, b.group));
  return Fill(b, ArrayRange{});
}

// Beside those that are in the buffer: they stand one behind the other.
bool ParameterRules::HasRoom(int32_t index, int32_t unit) const {
  const int32_t room = check_.program.parameter_buffers[index].num_units;
  const std::vector<Tenant>& tenants = buffers_[index].tenants;
  return std::all_of(tenants.begin(), tenants.end(), [&](const Tenant& t) { return std::abs(t.unit - unit) < room; });
}

absl::StatusOr<ParameterRules::Tenant*> ParameterRules::Move(int32_t index, int32_t unit) {
  Buffer& buffer = buffers_[index];
  if (!HasRoom(index, unit)) {
    return check_.Error(
        absl::StrCat("parameter buffer ", index, " still holds unit ", buffer.tenants[0].unit, "; release it first"));
  }
  MOTLEY_RETURN_IF_ERROR(
      check_.Ordered(buffer.last_release, "what comes into parameter buffer ", index, " must wait for its release"));
  Tenant& tenant = buffer.tenants.emplace_back();
  tenant.unit = unit;
  return &tenant;
}

absl::Status ParameterRules::Prefetch(int32_t index, int32_t unit) {
  MOTLEY_RETURN_IF_ERROR(check_.HoldsArray(unit));
  MOTLEY_RETURN_IF_ERROR(check_.InRange("parameter buffer", index, check_.program.parameter_buffers));
  MOTLEY_RETURN_IF_ERROR(check_.CheckHome("parameter", index, check_.program.parameter_buffers, unit));
  if (Find(buffers_[index].tenants, unit) != nullptr) {
    return check_.Error(absl::StrCat("parameter buffer ", index, " still holds unit ", unit, "; release it first"));
  }
  MOTLEY_ASSIGN_OR_RETURN(Tenant* const tenant, Move(index, unit));
  tenant->prefetch = check_.at;
  return absl::OkStatus();
}

absl::Status ParameterRules::FillUnit(int32_t index, int32_t unit, const ArrayRange& elements) {
  MOTLEY_RETURN_IF_ERROR(check_.CheckHome("parameter", index, check_.program.parameter_buffers, unit));
  Buffer& buffer = buffers_[index];
  Tenant* tenant = Find(buffer.tenants, unit);
  if (tenant != nullptr && tenant->gather >= 0 && (tenant->whole || elements.whole())) {
    if (check_.program.parameter_buffers[index].home_of >= 0) {
      return check_.Error(absl::StrCat("parameter buffer ", index, " is a home and gathered already"));
    }
    return check_.Error(absl::StrCat("parameter buffer ", index, " still holds unit ", unit, "; release it first"));
  }
  if (check_.program.offloads.parameters) {
    if (tenant == nullptr) {
      return check_.Error(absl::StrCat("the parameters of unit ", unit,
                                       " are in host memory; prefetch them into parameter buffer ", index, " first"));
    }
    MOTLEY_RETURN_IF_ERROR(check_.Ordered(tenant->prefetch, "it must wait for the prefetch of the parameters of unit ", unit));
  } else if (tenant == nullptr) {
    MOTLEY_ASSIGN_OR_RETURN(tenant, Move(index, unit));
  }
  tenant->gather = check_.at;
  tenant->whole = elements.whole();
  if (elements.whole()) return absl::OkStatus();
  if (const auto twice = tenant->elements.Add({elements.first, elements.end()})) {
    return check_.Error(absl::StrCat("elements ", twice->first, " to ", twice->second, " of unit ", unit, " are gathered twice"));
  }
  return absl::OkStatus();
}

absl::Status ParameterRules::Check(const Release& r) {
  MOTLEY_RETURN_IF_ERROR(check_.InRange("parameter buffer", r.buffer, check_.program.parameter_buffers));
  Buffer& buffer = buffers_[r.buffer];
  if (check_.program.parameter_buffers[r.buffer].home_of >= 0) {
    return check_.Error(absl::StrCat("parameter buffer ", r.buffer, " is a home, which is never released"));
  }
  if (buffer.tenants.empty()) return check_.Error(absl::StrCat("parameter buffer ", r.buffer, " holds nothing"));
  // Uses are on the release's own lane and earlier; the gathers are not.
  for (const Tenant& tenant : buffer.tenants) {
    if (tenant.gather < 0) return check_.Error(absl::StrCat("unit ", tenant.unit, " was prefetched and never gathered"));
    MOTLEY_RETURN_IF_ERROR(
        check_.Ordered(tenant.gather, "the release of parameter buffer ", r.buffer, " must wait for its gather"));
  }
  buffer.tenants.clear();
  buffer.last_release = check_.at;
  return absl::OkStatus();
}

absl::Status ParameterRules::BufferHolds(int32_t index, int32_t unit) const {
  MOTLEY_RETURN_IF_ERROR(check_.InRange("parameter buffer", index, check_.program.parameter_buffers));
  if (check_.program.parameter_buffers[index].IsShard()) {
    return check_.Error(absl::StrCat("parameter buffer ", index, " is a shard; gather the unit into another"));
  }
  return IsFilled(index, unit);
}

absl::Status ParameterRules::IsFilled(int32_t index, int32_t unit) const {
  const std::vector<Tenant>& tenants = buffers_[index].tenants;
  const Tenant* tenant = Find(tenants, unit);
  if (tenant == nullptr || tenant->gather < 0) {
    return check_.Error(absl::StrCat("parameter buffer ", index, " holds ",
                                     tenants.empty() ? "nothing" : absl::StrCat("unit ", tenants[0].unit), ", not unit ", unit,
                                     "; gather it first"));
  }
  if (const int64_t elements = ElementsOf(index, unit); !tenant->whole && tenant->elements.total() < elements) {
    return check_.Error(absl::StrCat("parameter buffer ", index, " holds ", tenant->elements.total(), " of the ", elements,
                                     " elements of unit ", unit, "; gather the rest first"));
  }
  return check_.Ordered(tenant->gather, "use of unit ", unit, " must wait for its gather");
}

}  // namespace motley
