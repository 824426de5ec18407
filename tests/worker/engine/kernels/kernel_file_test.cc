#include "worker/engine/kernels/kernel_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "worker/engine/kernels/kernel_table.h"

namespace motley::engine {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr char kPlace[] = "/there/motley-kernels";

KernelFile Example() {
  KernelFile file = {.compiler = "NVRTC 12.9"};
  for (const kernels::KernelRow& row : kernels::kKernels) {
    for (const kernels::KernelType& type : kernels::kKernelTypes) {
      file.kernels.push_back(
          {std::string(row.name), std::string(type.name), "_Z" + std::string(row.function), row.argument_bytes});
    }
  }
  file.images = {{60, false, std::string("six\0\n", 5)}, {80, false, "eight"}, {86, false, ""}, {120, true, "ptx"}};
  return file;
}

void ExpectRefused(const absl::Status& status, const std::string& words) {
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr(kPlace), HasSubstr(words), HasSubstr("`./run setup --gpu`")));
}

TEST(KernelFileTest, IsReadAsItWasWritten) {
  KernelFile written = Example();
  const std::string bytes = WrittenKernelFile(written);
  const auto read = ParseKernelFile(bytes, kPlace);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->compiler, "NVRTC 12.9");
  EXPECT_EQ(read->digest, written.digest);
  EXPECT_EQ(read->digest.size(), 64u);
  ASSERT_EQ(read->images.size(), 4u);
  EXPECT_EQ(read->images[0].code, std::string("six\0\n", 5));
  EXPECT_EQ(read->images[3].code, "ptx");
  EXPECT_TRUE(read->images[3].is_ptx);
  EXPECT_EQ(read->kernels.size(), written.kernels.size());
  EXPECT_EQ(read->kernels[1].symbol, written.kernels[1].symbol);
  EXPECT_TRUE(CheckKernelsOfThisBuild(*read, kPlace).ok());
}

TEST(KernelFileTest, OneThatIsCutShortAnywhereIsRefused) {
  KernelFile file = Example();
  const std::string bytes = WrittenKernelFile(file);
  for (size_t length = 0; length < bytes.size(); ++length) {
    const auto read = ParseKernelFile(bytes.substr(0, length), kPlace);
    ASSERT_FALSE(read.ok()) << length;
    ExpectRefused(read.status(), "");
  }
  ExpectRefused(ParseKernelFile(bytes.substr(0, bytes.size() - 1), kPlace).status(), "cut short or altered");
}

TEST(KernelFileTest, OneWithAnyByteAlteredIsRefused) {
  KernelFile file = Example();
  const std::string bytes = WrittenKernelFile(file);
  for (size_t at = 0; at < bytes.size(); ++at) {
    std::string altered = bytes;
    altered[at] ^= 4;
    EXPECT_FALSE(ParseKernelFile(altered, kPlace).ok()) << at;
  }
}

TEST(KernelFileTest, AnotherVersionIsNamed) {
  ExpectRefused(ParseKernelFile("motley-kernels 2\nabc\n{}\n", kPlace).status(), "is of version 2, this rank reads 1");
  ExpectRefused(ParseKernelFile("ELF", kPlace).status(), "does not begin as one");
}

TEST(KernelFileTest, OneThatIsNotThereIsNamed) {
  const auto read = ReadKernelFile("/nowhere/motley-kernels");
  EXPECT_EQ(read.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(read.status().message()), HasSubstr("/nowhere/motley-kernels"));
}

TEST(KernelFileTest, OneOfAnotherBuildIsRefused) {
  KernelFile larger = Example(), fewer = Example();
  larger.kernels[0].argument_bytes += 8;
  ExpectRefused(CheckKernelsOfThisBuild(larger, kPlace), "swiglu_forward takes 32 bytes of arguments there and 24 here");
  const std::string last = fewer.kernels.back().name;
  fewer.kernels.pop_back();
  ExpectRefused(CheckKernelsOfThisBuild(fewer, kPlace), "lacks " + last + " of float32");
}

TEST(KernelFileTest, ACardTakesTheBestCodeThatRunsThere) {
  const KernelFile file = Example();
  const auto name = [&](int capability) {
    const auto image = ImageFor(file, capability, kPlace);
    return image.ok() ? ImageName(**image) : std::string(image.status().message());
  };
  EXPECT_EQ(name(60), "sm_60");
  EXPECT_EQ(name(61), "sm_60");
  EXPECT_EQ(name(80), "sm_80");
  EXPECT_EQ(name(86), "sm_86");
  EXPECT_EQ(name(89), "sm_86");
  EXPECT_EQ(name(120), "compute_120 (PTX)");
  EXPECT_EQ(name(130), "compute_120 (PTX)");
  for (const int without : {52, 70, 90, 100}) {
    ExpectRefused(ImageFor(file, without, kPlace).status(),
                  "has no code for sm_" + std::to_string(without) + ", but for sm_60, sm_80");
  }
}

}  // namespace
}  // namespace motley::engine
