#include "common/model/layer_passes.h"

#include <gtest/gtest.h>

#include "common/model/model_family.h"

namespace motley {
namespace {

// Whichever trait chooses the table: a family never runs the passes over another's.
TEST(LayerPassesTest, AFamilysPassesAreOverItsOwnOperators) {
  for (const ModelFamily family : kModelFamilies) {
    const FamilyTraits& traits = TraitsOf(family);
    const std::span<const LayerOperator> operators = LayerOperatorsOf(traits);
    const LayerPasses& passes = PassesOf(traits);
    EXPECT_EQ(passes.forward.size(), operators.size());
    for (const LayerPass* pass : {&passes.forward, &passes.backward, &passes.backward_input, &passes.backward_weight}) {
      for (const PassStep& step : *pass) {
        EXPECT_TRUE(step.op >= operators.data() && step.op < operators.data() + operators.size()) << traits.model_type;
      }
    }
    EXPECT_EQ(&PassesOf(traits), &passes) << "made once";
  }
}

}  // namespace
}  // namespace motley
