// Opens the fake NVML (fake_nvml.cc) and writes the file that it answers from.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/common/base/folders.h"
#include "tests/common/base/temp_folder.h"
#include "worker/daemon/nvml_cards.h"

namespace motley::worker {

inline constexpr int64_t kCardGiB = int64_t{1} << 30;

// An idle RTX A6000; `number` makes UUID and bus.
inline nlohmann::json FakeCard(int number = 0) {
  const std::string digit = std::to_string(number);
  return {{"name", "NVIDIA RTX A6000"},
          {"uuid", "GPU-" + digit + "abc" + digit},
          {"bus", "0000:3" + digit + ":00.0"},
          {"memory", 48 * kCardGiB},
          {"reserved", kCardGiB / 2},
          {"used", 0},
          {"processes", nlohmann::json::array()},
          {"capability", 86},
          {"generation", 4},
          {"most_lanes", 16},
          {"lanes", 16},
          {"power_limit", 300000},
          {"power", 120500},
          {"clock", 1410},
          {"temperature", 45},
          {"throttle", 0},
          {"ecc", 0},
          {"mode", 0},
          {"mig", 0},
          {"utilization", 87}};
}

class FakeCards {
 public:
  FakeCards() {
    setenv("MOTLEY_NVML_LIBRARY", (BuildFolder() + "/tests/libfake_nvml.so").c_str(), 1);
    setenv("MOTLEY_FAKE_NVML", path().c_str(), 1);
    setenv("MOTLEY_PCI_DEVICES", (folder_ / "no-bus").c_str(), 1);
    Write();
  }
  ~FakeCards() {
    unsetenv("MOTLEY_NVML_LIBRARY");
    unsetenv("MOTLEY_FAKE_NVML");
    unsetenv("MOTLEY_PCI_DEVICES");
  }

  std::string path() const { return folder_ / "cards.json"; }
  // Whole, so that nobody reads half of it.
  void Write() const {
    folder_.Write("new.json", all.dump());
    ASSERT_EQ(std::rename((folder_ / "new.json").c_str(), path().c_str()), 0);
  }
  NvidiaCards Read() const {
    Write();
    return LookForCards(NvmlLibrary::Open(), folder_ / "no-driver");
  }
  nlohmann::json& Add() {
    all["cards"].push_back(FakeCard(static_cast<int>(all["cards"].size())));
    return all["cards"].back();
  }

  nlohmann::json all = {{"driver", "580.65.06"}, {"driver_cuda", 13000}, {"cards", nlohmann::json::array()}};

 private:
  TempFolder folder_;
};

}  // namespace motley::worker
