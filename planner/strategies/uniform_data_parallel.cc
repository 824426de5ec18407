#include "planner/strategies/uniform_data_parallel.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "planner/costs/memory_model.h"
#include "planner/pricing/evaluate.h"
#include "planner/split/group_split.h"
#include "planner/split/group_tables.h"
#include "planner/strategies/one_stage.h"
#include "planner/util/lack_of_memory.h"
#include "planner/util/quantity_text.h"

namespace motley::planner {
namespace {

struct Lack {
  int device = -1;  // -1: all fit
  int64_t bytes = 0;
};

class Search {
 public:
  Search(const Setting& setting, const UniformSearch& search) : setting_(setting), search_(search) {
    for (int d = 0; d < setting.num_devices(); ++d) devices_.push_back(d);
    for (const int d : devices_) batches_.push_back(BatchOf(d));
  }

  absl::StatusOr<Plan> Run() {
    double best_seconds = std::numeric_limits<double>::infinity();
    Plan best;
    Lack least;  // of the attempt that came closest
    for (const int zero_stage : search_.zero_stages) {
      for (const bool recompute : search_.recompute) {
        if (setting_.request.recompute == (recompute ? RecomputePolicy::kNone : RecomputePolicy::kFull)) continue;
        for (int64_t m = 1; m <= std::max<int64_t>(1, batches_.front()); m *= 2) {
          const Lack lack = MostLacking(zero_stage, recompute, m);
          if (lack.device >= 0) {
            if (least.device < 0 || lack.bytes < least.bytes) least = lack;
            break;  // a larger microbatch needs more
          }
          Plan plan = PlanOf(zero_stage, recompute, m);
          MOTLEY_ASSIGN_OR_RETURN(const QuickPrice price, EstimatePlan(setting_, plan));
          if (price.step_seconds >= best_seconds) continue;
          best_seconds = price.step_seconds;
          best = std::move(plan);
        }
      }
    }
    if (best_seconds < std::numeric_limits<double>::infinity()) return best;
    return LackOfMemory(
        least.bytes,
        absl::StrCat(search_.strategy, ": equal batches and shards do not fit: ", NameOf(least.device), " lacks ",
                     BytesText(least.bytes), " of its ", BytesText(setting_.UsableBytes(least.device)), " usable for ",
                     BatchOf(least.device), BatchOf(least.device) == 1 ? " sample" : " samples one by one", " and 1/",
                     setting_.num_devices(), " of the sharded state"));
  }

 private:
  const std::string& NameOf(int device) const { return setting_.cluster.devices[device].id.value(); }
  // The first devices take one sample more where the batch does not divide.
  int64_t BatchOf(int device) const {
    const int64_t world = setting_.num_devices(), batch = setting_.workload.global_batch;
    return batch / world + (device < batch % world ? 1 : 0);
  }

  // Layered with sharded parameters goes by units in any case; with whole ones a ministage is a layer, so that all microbatches
  // pass it before its gradients are reduced.
  int64_t LayersPerMinistage(int zero_stage) const {
    return TraitsOf(search_.schedule).by_ministage && zero_stage < 3 ? 1 : setting_.workload.model.num_layers;
  }

  GroupQuestion Question(int zero_stage) const {
    GroupQuestion question;
    question.devices = devices_;
    question.batch = setting_.workload.global_batch;
    question.layers = setting_.workload.model.num_layers;
    question.ministages = question.layers / LayersPerMinistage(zero_stage);
    question.embedding = question.head = true;
    question.schedule = search_.schedule;
    question.zero_stage = zero_stage;
    return question;
  }

  Lack MostLacking(int zero_stage, bool recompute, int64_t microbatch) const {
    const GroupQuestion question = Question(zero_stage);
    Lack most;
    int64_t last_kind = -1, last_batch = -1;
    for (const int d : devices_) {
      const int64_t batch = batches_[d];
      if (setting_.KindOf(d) == last_kind && batch == last_batch) continue;  // like its neighbour
      last_kind = setting_.KindOf(d);
      last_batch = batch;
      const double share = 1.0 / static_cast<double>(devices_.size());
      const RankDuty duty = DutyOf(setting_, question, d, share, recompute);
      const int64_t m = std::max<int64_t>(1, std::min(batch, microbatch));
      const int64_t bytes = MemoryOf(setting_.costs, duty, batch / m, m, batch % m).total() - setting_.UsableBytes(d);
      if (bytes > most.bytes) most = {d, bytes};
    }
    return most;
  }

  Plan PlanOf(int zero_stage, bool recompute, int64_t microbatch) const {
    GroupAnswer answer;
    for (const int d : devices_) {
      const int64_t batch = batches_[d];
      answer.members.push_back({d, batch, std::max<int64_t>(1, std::min(batch, microbatch)),
                                recompute ? OpSet::All() : OpSet::None(), 1.0 / static_cast<double>(devices_.size())});
    }
    return OneStagePlan(setting_, search_.strategy, search_.schedule, LayersPerMinistage(zero_stage),
                        ToStage(setting_, answer, zero_stage), "");
  }

  const Setting& setting_;
  const UniformSearch& search_;
  std::vector<int> devices_;
  std::vector<int64_t> batches_;
};

}  // namespace

absl::StatusOr<Plan> PlanUniform(const Setting& setting, const UniformSearch& search) {
  MOTLEY_RETURN_IF_ERROR(CheckOneStage(setting, search.strategy));
  return Search(setting, search).Run();
}

}  // namespace motley::planner
