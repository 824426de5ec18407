#include "worker/daemon/nvidia_cards.h"

#include <gtest/gtest.h>

#include "tests/common/base/folders.h"
#include "tests/common/base/temp_folder.h"

namespace motley::worker {
namespace {

const std::string kRecorded = SourceFolder() + "/tests/worker/daemon/nvidia";

TEST(NvidiaCards, ReadsTheDriversFiles) {
  const NvidiaCards found = FindNvidiaCards(kRecorded);
  EXPECT_EQ(found.driver, "535.129.03");
  ASSERT_EQ(found.cards.size(), 3u);
  EXPECT_EQ(found.cards[0].bus, "0000:3b:00.0");
  EXPECT_EQ(found.cards[1].model, "NVIDIA A100-SXM4-40GB");
  EXPECT_EQ(found.cards[2].model, "Quadro RTX 8000");
  EXPECT_EQ(Describe(found), "2 x NVIDIA A100-SXM4-40GB, Quadro RTX 8000, driver 535.129.03");
}

TEST(NvidiaCards, TheOpenKernelModuleSaysItsVersionElsewhere) {
  const TempFolder folder;
  folder.Write("version",
               "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  550.54.15  Release Build  (builder@host)  Tue\n");
  folder.Write("gpus/0000:01:00.0/information", "Model: \t\t Tesla T4\n");
  EXPECT_EQ(Describe(FindNvidiaCards(folder.path())), "Tesla T4, driver 550.54.15");
}

TEST(NvidiaCards, WhatIsMissingIsSaid) {
  const TempFolder folder;
  EXPECT_TRUE(FindNvidiaCards(folder / "nowhere").cards.empty());
  EXPECT_TRUE(FindNvidiaCards(folder.path()).cards.empty());
  folder.Write("gpus/0000:01:00.0/power", "");
  EXPECT_EQ(Describe(FindNvidiaCards(folder.path())), "a card without a name, driver not known");
}

TEST(NvidiaCards, AControlCharacterInAModelSteersNoTerminal) {
  const TempFolder folder;
  folder.Write("gpus/0000:01:00.0/information", "Model: Tesla\x1b[31m T4\n");
  EXPECT_EQ(FindNvidiaCards(folder.path()).cards.at(0).model, "Tesla\\u001b[31m T4");
}

}  // namespace
}  // namespace motley::worker
