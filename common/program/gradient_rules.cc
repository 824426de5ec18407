#include "common/program/gradient_rules.h"

#include <algorithm>

namespace motley {

GradientRules::Tenant* GradientRules::Find(int32_t index, int32_t unit) {
  for (Tenant& tenant : buffers_[index].tenants) {
    if (tenant.unit == unit) return &tenant;
  }
  return nullptr;
}

bool GradientRules::HasRoom(int32_t index, int32_t unit) const {
  const int32_t room = check_.program.gradient_buffers[index].num_units;
  const std::vector<Tenant>& tenants = buffers_[index].tenants;
  return std::all_of(tenants.begin(), tenants.end(), [&](const Tenant& t) { return std::abs(t.unit - unit) < room; });
}

absl::Status GradientRules::Write(int32_t index, int32_t unit) {
  MOTLEY_RETURN_IF_ERROR(check_.InRange("gradient buffer", index, check_.program.gradient_buffers));
  MOTLEY_RETURN_IF_ERROR(check_.CheckHome("gradient", index, check_.program.gradient_buffers, unit));
  // A sum from another buffer would be added to the shard in the home, which the home's first write zeroes.
  if (check_.program.gradient_buffers[index].IsShard()) {
    return check_.Error(absl::StrCat("gradient buffer ", index, " is a shard, to which sums alone are added"));
  }
  if (const int32_t home = check_.index.gradient_home[unit]; home >= 0 && home != index && !GoesToShard(index, unit)) {
    return check_.Error(absl::StrCat("the home of unit ", unit, "'s gradients is buffer ", home, ", not ", index));
  }
  Buffer& buffer = buffers_[index];
  Tenant* tenant = Find(index, unit);
  if (tenant != nullptr && tenant->elements.total() > 0) {
    return check_.Error(absl::StrCat("a part of the gradients of unit ", unit, " was reduced; reduce the rest first"));
  }
  if (check_.index.sum_stays[unit] && reduced_[unit] >= 0) {
    return check_.Error(absl::StrCat("the gradients of unit ", unit, " were summed already, once for the step"));
  }
  if (tenant == nullptr) {
    if (!HasRoom(index, unit)) {
      return check_.Error(
          absl::StrCat("gradient buffer ", index, " still holds unit ", buffer.tenants[0].unit, "; reduce it first"));
    }
    const auto reduced = buffer.reduced.find(unit);
    if (reduced != buffer.reduced.end() && check_.program.gradient_buffers[index].home_of >= 0) {
      return check_.Error(absl::StrCat("gradient buffer ", index, " is a home and reduced already"));
    }
    const int before = buffer.tenants.empty() ? buffer.last_reduce : reduced != buffer.reduced.end() ? reduced->second : -1;
    MOTLEY_RETURN_IF_ERROR(
        check_.Ordered(before, "the first write of gradient buffer ", index, " must wait for its last reduction"));
    tenant = &buffer.tenants.emplace_back();
    tenant->unit = unit;
  }
  tenant->last_write = check_.at;
  return absl::OkStatus();
}

absl::Status GradientRules::Check(const ZeroGrad& z) {
  MOTLEY_RETURN_IF_ERROR(check_.ForUnits(z.unit, z.more_units, [&](int32_t unit) { return check_.HoldsArray(unit); }));
  MOTLEY_RETURN_IF_ERROR(check_.InRange("gradient buffer", z.grad, check_.program.gradient_buffers));
  return check_.ForUnits(z.unit, z.more_units, [&](int32_t unit) -> absl::Status {
    if (Find(z.grad, unit) != nullptr || !HasRoom(z.grad, unit)) {
      return check_.Error(absl::StrCat("gradient buffer ", z.grad, " holds gradients that were not reduced"));
    }
    return Write(z.grad, unit);
  });
}

absl::Status GradientRules::ReduceUnit(int32_t index, int32_t unit, const ArrayRange& elements) {
  Buffer& buffer = buffers_[index];
  Tenant* tenant = Find(index, unit);
  if (tenant == nullptr || tenant->summed >= 0) {
    return check_.Error(absl::StrCat("gradient buffer ", index, " holds no gradients of unit ", unit));
  }
  MOTLEY_RETURN_IF_ERROR(check_.Ordered(tenant->last_write, "the reduction of unit ", unit, " must wait for its last backward"));
  if (elements.whole() && tenant->elements.total() > 0) {
    return check_.Error(absl::StrCat("a part of the gradients of unit ", unit, " was reduced; reduce the rest alone"));
  }
  if (!elements.whole()) {
    if (const auto twice = tenant->elements.Add({elements.first, elements.end()})) {
      return check_.Error(
          absl::StrCat("elements ", twice->first, " to ", twice->second, " of unit ", unit, " are reduced twice"));
    }
  }
  const UnitBuffer& declared = check_.program.gradient_buffers[index];
  const int64_t all = declared.IsShard() ? declared.elements : check_.index.elements[unit];
  if (declared.IsShard() && elements.end() > all) {
    return check_.Error(absl::StrCat("elements to ", elements.end(), ": gradient buffer ", index, " is a shard of ", all));
  }
  buffer.last_reduce = check_.at;
  if (!elements.whole() && tenant->elements.total() < all) return absl::OkStatus();
  if (!GoesToShard(index, unit)) reduced_[unit] = check_.at;
  if (check_.index.sum_stays[unit]) {
    if (declared.home_of >= 0) return check_.Error("a home's sum stays where it is: it is neither offloaded nor named by a step");
    tenant->summed = check_.at;
    return absl::OkStatus();
  }
  Leave(index, *tenant);
  return absl::OkStatus();
}

void GradientRules::Leave(int32_t index, const Tenant& tenant) {
  Buffer& buffer = buffers_[index];
  buffer.reduced[tenant.unit] = check_.at;
  buffer.tenants.erase(buffer.tenants.begin() + (&tenant - buffer.tenants.data()));
}

absl::Status GradientRules::TakeSum(int32_t index, int32_t unit) {
  MOTLEY_RETURN_IF_ERROR(check_.InRange("gradient buffer", index, check_.program.gradient_buffers));
  const Tenant* tenant = Find(index, unit);
  if (tenant == nullptr || tenant->summed < 0) {
    return check_.Error(absl::StrCat("gradient buffer ", index, " holds no sum of the gradients of unit ", unit));
  }
  MOTLEY_RETURN_IF_ERROR(check_.Ordered(tenant->summed, "it must wait for the reduction of unit ", unit));
  buffers_[index].last_reduce = check_.at;
  Leave(index, *tenant);
  return absl::OkStatus();
}

absl::Status GradientRules::AddToShard(int32_t unit, int32_t group) {
  const int32_t home = check_.index.gradient_home[unit];
  Buffer& shard = buffers_[home];
  MOTLEY_RETURN_IF_ERROR(check_.SharesOut(unit, check_.program.gradient_buffers[home], group));
  if (check_.program.gradient_buffers[home].elements == 0) {  // the rank keeps nothing of it
    reduced_[unit] = check_.at;
    return absl::OkStatus();
  }
  if (shard.reduced.contains(unit)) {
    return check_.Error(absl::StrCat("gradient buffer ", home, " is a shard and reduced already"));
  }
  Tenant* tenant = Find(home, unit);
  if (tenant == nullptr) tenant = &shard.tenants.emplace_back(Tenant{unit, -1, {}});
  if (tenant->elements.total() > 0) {
    return check_.Error(absl::StrCat("a part of the gradients of unit ", unit, " was reduced; reduce the rest first"));
  }
  tenant->last_write = check_.at;
  return absl::OkStatus();
}

absl::Status GradientRules::CheckEnd() const {
  for (size_t g = 0; g < buffers_.size(); ++g) {
    if (buffers_[g].tenants.empty()) continue;
    if (const Tenant& left = buffers_[g].tenants[0]; left.summed >= 0) {
      return check_.EndError(absl::StrCat("the sum of the gradients of unit ", left.unit, " never leaves gradient buffer ", g));
    }
    return check_.EndError(
        absl::StrCat("gradient buffer ", g, " holds gradients of unit ", buffers_[g].tenants[0].unit, " that were not reduced"));
  }
  for (const int32_t unit : check_.program.units) {
    if (reduced_[unit] >= 0) continue;
    return check_.EndError(absl::StrCat("the gradients of unit ", unit, " are never reduced; without samples, zero them first"));
  }
  return absl::OkStatus();
}

}  // namespace motley
