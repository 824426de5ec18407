// What a card is called: by people, by its maker, by the driver.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "common/device/device_table.h"

namespace motley {
namespace {

using ::testing::HasSubstr;

// Every card that the documentation promises, as people say it.
TEST(DeviceNames, PromisedCards) {
  const std::pair<const char*, const char*> rows[] = {
      {"H200", "H200"},
      {"H100-PCIe", "H100-PCIe"},
      {"H100-NVL", "H100-NVL"},
      {"A100-80GB", "A100-80GB"},
      {"L40S", "L40S"},
      {"L4", "L4"},
      {"A10G", "A10G"},
      {"A6000", "A6000"},
      {"A40", "A40"},
      {"V100-32GB", "V100-32GB"},
      {"T4", "T4"},
      {"P100", "P100"},
      {"P40", "P40"},
      {"RTX 2080 Ti", "RTX-2080-Ti"},
      {"RTX 3080 Ti", "RTX-3080-Ti"},
      {"RTX 3070", "RTX-3070"},
      {"RTX 3090", "RTX-3090"},
      {"3090 Ti", "RTX-3090-Ti"},
      {"GTX 1080", "GTX-1080"},
      {"Titan V", "Titan-V"},
      {"RTX 8000", "Quadro-RTX-8000"},
      {"RTX 4090", "RTX-4090"},
      {"RTX 5090", "RTX-5090"},
      {"Titan RTX", "Titan-RTX"},
      {"RTX 3060", "RTX-3060"},
      {"3060 12GB", "RTX-3060"},
      {"RTX 3080", "RTX-3080"},
      {"RTX 3080 10GB", "RTX-3080"},
      {"4070 Ti", "RTX-4070-Ti"},
      {"rtx4080", "RTX-4080"},
      {"RTX 5080", "RTX-5080"},
      {"A10", "A10"},
      {"A30", "A30"},
      {"RTX A4000", "A4000"},
      {"A4500", "A4500"},
      {"RTX A5000", "A5000"},
      {"RTX 4000 Ada", "RTX-4000-Ada"},
      {"4500 Ada", "RTX-4500-Ada"},
      {"RTX 5000 Ada", "RTX-5000-Ada"},
      {"6000 Ada", "RTX-6000-Ada"},
      {"RTX PRO 6000 Blackwell", "RTX-PRO-6000"},
      {"RTX Pro 6000", "RTX-PRO-6000"},
      {"L20", "L20"},
      {"L40", "L40"},
      {"GTX 1080 Ti", "GTX-1080-Ti"},
      {"1080ti", "GTX-1080-Ti"},
      {"B200", "B200"},
      {"GH200", "GH200"},
      {"MI210", "MI210"},
      {"MI250", "MI250-GCD"},
      {"MI300X", "MI300X"},
  };
  for (const auto& [said, ours] : rows) {
    ASSERT_TRUE(FindGpu(said).ok()) << said;
    EXPECT_EQ(FindGpu(said)->name, ours) << said;
  }
}

TEST(DeviceNames, NamesAreForgiving) {
  EXPECT_EQ(FindGpu("rtx 4090")->name, "RTX-4090");
  EXPECT_EQ(FindGpu("4090")->name, "RTX-4090");
  EXPECT_EQ(FindGpu("NVIDIA A100")->name, "A100-40GB");
  EXPECT_EQ(FindGpu("NVIDIA RTX A6000")->name, "A6000");
}

TEST(DeviceNames, BoardsAreFoundAsTheDriverNamesThem) {
  const std::pair<const char*, const char*> rows[] = {
      {"NVIDIA H200", "H200"},
      {"NVIDIA H100 80GB HBM3", "H100-SXM"},
      {"H100 SXM5", "H100-SXM"},
      {"NVIDIA H100 PCIe", "H100-PCIe"},
      {"NVIDIA H100 NVL", "H100-NVL"},
      {"NVIDIA A100-SXM4-40GB", "A100-40GB"},
      {"A100-SXM4-80GB", "A100-80GB"},
      {"NVIDIA A100-PCIE-40GB", "A100-PCIe-40GB"},
      {"NVIDIA A100 80GB PCIe", "A100-PCIe-80GB"},
      {"NVIDIA A800-SXM4-80GB", "A800"},
      {"NVIDIA A800 80GB PCIe", "A800-PCIe"},
      {"NVIDIA A10G", "A10G"},
      {"NVIDIA L40S", "L40S"},
      {"Tesla V100-SXM2-16GB", "V100-16GB"},
      {"Tesla V100-SXM2-32GB", "V100-32GB"},
      {"Tesla V100-PCIE-32GB", "V100-PCIe-32GB"},
      {"Tesla V100S-PCIE-32GB", "V100S-32GB"},
      {"Tesla T4", "T4"},
      {"Tesla P100-PCIE-12GB", "P100"},
      {"Tesla P100-PCIE-16GB", "P100-PCIe-16GB"},
      {"Tesla P100-SXM2-16GB", "P100-SXM2-16GB"},
      {"Tesla K80", "K80"},
      {"Tesla M40", "M40"},
      {"Tesla M40 24GB", "M40-24GB"},
      {"Tesla P4", "P4"},
      {"NVIDIA A2", "A2"},
      {"NVIDIA H20", "H20"},
      {"NVIDIA H800", "H800"},
      {"NVIDIA H800 PCIe", "H800-PCIe"},
      {"NVIDIA RTX A2000", "A2000"},
      {"NVIDIA RTX A2000 12GB", "A2000-12GB"},
      {"NVIDIA RTX 2000 Ada Generation", "RTX-2000-Ada"},
      {"NVIDIA T1000", "T1000"},
      {"NVIDIA T1000 8GB", "T1000-8GB"},
      {"Quadro P6000", "Quadro-P6000"},
      {"Quadro RTX 4000", "Quadro-RTX-4000"},
      {"Quadro RTX 5000", "Quadro-RTX-5000"},
      {"Quadro RTX 6000", "Quadro-RTX-6000"},
      {"NVIDIA TITAN Xp", "Titan-Xp"},
      {"NVIDIA TITAN X (Pascal)", "Titan-X-Pascal"},
      {"NVIDIA GeForce GTX 1070", "GTX-1070"},
      {"NVIDIA GeForce RTX 2060", "RTX-2060"},
      {"NVIDIA GeForce RTX 2070 SUPER", "RTX-2070-SUPER"},
      {"NVIDIA GeForce RTX 2080", "RTX-2080"},
      {"NVIDIA GeForce RTX 3060 Ti", "RTX-3060-Ti"},
      {"NVIDIA GeForce RTX 3070 Ti", "RTX-3070-Ti"},
      {"NVIDIA GeForce RTX 4060", "RTX-4060"},
      {"NVIDIA GeForce RTX 4060 Ti", "RTX-4060-Ti"},
      {"RTX 4060 Ti 16 GB", "RTX-4060-Ti-16GB"},
      {"NVIDIA GeForce RTX 4070", "RTX-4070"},
      {"NVIDIA GeForce RTX 4070 SUPER", "RTX-4070-SUPER"},
      {"NVIDIA GeForce RTX 4070 Ti SUPER", "RTX-4070-Ti-SUPER"},
      {"NVIDIA GeForce RTX 4080 SUPER", "RTX-4080-SUPER"},
      {"NVIDIA GeForce RTX 5060 Ti", "RTX-5060-Ti"},
      {"NVIDIA GeForce RTX 5070", "RTX-5070"},
      {"NVIDIA GeForce RTX 5070 Ti", "RTX-5070-Ti"},
      {"NVIDIA RTX PRO 6000 Blackwell Server Edition", "RTX-PRO-6000-Server"},
      {"NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", "RTX-PRO-6000-Max-Q"},
      {"Tesla P40", "P40"},
      {"NVIDIA GeForce RTX 2080 Ti", "RTX-2080-Ti"},
      {"NVIDIA GeForce RTX 4090", "RTX-4090"},
      {"NVIDIA TITAN RTX", "Titan-RTX"},
      {"NVIDIA TITAN V", "Titan-V"},
      {"NVIDIA GeForce RTX 3070", "RTX-3070"},
      {"NVIDIA GeForce RTX 3090 Ti", "RTX-3090-Ti"},
      {"NVIDIA GeForce GTX 1080", "GTX-1080"},
      {"Quadro RTX 8000", "Quadro-RTX-8000"},
      {"NVIDIA B200", "B200"},
      {"NVIDIA GH200 480GB", "GH200"},
      {"NVIDIA L20", "L20"},
      {"NVIDIA L40", "L40"},
      {"NVIDIA A10", "A10"},
      {"NVIDIA A30", "A30"},
      {"NVIDIA RTX A4000", "A4000"},
      {"NVIDIA RTX A4500", "A4500"},
      {"NVIDIA RTX A5000", "A5000"},
      {"NVIDIA RTX 4000 Ada Generation", "RTX-4000-Ada"},
      {"NVIDIA RTX 4500 Ada Generation", "RTX-4500-Ada"},
      {"NVIDIA RTX 5000 Ada Generation", "RTX-5000-Ada"},
      {"NVIDIA RTX 6000 Ada Generation", "RTX-6000-Ada"},
      {"NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "RTX-PRO-6000"},
      {"NVIDIA GeForce GTX 1080 Ti", "GTX-1080-Ti"},
      {"GeForce GTX 1080 Ti", "GTX-1080-Ti"},
      {"NVIDIA GeForce RTX 3060", "RTX-3060"},
      {"NVIDIA GeForce RTX 3080", "RTX-3080"},
      {"NVIDIA GeForce RTX 4070 Ti", "RTX-4070-Ti"},
      {"NVIDIA GeForce RTX 4080", "RTX-4080"},
      {"NVIDIA GeForce RTX 5080", "RTX-5080"},
      {"AMD Instinct MI210", "MI210"},
      {"AMD Instinct MI250X/MI250", "MI250-GCD"},
      {"AMD Instinct MI300X", "MI300X"},
      {"AMD Instinct MI300X OAM", "MI300X"},
  };
  for (const auto& [driver, ours] : rows) {
    ASSERT_TRUE(FindGpu(driver).ok()) << driver;
    EXPECT_EQ(FindGpu(driver)->name, ours) << driver;
  }
}

// Boards with a name much like one of the table's, which are others.
TEST(DeviceNames, MemoryMayBeSaidBesideTheName) {
  for (const auto& [said, name] : {std::pair{"3090 24 GB", "RTX-3090"},
                                   {"RTX 3090 (24 GiB)", "RTX-3090"},
                                   {"A6000-48GB", "A6000"},
                                   {"RTX 2080 Ti 11G", "RTX-2080-Ti"},
                                   {"H100 80 GB", "H100-SXM"},
                                   {"4060 Ti 16 GB", "RTX-4060-Ti-16GB"},
                                   {"4060 Ti 8 GB", "RTX-4060-Ti"}}) {
    ASSERT_TRUE(FindGpu(said).ok()) << said;
    EXPECT_EQ(FindGpu(said)->name, name);
  }
  EXPECT_EQ(std::string(FindGpu("3080 12 GB").status().message()),
            "GPU model '3080 12 GB': the device table's RTX-3080 has 10 GiB; `motley cards` lists all");
  for (const char* name : {"24 GB", "GB", "3090 0 GB", "3090 99999999999999999999 GB", "no card 24 GB", ""})
    EXPECT_FALSE(FindGpu(name).ok()) << name;
}

TEST(DeviceNames, OtherBoardsAreNotTaken) {
  for (const char* name : {"RTX 6000", "NVIDIA RTX 4000 SFF Ada Generation", "NVIDIA RTX 5000 Ada Generation Laptop GPU",
                           "NVIDIA GeForce RTX 3080 Laptop GPU", "NVIDIA GH200 144G HBM3e", "NVIDIA A100X", "AMD Instinct MI250X",
                           "AMD Instinct MI300A", "L2", "6000", "4000"}) {
    EXPECT_FALSE(FindGpu(name).ok()) << name;
  }
}

TEST(DeviceNames, UnknownNameSaysTheNearest) {
  const auto found = FindGpu("A600");
  EXPECT_EQ(found.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(found.status().message()), HasSubstr("did you mean 'A6000'?"));
  const std::pair<const char*, const char*> rows[] = {
      {"P4O", "P40"},
      {"RTX 30900", "RTX-3090"},
      {"GTX 10880", "GTX-1080"},
      {"RTXX 4090", "RTX-4090"},
      {"RTX A5500", "A5000"},
      {"RTX 6000", "RTX-6000-Ada"},
      {"RTX 4000 SFF Ada", "RTX-4000-Ada"},
      {"A4000 Ada", "RTX-4000-Ada"},
      {"RTX PRO 6000 Max", "RTX-PRO-6000-Max-Q"},
      {"AMD Instinct MI250X", "MI250-GCD"},
  };
  for (const auto& [said, near] : rows) {
    EXPECT_THAT(std::string(FindGpu(said).status().message()), HasSubstr(absl::StrCat("did you mean '", near, "'?"))) << said;
  }
  // Cards that the table lacks: none of its cards has their family and memory.
  for (const char* name : {"",
                           "NVIDIA",
                           "toaster",
                           "RTX A400",
                           "RTX A1000",
                           "NVIDIA GB10",
                           "NVIDIA GB200",
                           "NVIDIA B100",
                           "NVIDIA B300",
                           "NVIDIA A16",
                           "Tesla M60",
                           "Tesla M10",
                           "Tesla K40m",
                           "Tesla T10",
                           "Quadro P2000",
                           "Quadro P5000",
                           "Quadro M6000",
                           "NVIDIA T400",
                           "NVIDIA T600",
                           "NVIDIA GeForce GTX 1060 6GB",
                           "NVIDIA GeForce GTX 1660 Ti",
                           "NVIDIA GeForce RTX 3050",
                           "NVIDIA GeForce RTX 4090 D",
                           "NVIDIA GeForce RTX 4090 Laptop GPU",
                           "NVIDIA RTX PRO 5000 Blackwell",
                           "NVIDIA RTX PRO 4000 Blackwell",
                           "AMD Instinct MI100",
                           "AMD Instinct MI300A",
                           "AMD Radeon RX 7900 XTX",
                           "AMD Radeon VII",
                           "Intel Arc A770",
                           "L2",
                           "4000",
                           "Titan"}) {
    EXPECT_THAT(std::string(FindGpu(name).status().message()), testing::Not(HasSubstr("did you mean"))) << name;
    EXPECT_THAT(std::string(FindGpu(name).status().message()), HasSubstr("known: B200, ")) << name;
  }
}

}  // namespace
}  // namespace motley
