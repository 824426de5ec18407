#include "planner/plan/layout_digest.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>

#include "planner/plan/plan_words.h"

namespace motley::planner {
namespace {

// As MurmurHash3 mixes two lanes of 64 bits (Appleby, public domain), a word at a time.
class LayoutMixer {
 public:
  void Add(uint64_t word) {
    first_ ^= std::rotl(word * kOne, 31) * kTwo;
    first_ = (std::rotl(first_, 27) + second_) * 5 + 0x52dce729;
    second_ ^= std::rotl(word * kTwo, 33) * kOne;
    second_ = (std::rotl(second_, 31) + first_) * 5 + 0x38495ab5;
  }
  void AddSize(size_t size) { Add(static_cast<uint64_t>(size)); }
  void AddCount(int64_t count) { Add(static_cast<uint64_t>(count)); }
  void AddShare(double share) { Add(std::bit_cast<uint64_t>(share)); }
  void AddText(const std::string& text) {
    AddSize(text.size());
    for (size_t at = 0; at < text.size(); at += sizeof(uint64_t)) {
      uint64_t word = 0;
      std::memcpy(&word, text.data() + at, std::min(sizeof(word), text.size() - at));
      Add(word);
    }
  }
  LayoutDigest Digest() const {
    const uint64_t sum = first_ + second_;
    const uint64_t first = Finished(sum), second = Finished(second_ + sum);
    return {first + second, first + 2 * second};
  }

 private:
  static constexpr uint64_t kOne = 0x87c37b91114253d5, kTwo = 0x4cf5ad432745937f;
  static uint64_t Finished(uint64_t word) {
    word = (word ^ (word >> 33)) * 0xff51afd7ed558ccd;
    word = (word ^ (word >> 33)) * 0xc4ceb9fe1a85ec53;
    return word ^ (word >> 33);
  }
  uint64_t first_ = 0, second_ = 0;
};

void MixUnit(const UnitPlan& unit, LayoutMixer* mixer) {
  mixer->AddSize(unit.microbatches.size());
  for (const int64_t samples : unit.microbatches) mixer->AddCount(samples);
  mixer->AddSize(unit.ranks.size());
  for (const RankPlan& rank : unit.ranks) {
    mixer->AddText(rank.device.value());
    mixer->AddShare(rank.shard_ratio);
    mixer->AddShare(rank.tp_share);
    const OffloadKinds& offload = rank.offload;
    const int offloaded =
        (offload.activations ? 1 : 0) + (offload.parameters ? 2 : 0) + (offload.optimizer ? 4 : 0) + (offload.gradients ? 16 : 0);
    mixer->AddCount(offloaded + (rank.recompute.all() ? 8 : 0));
    mixer->AddCount(rank.recompute.InProgram());
  }
}

}  // namespace

LayoutDigest DigestOf(const Plan& plan) {
  LayoutMixer mixer;
  mixer.AddCount(static_cast<int64_t>(plan.schedule));
  mixer.AddCount(plan.pipelines_zero_stage);
  if (plan.optimizer_steps != OptimizerSteps::kAtEnd) mixer.AddText(std::string(WordOf(plan.optimizer_steps)));
  mixer.AddSize(plan.pipelines.size());
  for (const PipelinePlan& pipeline : plan.pipelines) {
    mixer.AddSize(pipeline.stages.size());
    for (const StagePlan& stage : pipeline.stages) {
      mixer.AddCount(stage.zero_stage);
      mixer.AddCount(stage.in_flight);
      if (stage.prefetch != 1) mixer.AddText(absl::StrCat("prefetch ", stage.prefetch));
      mixer.AddSize(stage.ministages.size());
      for (const LayerRange& range : stage.ministages) {
        mixer.AddCount(range.first);
        mixer.AddCount(range.last);
      }
      mixer.AddSize(stage.units.size());
      for (const UnitPlan& unit : stage.units) MixUnit(unit, &mixer);
    }
  }
  return mixer.Digest();
}

}  // namespace motley::planner
