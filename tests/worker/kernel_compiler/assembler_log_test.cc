#include "worker/kernel_compiler/assembler_log.h"

#include <gtest/gtest.h>

namespace motley::kernel_compiler {
namespace {

// As NVRTC 12.9 writes it.
constexpr char kLog[] =
    "ptxas info    : 8 bytes gmem, 24 bytes cmem[4]\n"
    "ptxas info    : Compiling entry function '_Zfirst' for 'sm_90'\n"
    "ptxas info    : Function properties for _Zfirst\n"
    "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
    "ptxas info    : Used 38 registers, used 1 barriers, 1024 bytes smem, 24 bytes cmem[2]\n"
    "ptxas info    : Compile time = 21.212 ms\n"
    "ptxas info    : Compiling entry function '_Zsecond' for 'sm_90'\n"
    "ptxas info    : Function properties for _Zsecond\n"
    "    40 bytes stack frame, 20 bytes spill stores, 16 bytes spill loads\n"
    "ptxas info    : Used 255 registers, 49160 bytes smem\n";

TEST(AssemblerLogTest, SaysWhatEachKernelUses) {
  const std::vector<KernelUse> uses = UsesIn(kLog);
  ASSERT_EQ(uses.size(), 2u);
  EXPECT_EQ(uses[0].symbol, "_Zfirst");
  EXPECT_EQ(uses[0].registers, 38);
  EXPECT_EQ(uses[0].stack_bytes + uses[0].spill_bytes, 0);
  EXPECT_EQ(uses[0].shared_bytes, 1024);
  EXPECT_EQ(uses[1].registers, 255);
  EXPECT_EQ(uses[1].stack_bytes, 40);
  EXPECT_EQ(uses[1].spill_bytes, 36);
  EXPECT_EQ(uses[1].shared_bytes, 49160);
}

TEST(AssemblerLogTest, FaultsAreSaid) {
  EXPECT_EQ(Faults(UsesIn(kLog)),
            (std::vector<std::string>{"_Zsecond has 40 bytes of stack", "_Zsecond spills 36 bytes of registers",
                                      "_Zsecond has 49160 bytes of shared memory"}));
  EXPECT_EQ(Faults(UsesIn("ptxas info    : Compiling entry function '_Zx' for 'sm_90'\n")),
            std::vector<std::string>{"_Zx: the log does not say its registers"});
}

}  // namespace
}  // namespace motley::kernel_compiler
