#include "common/program/offload_kinds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace motley {
namespace {

using ::testing::HasSubstr;

std::string Complaint(std::string_view text) { return std::string(ParseOffload(text).status().message()); }

TEST(OffloadKinds, AreAllNoneOrAList) {
  EXPECT_EQ(*ParseOffload("auto"), OffloadKinds::All());
  EXPECT_EQ(*ParseOffload("never"), OffloadKinds::None());
  EXPECT_EQ(*ParseOffload("activations"), (OffloadKinds{.activations = true}));
  EXPECT_EQ(*ParseOffload("optimizer, parameters"), (OffloadKinds{.parameters = true, .optimizer = true}));
  EXPECT_EQ(*ParseOffload("activations,parameters,gradients,optimizer"), OffloadKinds::All());
}

TEST(OffloadKinds, AnUnknownWordIsRefusedWithThoseThereAre) {
  EXPECT_EQ(Complaint("weights"),
            "'weights' is not known; it is auto, never, or a list such as activations,parameters,gradients,optimizer");
  EXPECT_THAT(Complaint("activation"), HasSubstr("did you mean 'activations'?"));
  EXPECT_THAT(Complaint("auto,optimizer"), HasSubstr("'auto' stands alone"));
  EXPECT_THAT(Complaint("activations,never"), HasSubstr("'never' stands alone"));
  EXPECT_THAT(Complaint(" , "), HasSubstr("nothing is said; it is auto, never"));
}

TEST(OffloadKinds, AreSaidInWords) {
  EXPECT_EQ(InWords(OffloadKinds::None()), "nothing");
  EXPECT_EQ(InWords({.parameters = true}), "parameters");
  EXPECT_EQ(InWords({.activations = true, .optimizer = true}), "activations and optimizer");
  EXPECT_EQ(InWords(OffloadKinds::All()), "activations, parameters, gradients and optimizer");
}

TEST(OffloadKinds, AreSets) {
  constexpr OffloadKinds all = OffloadKinds::All(), activations = {.activations = true};
  EXPECT_EQ(all.And(activations), activations);
  EXPECT_EQ(activations.Or({.gradients = true}), (OffloadKinds{.activations = true, .gradients = true}));
  EXPECT_EQ(all.Without(activations), (OffloadKinds{.parameters = true, .gradients = true, .optimizer = true}));
  EXPECT_FALSE(activations.Without(all).any());
  EXPECT_FALSE(activations.takes_state());
  EXPECT_TRUE((OffloadKinds{.optimizer = true}).takes_state());
}

}  // namespace
}  // namespace motley
