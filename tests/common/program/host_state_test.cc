#include "common/program/host_state.h"

#include <gtest/gtest.h>

namespace motley {
namespace {

TEST(HostState, HasWhatIsOffloadedInOneOrder) {
  const HostState all = HostStateOf(OffloadKinds::All(), 10, 4, 2);
  EXPECT_EQ(all.gradient, 40);
  EXPECT_EQ(all.ParameterAt(), 40);
  EXPECT_EQ(all.MomentAt(0), 80);
  EXPECT_EQ(all.MomentAt(1), 120);
  EXPECT_EQ(all.CastAt(), 160);
  EXPECT_EQ(all.total(), 180);
  EXPECT_EQ(all.StepNeeds(), 160) << "no cast";
  EXPECT_EQ(all.StepMakes(), 140) << "no gradient";
  EXPECT_EQ(all.AreaBytes(), 192) << "whole cache lines";
}

TEST(HostState, WhatStaysTakesNothing) {
  const HostState moments = HostStateOf({.activations = true, .optimizer = true}, 10, 4, 2);
  EXPECT_EQ(moments.total(), 80);
  EXPECT_EQ(moments.MomentAt(0), 0);
  EXPECT_EQ(moments.StepNeeds(), moments.StepMakes());
  const HostState parameters = HostStateOf({.parameters = true}, 10, 8, 8);
  EXPECT_EQ(parameters.total(), 80) << "one type needs no cast";
  EXPECT_EQ(HostStateOf(OffloadKinds::All(), 0, 4, 2).AreaBytes(), 0);
}

}  // namespace
}  // namespace motley
