#include "common/model/layer_passes.h"

#include <gtest/gtest.h>

#include <iterator>

#include "common/model/model_family.h"

namespace motley {
namespace {

// Whichever trait chooses the table: a family never runs the passes over another's.
TEST(LayerPassesTest, AFamilysPassesAreOverItsOwnOperators) {
  for (size_t i = 0; i < 2 * std::size(kModelFamilies); ++i) {
    const FamilyTraits& traits = TraitsOf(kModelFamilies[i / 2]);
    const bool rotary = i % 2 == 0;
    const std::span<const LayerOperator> operators = LayerOperatorsOf(traits, rotary);
    const LayerPasses& passes = PassesOf(traits, rotary);
    EXPECT_EQ(passes.forward.size(), operators.size());
    for (const LayerPass* pass : {&passes.forward, &passes.backward, &passes.backward_input, &passes.backward_weight}) {
      for (const PassStep& step : *pass) {
        EXPECT_TRUE(step.op >= operators.data() && step.op < operators.data() + operators.size()) << traits.model_type;
      }
    }
    EXPECT_EQ(&PassesOf(traits, rotary), &passes) << "made once";
  }
}

}  // namespace
}  // namespace motley
