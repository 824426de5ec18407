// auto's choice between its best plans, by their programs. These show what the classes by which it searches do not: so the best
// plans are searched a little further here, by Price.
//   - With other schedules. One may hide what a rank waits for, such as the sums of a tensor-parallel unit behind the gradients
//   of
//     its weights, and be no faster by Evaluate.
//   - By climbing, as far as a small budget goes: the fastest, and what is faster but lacks memory as it is scheduled.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/plan/plan.h"
#include "planner/pricing/price_book.h"
#include "planner/setting/setting.h"

namespace motley::planner {

struct Finalist {
  std::string origin;
  Plan plan;         // evaluated
  double price = 0;  // Price's; 0: not known
};

// The one with the least price, which it has; of equals the first. Errors of FindFastest.
absl::StatusOr<Finalist> ChooseFinalist(const Setting& setting, std::vector<Finalist> finalists, PriceBook* prices);

}  // namespace motley::planner
