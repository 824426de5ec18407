#include "planner/pricing/price_book.h"

#include "common/base/status_macros.h"
#include "planner/pricing/price.h"
#include "planner/util/lack_of_memory.h"

namespace motley::planner {
namespace {

absl::StatusOr<PriceBook::Known> Ask(const Setting& setting, const Plan& plan) {
  MOTLEY_ASSIGN_OR_RETURN(const Evaluation priced, Price(setting, plan));
  PriceBook::Known known{priced.plan.predicted.step_seconds, absl::OkStatus()};
  if (!priced.does_not_fit.empty()) known.fits = LackOfMemory(priced.lacking_bytes, priced.does_not_fit.front());
  return known;
}

}  // namespace

PriceBook::Entry& PriceBook::EntryOf(const Plan& plan) {
  const LayoutDigest digest = DigestOf(plan);
  const absl::MutexLock lock(&mutex_);
  return entries_[digest];
}

absl::StatusOr<PriceBook::Known> PriceBook::PriceOf(const Setting& setting, const Plan& plan) {
  if (plan.training || plan.ownership) return Ask(setting, plan);  // made already, by whatever costs there were
  Entry& entry = EntryOf(plan);
  const absl::MutexLock lock(&entry.mutex);
  if (!entry.known) entry.known = Ask(setting, plan);
  return *entry.known;
}

}  // namespace motley::planner
