#include "worker/daemon/offer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <tuple>

#include "absl/strings/str_cat.h"
#include "tests/common/base/folders.h"
#include "tests/worker/daemon/fake_cards.h"
#include "tests/worker/engine/kernels/open_fake_kernels.h"

namespace motley::worker {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Cards of the fake, a worker's file, and a folder with the rank's builds and the locks.
class OfferTest : public ::testing::Test {
 protected:
  OfferTest() {
    setenv("MOTLEY_RUN_FOLDER", folder_.path().c_str(), 1);
    Build("motley-rank");
  }
  ~OfferTest() override { unsetenv("MOTLEY_RUN_FOLDER"); }

  void Build(const std::string& name) { chmod(folder_.Write(name, "").c_str(), 0755); }

  absl::StatusOr<Offer> Make(const std::string& devices) {
    absl::StatusOr<WorkerConfig> config = ParseWorkerConfig("[worker]\nname = 'n1'\n" + devices, "w.toml");
    if (!config.ok()) return config.status();
    config->rank_binary = folder_ / "motley-rank";
    if (absl::Status status = Validate(*config); !status.ok()) return status;
    return MakeOffer(*config, fake_.Read(), host_);
  }
  std::string Error(const std::string& devices) { return std::string(Make(devices).status().message()); }
  // Of the only card, with nobody to name it.
  std::string WhyUnused() {
    const auto offer = Make("");
    EXPECT_TRUE(offer.ok()) << offer.status();
    EXPECT_EQ(offer->devices.size(), 1u);
    EXPECT_EQ(offer->devices[0].description.id, DeviceId("n1/cpu0")) << "as if there were no card";
    EXPECT_EQ(offer->unused.size(), 1u);
    return offer->unused.empty() ? "" : offer->unused[0].reason;
  }

