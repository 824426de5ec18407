#include "common/base/dtype.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace motley {
namespace {

TEST(DTypeTest, HasItsNameTheShortOneAndPyTorchsAlias) {
  for (const char* name : {"float16", "fp16", "half"}) EXPECT_EQ(*ParseDType(name), DType::kFloat16) << name;
  for (const char* name : {"float32", "fp32", "float"}) EXPECT_EQ(*ParseDType(name), DType::kFloat32) << name;
  for (const char* name : {"float64", "fp64", "double"}) EXPECT_EQ(*ParseDType(name), DType::kFloat64) << name;
  for (const char* name : {"bfloat16", "bf16"}) EXPECT_EQ(*ParseDType(name), DType::kBFloat16) << name;
  EXPECT_THAT(std::string(ParseDType("fp8").status().message()), testing::HasSubstr("use float32, float16, bfloat16 or float64"));
}

}  // namespace
}  // namespace motley