  FakeCards fake_;
  TempFolder folder_;
  HostMemory host_;
};

constexpr char kFirst[] = "[[device]]\nkind = 'cuda'\nindex = 0\n";

TEST_F(OfferTest, WithoutDevicesEveryCardIsOffered) {
  fake_.Add()["used"] = kCardGiB + 5;
  fake_.Add()["name"] = "NVIDIA T1200 Laptop GPU";
  const auto offer = Make("");
  ASSERT_TRUE(offer.ok()) << offer.status();
  ASSERT_EQ(offer->devices.size(), 2u);
  const DeviceDescription& first = offer->devices[0].description;
  EXPECT_EQ(first.id, DeviceId("n1/gpu0"));
  EXPECT_EQ(first.kind, DeviceKind::kCuda);
  EXPECT_EQ(first.model, "A6000");
  EXPECT_EQ(first.memory_bytes, 46 * kCardGiB + kCardGiB / 4)
      << "less what others and the driver hold, in whole quarters of a GiB";
  EXPECT_EQ(first.card.uuid, "GPU-0abc0");
  EXPECT_EQ(first.card.driver_cuda, 13000);
  EXPECT_EQ(first.card.compute_capability, 86);
  EXPECT_EQ(first.card.used_by_others_bytes, kCardGiB + 5);
  EXPECT_EQ(first.card.power_limit_watts, 300);
  EXPECT_EQ(first.card.note, "");
  EXPECT_DOUBLE_EQ(HostLinkBytesPerSecond(first.card), 31.5e9);
  EXPECT_EQ(offer->devices[0].rank_binary, folder_ / "motley-rank");
  EXPECT_EQ(offer->devices[1].description.model, "NVIDIA T1200 Laptop GPU");
  EXPECT_THAT(offer->devices[1].description.card.note, HasSubstr("not in the device table"));
  EXPECT_EQ(offer->devices[1].card_index, 1);
  EXPECT_EQ(offer->claims.size(), 2u);
  EXPECT_TRUE(offer->unused.empty());
  EXPECT_THAT(Describe(*offer)[0],
              HasSubstr("offers n1/gpu0: A6000, cuda, 46.2 GiB, NVIDIA RTX A6000 at 0000:30:00.0, GPU-0abc0"));
}

TEST_F(OfferTest, AnUnknownCardNamesTheNearestRow) {
  fake_.Add()["name"] = "NVIDIA RTX A5500";
  const auto offer = Make("");
  ASSERT_TRUE(offer.ok()) << offer.status();
  EXPECT_EQ(offer->devices[0].description.card.note, "not in the device table; nearest: A5000");
}

TEST_F(OfferTest, ANarrowLinkIsSaid) {
  fake_.Add()["lanes"] = 4;
  const auto offer = Make("");
  ASSERT_TRUE(offer.ok()) << offer.status();
  EXPECT_EQ(offer->devices[0].description.card.note, "linked with 4 of 16 PCIe lanes");
  EXPECT_DOUBLE_EQ(HostLinkBytesPerSecond(offer->devices[0].description.card), 7.875e9);
}

TEST_F(OfferTest, ACardIsNamedByIndexOrByTheBeginningOfItsUuid) {
  fake_.Add();
  fake_.Add();
  auto offer = Make("[[device]]\nkind = 'cuda'\nuuid = 'gpu-1'\nmemory_bytes = 2000000\n[[device]]\nkind = 'cpu'\n");
  ASSERT_TRUE(offer.ok()) << offer.status();
  ASSERT_EQ(offer->devices.size(), 2u);
  EXPECT_EQ(offer->devices[0].description.card.uuid, "GPU-1abc1");
  EXPECT_EQ(offer->devices[0].description.memory_bytes, 2000000);
  EXPECT_EQ(offer->devices[1].description.kind, DeviceKind::kCpu);
  ASSERT_EQ(offer->unused.size(), 1u);
  EXPECT_EQ(offer->unused[0].card, "NVIDIA RTX A6000 at 0000:30:00.0");
  EXPECT_EQ(offer->unused[0].reason, "no [[device]] of the worker's configuration names it");
  offer = Make("[[device]]\nkind = 'cuda'\nindex = 1\n");
  ASSERT_FALSE(offer.ok()) << "the first offer still has it";
}

TEST_F(OfferTest, WhichCardMustBeSaidOnce) {
  fake_.Add();
  fake_.Add();
  EXPECT_THAT(Error("[[device]]\nkind = 'cuda'\n"), HasSubstr("device gpu0: kind = \"cuda\" needs index = 0, say, or uuid"));
  EXPECT_THAT(Error("[[device]]\nkind = 'cuda'\nindex = 0\nuuid = 'GPU-0'\n"), HasSubstr("give one of them"));
  EXPECT_THAT(Error("[[device]]\nkind = 'cpu'\nindex = 0\n"), HasSubstr("of kind = \"cuda\""));
  EXPECT_THAT(Error("[[device]]\nkind = 'cuda'\nindex = -1\n"), HasSubstr("device.index must be a whole number from 0"));
  EXPECT_THAT(Error("[[device]]\nkind = 'cuda'\nindex = 0\nmodel = 'A6000'\n"), HasSubstr("a cuda is as fast as it is"));
  EXPECT_EQ(Error("[[device]]\nkind = 'cuda'\nindex = 2\n"), "device gpu0: index = 2, but this node has 2 cards (index 0 to 1)");
  EXPECT_EQ(Error("[[device]]\nkind = 'cuda'\nuuid = 'GPU-7'\n"),
            "device gpu0: no card of this node has a UUID that begins with 'GPU-7'; there are: GPU-0abc0, GPU-1abc1");
  EXPECT_EQ(Error("[[device]]\nkind = 'cuda'\nuuid = 'GPU-'\n"),
            "device gpu0: the UUIDs of 2 cards begin with 'GPU-'; give more of it: GPU-0abc0, GPU-1abc1");
  EXPECT_EQ(Error(absl::StrCat(kFirst, "[[device]]\nkind = 'cuda'\nuuid = 'GPU-0'\n")),
            "device gpu1: its card, NVIDIA RTX A6000 at 0000:30:00.0, is device gpu0's");
}

TEST_F(OfferTest, WithoutDriverOrLibraryACardCannotBeNamed) {
  EXPECT_EQ(Error(kFirst), "device gpu0: index = 0, but this node has no NVIDIA card");
  fake_.all["errors"] = {{"nvmlInit_v2", nvml::kDriverNotLoaded}};
  const absl::Status no_driver = Make(kFirst).status();
  EXPECT_EQ(no_driver.code(), absl::StatusCode::kUnavailable) << "it may be loaded later";
  EXPECT_THAT(std::string(no_driver.message()), HasSubstr("device gpu0: NVIDIA's kernel driver is not loaded"));
  EXPECT_THAT(WhyUnused(), HasSubstr("is not loaded")) << "the library is there, so somebody expects cards";
  setenv("MOTLEY_NVML_LIBRARY", "libnowhere-ml.so.1", 1);
  const auto offer = Make("");
  EXPECT_TRUE(offer->unused.empty()) << "a machine without cards";
  ASSERT_EQ(Describe(*offer).size(), 2u);
  EXPECT_THAT(Describe(*offer)[1], HasSubstr("no NVIDIA card is offered: NVIDIA's management library cannot be opened ("));
  EXPECT_EQ(Describe(*Make("[[device]]\nkind = 'cpu'\n")).size(), 1u) << "somebody chose";
  EXPECT_THAT(Error(kFirst), HasSubstr("device gpu0: NVIDIA's management library cannot be opened"));
}

// A container without --gpus: the bus shows the cards, nothing else does.
TEST_F(OfferTest, CardsOnTheBusWithoutALibraryAreSaid) {
  for (const auto& [bus, vendor, kind] : {std::tuple("0000:3b:00.0", "0x10de\n", "0x030200\n"),
                                          {"0000:3b:00.1", "0x10de\n", "0x040300\n"},  // its sound
                                          {"0000:00:02.0", "0x8086\n", "0x030000\n"}}) {
    folder_.Write(absl::StrCat("pci/", bus, "/vendor"), vendor);
    folder_.Write(absl::StrCat("pci/", bus, "/class"), kind);
  }
  setenv("MOTLEY_PCI_DEVICES", (folder_ / "pci").c_str(), 1);
  setenv("MOTLEY_NVML_LIBRARY", "libnowhere-ml.so.1", 1);
  const auto offer = Make("");
  ASSERT_EQ(offer->unused.size(), 1u);
  EXPECT_EQ(offer->unused[0].card, "1 NVIDIA card");
  EXPECT_THAT(Describe(*offer).back(), HasSubstr("does not use 1 NVIDIA card: NVIDIA's management library cannot be opened"));
}

TEST_F(OfferTest, WithoutALibraryTheCardsAreSaidAndNotUsed) {
  WorkerConfig config;
  config.name = "n1";
  NvidiaCards found = FindNvidiaCards(SourceFolder() + "/tests/worker/daemon/nvidia");
  found.problem = absl::NotFoundError("no library");
  const auto offer = MakeOffer(config, found);
  ASSERT_TRUE(offer.ok()) << offer.status();
  EXPECT_EQ(offer->devices[0].description.kind, DeviceKind::kCpu);
  ASSERT_EQ(offer->unused.size(), 3u);
  EXPECT_EQ(offer->unused[0].reason, "no library");
  EXPECT_EQ(Describe(*offer)[1], "does not use NVIDIA A100-SXM4-40GB at 0000:3b:00.0: no library");
}

TEST_F(OfferTest, OfTheHostsMemoryAPartIsOfferedWhereThereAreCards) {
  host_ = {64 * kCardGiB, 50 * kCardGiB};
  EXPECT_EQ(Make("")->devices[0].description.node_host_memory_bytes, 0) << "a CPU's is its own";
  fake_.Add();
  fake_.Add()["name"] = "NVIDIA T1200 Laptop GPU";
  auto offer = Make("");
  ASSERT_TRUE(offer.ok()) << offer.status();
  ASSERT_EQ(offer->devices.size(), 2u);
  for (const OfferedDevice& device : offer->devices) EXPECT_EQ(device.description.node_host_memory_bytes, 40 * kCardGiB);
  EXPECT_THAT(Describe(*offer), ::testing::Contains("offers 40.0 GiB of the host's memory to plans that offload"));
  EXPECT_DOUBLE_EQ(offer->devices[0].description.host_link_bytes_per_second, 0.8 * 31.5e9);
  EXPECT_EQ(offer->devices[0].description.host_root, 0);
  EXPECT_EQ(offer->devices[1].description.host_root, 1);
  offer = absl::CancelledError();  // frees the cards
  const std::string links = "[[device]]\nkind = 'cuda'\nindex = 0\nhost_link_bytes_per_second = 11e9\nhost_root = 3\n";
  offer = Make("host_memory_bytes = 1073741824\n" + links);
  ASSERT_TRUE(offer.ok()) << offer.status();
  EXPECT_EQ(offer->devices[0].description.node_host_memory_bytes, kCardGiB);
  EXPECT_DOUBLE_EQ(offer->devices[0].description.host_link_bytes_per_second, 11e9);
  EXPECT_EQ(offer->devices[0].description.host_root, 3);
  offer = absl::CancelledError();
  EXPECT_EQ(Make("host_memory_bytes = 0\n")->devices[0].description.node_host_memory_bytes, 0);
  EXPECT_THAT(Error("host_memory_bytes = 107374182400\n"), HasSubstr("worker.host_memory_bytes offers 100.0 GiB"));
}

TEST_F(OfferTest, WhatACardIsSetUpForMayBeInTheWay) {
  nlohmann::json& card = fake_.Add();
  card["mode"] = 2;
  EXPECT_THAT(WhyUnused(), HasSubstr("prohibited: nobody may compute on it; `nvidia-smi -i 0000:30:00.0 -c DEFAULT`"));
  card["mode"] = 3;
  EXPECT_THAT(WhyUnused(), HasSubstr("its compute mode is exclusive"));
  EXPECT_THAT(Error(kFirst), HasSubstr("device gpu0: NVIDIA RTX A6000 at 0000:30:00.0: its compute mode is exclusive"));
  card["mode"] = 0;
  card["mig"] = 1;
  EXPECT_THAT(WhyUnused(), HasSubstr("cut into instances (MIG), which are not supported"));
  card["mig"] = 0;
  card["ecc"] = 1;
  EXPECT_THAT(WhyUnused(), HasSubstr("its memory had 1 error since the driver was loaded that ECC could not correct"));
  card["ecc"] = 0;
  card["lost"] = true;
  EXPECT_THAT(WhyUnused(), HasSubstr("GPU is lost (fell off the bus); reset it"));
}

// Such a card ends what met the error and goes on without the page.
TEST_F(OfferTest, AnErrorThatWasContainedIsANote) {
  nlohmann::json& card = fake_.Add();
  card["capability"] = 90;
  card["ecc"] = 2;
  card["remap_failed"] = 0;
  const auto offer = Make(kFirst);
  ASSERT_TRUE(offer.ok()) << offer.status();
  EXPECT_EQ(offer->devices[0].description.card.note,
            "its memory had 2 errors since the driver was loaded that ECC could not correct, but the card contained: "
            "`nvidia-smi -i 0000:30:00.0 --gpu-reset` remaps the bad rows when no job uses it");
}

TEST_F(OfferTest, ARowThatCouldNotBeRemappedIsAReason) {
  nlohmann::json& card = fake_.Add();
  card["capability"] = 90;
  card["remap_failed"] = 1;
  EXPECT_EQ(WhyUnused(), "a bad row of its memory could not be remapped: replace the card");
}

TEST_F(OfferTest, ACardFullOfSomebodysJobSaysWhose) {
  fake_.all["names"] = {{"4711", "/usr/bin/python3"}};
  nlohmann::json& card = fake_.Add();
  card["used"] = 45 * kCardGiB;
  card["processes"] = {{{"pid", 4711}, {"bytes", 44 * kCardGiB}}};
  EXPECT_EQ(WhyUnused(), "others use 45.0 GiB of its 48.0 GiB: python3 (process 4711) 44.0 GiB; 2.5 GiB are left");
  const absl::Status named = Make(kFirst).status();
  EXPECT_EQ(named.code(), absl::StatusCode::kUnavailable) << "it may end";
  card["used"] = 20 * kCardGiB;
  EXPECT_THAT(Error(absl::StrCat(kFirst, "memory_bytes = 40000000000\n")),
              HasSubstr("device gpu0: memory_bytes = 40000000000, but 27.5 GiB (29527900160) are free: others use 20.0 GiB"));
}

TEST_F(OfferTest, TheRankIsTheNewestBuildThatRunsOnTheCard) {
  nlohmann::json& card = fake_.Add();
  card["name"] = "Tesla P40";
  card["capability"] = 61;
  EXPECT_EQ(WhyUnused(),
            "no motley-rank at hand has kernels for sm_61; make one that has them: ./run setup --libtorch 2.7.1 (packages: "
            "docs/use/lab-cards.md)");
  Build("motley-rank-2.7.1");
  {
    const auto offer = Make("");
    ASSERT_TRUE(offer.ok()) << offer.status();
    EXPECT_EQ(offer->devices[0].rank_binary, folder_ / "motley-rank-2.7.1");
    EXPECT_EQ(offer->devices[0].description.model, "P40");
  }
  card = FakeCard();
  {
    const auto offer = Make("");
    ASSERT_TRUE(offer.ok()) << offer.status();
    EXPECT_EQ(offer->devices[0].rank_binary, folder_ / "motley-rank");
  }
  fake_.all["driver"] = "535.129.03";
  fake_.all["driver_cuda"] = 12020;
  {
    const auto offer = Make("");
    ASSERT_TRUE(offer.ok()) << offer.status();
    EXPECT_EQ(offer->devices[0].rank_binary, folder_ / "motley-rank-2.7.1");
  }
  std::filesystem::remove(folder_ / "motley-rank-2.7.1");
  EXPECT_THAT(WhyUnused(), HasSubstr("driver 535.129.03 runs CUDA 12.2, and motley-rank of libtorch 2.11.0 needs 13.0"));
}

TEST_F(OfferTest, TheRanksKernelsAreSaid) {
  fake_.Add();
  const auto card = [this] {
    const auto offer = Make("");
    EXPECT_TRUE(offer.ok()) << offer.status();
    return offer->devices[0].description.card;
  };
  EXPECT_EQ(card().kernels, "");
  EXPECT_THAT(card().why_no_kernels, AllOf(HasSubstr("no kernels' file "), HasSubstr("/motley-kernels; `./run setup --gpu`")));
  EXPECT_THAT(Describe(*Make(""))[0], HasSubstr("; PyTorch's kernels alone: no kernels' file "));
  engine::KernelFile file = engine::FakeKernelFile({card().compute_capability});
  folder_.Write("motley-kernels", engine::WrittenKernelFile(file));
  EXPECT_EQ(card().kernels, file.digest.substr(0, 12));
  EXPECT_EQ(card().why_no_kernels, "");
  EXPECT_THAT(Describe(*Make(""))[0], HasSubstr(", kernels " + file.digest.substr(0, 12)));
  setenv("MOTLEY_KERNELS", "off", 1);
  EXPECT_EQ(card().kernels, "");
  EXPECT_EQ(card().why_no_kernels, "MOTLEY_KERNELS is off");
  unsetenv("MOTLEY_KERNELS");
  engine::KernelFile others = engine::FakeKernelFile({120});
  folder_.Write("motley-kernels", engine::WrittenKernelFile(others));
  EXPECT_THAT(card().why_no_kernels, HasSubstr("has no code for sm_"));
}

TEST_F(OfferTest, TheRanksLibrariesAreSaid) {
  const auto says = [this](const std::string& script) {
    chmod(folder_.Write("motley-rank", absl::StrCat("#!/bin/sh\n", script, "\n")).c_str(), 0755);
    const auto offer = Make("");
    EXPECT_TRUE(offer.ok()) << offer.status();
    return offer->devices[0].description;
  };
  fake_.Add();
  const DeviceDescription card = says("test \"$1\" = --nccl && echo 2.28.9");
  EXPECT_EQ(card.libtorch, "2.11.0");
  EXPECT_EQ(card.card.nccl_version, 22809);
  EXPECT_EQ(says("echo NCCL version 2.28.9+cuda13.0 of NCCL_DEBUG; echo 2.28.9").card.nccl_version, 22809);
  EXPECT_EQ(says("echo NCCL cannot be opened; exit 69").card.nccl_version, 0);
  EXPECT_EQ(says("yes 1").card.nccl_version, 0) << "more than an answer has";
  Build("motley-rank-2.7.1");
  fake_.all["driver_cuda"] = 12020;
  EXPECT_EQ(Make("")->devices[0].description.libtorch, "2.7.1");
  fake_.all["cards"].clear();
  EXPECT_EQ(Make("")->devices[0].description.libtorch, "2.11.0") << "of the CPU's rank";
}

TEST_F(OfferTest, ACardIsOneWorkers) {
  fake_.Add();
  {
    const auto first = Make("");
    ASSERT_TRUE(first.ok()) << first.status();
    EXPECT_EQ(WhyUnused(),
              absl::StrCat("another worker (process ", getpid(), ") offers it; its lock is ", folder_ / "motley-GPU-0abc0.lock"));
    const absl::Status named = Make(kFirst).status();
    EXPECT_EQ(named.code(), absl::StatusCode::kAlreadyExists) << "systemd tries again";
  }
  const auto again = Make(kFirst);
  EXPECT_TRUE(again.ok()) << again.status();
}

TEST(CardClaim, AFolderThatIsNotThereIsAnError) {
  const absl::Status status = CardClaim::Take("/nowhere", "GPU-1").status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("cannot open the lock of a card /nowhere/motley-GPU-1.lock"));
}

}  // namespace
}  // namespace motley::worker
