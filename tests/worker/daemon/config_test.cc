#include "worker/daemon/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "common/device/device_table.h"
#include "tests/common/base/folders.h"

namespace motley::worker {
namespace {

using ::testing::HasSubstr;

std::string Message(const absl::Status& status) { return std::string(status.message()); }

WorkerConfig Parse(const std::string& text) {
  auto config = ParseWorkerConfig(text, "worker.toml");
  EXPECT_TRUE(config.ok()) << config.status();
  if (!config.ok()) return {};
  if (config->name.empty()) config->name = "n1";
  return *config;
}

TEST(WorkerConfig, RootsAreAListOfFolders) {
  EXPECT_TRUE(Parse("[worker]\nname = \"n1\"").file_roots.empty());
  const WorkerConfig config = Parse("[files]\nroots = [\"/data\", \"/checkpoints\"]");
  EXPECT_EQ(config.file_roots, (std::vector<std::string>{"/data", "/checkpoints"}));
  EXPECT_TRUE(Validate(config).ok()) << Validate(config);
  EXPECT_THAT(Message(ParseWorkerConfig("[files]\nroots = \"/data\"", "worker.toml").status()),
              HasSubstr("worker.toml:2: files.roots must be a list of texts"));
  for (const char* bad : {"data", "/", "/a/../b", "/a\n"}) {
    WorkerConfig wrong = config;
    wrong.file_roots.push_back(bad);
    EXPECT_THAT(Message(Validate(wrong)), HasSubstr("files.roots must")) << bad;
  }
}

TEST(WorkerConfig, WhatIsAuthenticatedIsOneOfThree) {
  EXPECT_EQ(Parse("[worker]\nname = 'n1'").data_authentication, DataAuthentication::kBetweenMachines);
  EXPECT_EQ(Parse("[worker]\ndata_authentication = 'always'").data_authentication, DataAuthentication::kAlways);
  EXPECT_EQ(Parse("[worker]\ndata_authentication = 'never'").data_authentication, DataAuthentication::kNever);
  for (const char* wrong : {"'off'", "false", "''"}) {
    EXPECT_THAT(Message(ParseWorkerConfig(absl::StrCat("[worker]\ndata_authentication = ", wrong), "worker.toml").status()),
                HasSubstr("worker.toml:2: worker.data_authentication must be 'between-machines', 'always' or 'never'"));
  }
}

TEST(WorkerConfig, EmulatedDevicesAreScaled) {
  const WorkerConfig config = Parse(R"(
[worker]
name = "n1"
coordinator = "127.0.0.1:7070"
[emulation]
time_dilation = 1000
memory_scale = 0.5
[network]
node_link_bytes_per_second = 1e9
[[device]]
kind = "emulated"
model = "a6000"
[[device]]
name = "odd"
kind = "emulated"
memory_bytes = 4194304
flops_per_second = 2e9
link_bytes_per_second = 5e6
)");
  ASSERT_TRUE(Validate(config).ok()) << Validate(config);
  const auto devices = DescribeDevices(config);
  ASSERT_TRUE(devices.ok()) << devices.status();
  ASSERT_EQ(devices->size(), 2u);
  EXPECT_EQ((*devices)[0].id.value(), "n1/gpu0");
  EXPECT_EQ((*devices)[0].model, "A6000");
  EXPECT_EQ((*devices)[0].kind, DeviceKind::kEmulated);
  EXPECT_EQ((*devices)[0].memory_bytes, int64_t{24} << 30);
  EXPECT_DOUBLE_EQ((*devices)[0].flops_per_second, 38.7e9);
  EXPECT_DOUBLE_EQ((*devices)[0].node_link_bytes_per_second, 1e6);
  EXPECT_EQ((*devices)[1].id.value(), "n1/odd");
  EXPECT_EQ((*devices)[1].memory_bytes, 2 << 20);
  EXPECT_DOUBLE_EQ((*devices)[1].link_bytes_per_second, 5e3);
}

TEST(WorkerConfig, HostMemoryAndLinksAreScaled) {
  const WorkerConfig config = Parse(R"(
[worker]
host_memory_bytes = 8589934592
[emulation]
time_dilation = 1000
memory_scale = 0.5
[[device]]
kind = "emulated"
model = "A6000"
[[device]]
kind = "emulated"
model = "A100"
host_link_bytes_per_second = 12e9
host_root = 0
[[device]]
kind = "emulated"
model = "mine"
memory_bytes = 4194304
flops_per_second = 2e9
link_bytes_per_second = 5e6
[[device]]
)");
  ASSERT_TRUE(Validate(config).ok()) << Validate(config);
  const auto devices = DescribeDevices(config);
  ASSERT_TRUE(devices.ok()) << devices.status();
  ASSERT_EQ(devices->size(), 4u);
  for (const DeviceDescription& device : *devices) EXPECT_EQ(device.node_host_memory_bytes, int64_t{4} << 30);
  EXPECT_DOUBLE_EQ((*devices)[0].host_link_bytes_per_second, FindGpu("A6000")->pcie_bytes_per_second / 1000);
  EXPECT_DOUBLE_EQ((*devices)[1].host_link_bytes_per_second, 12e6);
  EXPECT_DOUBLE_EQ((*devices)[2].host_link_bytes_per_second, 5e3) << "no table has it: as its own link";
  EXPECT_EQ((*devices)[3].host_link_bytes_per_second, 0) << "a CPU's memory is the host's";
  EXPECT_EQ((*devices)[0].host_root, 1) << "the lowest number that nobody gives";
  EXPECT_EQ((*devices)[1].host_root, 0);
  EXPECT_EQ((*devices)[2].host_root, 2);
  EXPECT_EQ((*devices)[3].host_root, -1);
  EXPECT_EQ(DescribeDevices(Parse("[[device]]\nkind = 'emulated'\nmodel = 'L4'\n"))->front().node_host_memory_bytes, 0);
  EXPECT_EQ(DescribeDevices(Parse("[worker]\nhost_memory_bytes = 4194304\n"))->front().node_host_memory_bytes, 4 << 20);
}

TEST(WorkerConfig, HostMemoryAndLinksThatAreNotAreRefusedByName) {
  const auto message = [](const std::string& worker, const std::string& device) {
    return Message(
        Validate(Parse(absl::StrCat("[worker]\n", worker, "\n[emulation]\nmemory_scale = 0.001\n[[device]]\n", device))));
  };
  const std::string emulated = "kind = 'emulated'\nmodel = 'L4'\n";
  EXPECT_THAT(message("host_memory_bytes = -1", emulated), HasSubstr("worker.host_memory_bytes must be from 0 to 1e+15, got -1"));
  EXPECT_THAT(message("host_memory_bytes = 2000000000000000", emulated), HasSubstr("worker.host_memory_bytes must be from 0"));
  EXPECT_THAT(message("host_memory_bytes = 1048576", emulated),
              HasSubstr("worker.host_memory_bytes is 1048 after emulation.memory_scale = 0.001; it must be at least"));
  EXPECT_THAT(message("", emulated + "host_link_bytes_per_second = -1"),
              HasSubstr("device gpu0: host_link_bytes_per_second must be from 1000 to"));
  EXPECT_THAT(message("", emulated + "host_link_bytes_per_second = 1e20"), HasSubstr("host_link_bytes_per_second must be from"));
  EXPECT_THAT(message("", emulated + "host_root = 256"), HasSubstr("device gpu0: host_root must be from 0 to 255, got 256"));
  EXPECT_THAT(message("", "kind = 'cpu'\nhost_link_bytes_per_second = 1e9"),
              HasSubstr("device cpu0: host_link_bytes_per_second"));
  EXPECT_THAT(message("", "kind = 'cpu'\nhost_root = 0"), HasSubstr("a CPU's memory is the host's"));
  for (const char* wrong : {"[worker]\nhost_memory_bytes = 'all'", "[worker]\nhost_memory_bytes = 0.5"}) {
    EXPECT_THAT(Message(ParseWorkerConfig(wrong, "worker.toml").status()),
                HasSubstr("worker.toml:2: worker.host_memory_bytes must be a whole number of bytes"));
  }
  EXPECT_THAT(Message(ParseWorkerConfig("[[device]]\nhost_root = -1", "worker.toml").status()),
              HasSubstr("device.host_root must be a whole number from 0"));
}

TEST(WorkerConfig, WhatNoDeviceHasIsRefused) {
  const auto message = [](const std::string& device, const std::string& emulation = "") {
    const absl::Status status =
        Validate(Parse(absl::StrCat("[worker]\nname = 'n1'\n[emulation]\n", emulation, "\n[[device]]\n", device, "\n")));
    EXPECT_TRUE(status.ok() || absl::IsInvalidArgument(status)) << status;
    return Message(status);
  };
  EXPECT_THAT(message("memory_bytes = 100"), HasSubstr("device 'n1/cpu0': memory_bytes is 100"));
  EXPECT_THAT(message("memory_bytes = 9000000000000000"), HasSubstr("device 'n1/cpu0': memory_bytes is 9e+15"));
  EXPECT_EQ(message("memory_bytes = 0"), "");
  EXPECT_EQ(message("memory_bytes = 1048576"), "");
  EXPECT_THAT(message("kind = 'emulated'\nmodel = 'A6000'", "memory_scale = 1e-6"),
              HasSubstr("device 'n1/gpu0': memory_bytes is"))
      << "what the rank obeys, after the scale";
  EXPECT_THAT(message("kind = 'emulated'\nmodel = 'A6000'", "time_dilation = 1e9"),
              HasSubstr("device 'n1/gpu0': flops_per_second"));
  EXPECT_THAT(message("kind = 'cuda'\nindex = 0\nmemory_bytes = 100"), HasSubstr("device 'n1/gpu0': memory_bytes is 100"));
}

TEST(WorkerConfig, CpuDevicesDivideTheCores) {
  const auto threads = [](const std::string& kinds, int cores) {
    WorkerConfig config = Parse("[worker]\nname = 'n1'\n");
    for (const char kind : kinds) {
      DeviceConfig& device = config.devices.emplace_back();
      device.name = absl::StrCat("d", config.devices.size());
      if (kind == 'e') device.kind = DeviceKind::kEmulated, device.model = "L4";
    }
    const auto devices = DescribeDevices(config, cores);
    EXPECT_TRUE(devices.ok()) << devices.status();
    std::vector<int> out;
    for (const DeviceDescription& device : *devices) out.push_back(device.threads);
    return out;
  };
  EXPECT_EQ(threads("", 16), std::vector<int>({16}));
  EXPECT_EQ(threads("cc", 16), std::vector<int>({8, 8}));
  EXPECT_EQ(threads("ccc", 8), std::vector<int>({3, 3, 2}));
  EXPECT_EQ(threads("ecec", 5), std::vector<int>({1, 3, 1, 2})) << "an emulated device's speed is declared";
  EXPECT_EQ(threads("ccc", 2), std::vector<int>({1, 1, 1}));
  EXPECT_GE(UsableCores(), 1);
  const auto shared = DescribeDevices(Parse("[worker]\nname = 'n1'\ncores = 3\n"), 8);
  ASSERT_TRUE(shared.ok()) << shared.status();
  EXPECT_EQ((*shared)[0].threads, 3) << "the others are another worker's";
}

TEST(WorkerConfig, WithoutDevicesThereIsOneCpu) {
  const auto devices = DescribeDevices(Parse("[worker]\nname = 'n1'\n"));
  ASSERT_TRUE(devices.ok());
  ASSERT_EQ(devices->size(), 1u);
  EXPECT_EQ((*devices)[0].id.value(), "n1/cpu0");
  EXPECT_EQ((*devices)[0].flops_per_second, 0);
}

TEST(WorkerConfig, UnknownKeysNameFileLineAndNearest) {
  const auto key = ParseWorkerConfig("[worker]\nname = 'a'\ncordinator = 'x'\n", "w.toml");
  EXPECT_EQ(key.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Message(key.status()), HasSubstr("w.toml:3: unknown key 'cordinator'"));
  EXPECT_THAT(Message(key.status()), HasSubstr("did you mean 'coordinator'?"));
  EXPECT_THAT(Message(ParseWorkerConfig("[emulatoin]\n", "w.toml").status()), HasSubstr("did you mean 'emulation'?"));
  EXPECT_THAT(Message(ParseWorkerConfig("[[device]]\nkind = 3\n", "w.toml").status()),
              HasSubstr("w.toml:2: device.kind must be a text"));
  EXPECT_THAT(Message(ParseWorkerConfig("\n[[device]]\nkind = 'tpu'\n", "w.toml").status()),
              HasSubstr("w.toml:2: device.kind 'tpu' is not known; use cpu, emulated, cuda"));
  EXPECT_THAT(Message(ParseWorkerConfig("[worker\n", "w.toml").status()), HasSubstr("w.toml:"));
  EXPECT_EQ(LoadWorkerConfig("/nowhere/w.toml").status().code(), absl::StatusCode::kNotFound);
}

TEST(WorkerConfig, UnknownCardSaysTheNearest) {
  const absl::Status status = Validate(Parse("[[device]]\nkind = 'emulated'\nmodel = 'P4O'\n"));
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(Message(status), HasSubstr("did you mean 'P40'?"));
}

TEST(WorkerConfig, PlaintextBeyondLoopbackNeedsInsecure) {
  for (const char* line : {"data_address = '10.0.0.1'", "metrics = '0.0.0.0:9000'"}) {
    const std::string text = std::string("[worker]\n") + line + "\n";
    const absl::Status status = Validate(Parse(text));
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << line;
    EXPECT_THAT(Message(status), HasSubstr("insecure"));
    EXPECT_TRUE(Validate(Parse(text + "insecure = true\n")).ok()) << line;
  }
}

// Its sessions are encrypted, so they may go anywhere.
TEST(WorkerConfig, ACoordinatorBeyondLoopbackIsDialedByTls) {
  const auto uses_tls = [](const std::string& lines) {
    const WorkerConfig config = Parse("[worker]\n" + lines + "\n");
    EXPECT_EQ(Validate(config), absl::OkStatus()) << lines;
    return UsesTls(config);
  };
  for (const char* beyond : {"10.0.0.1:7073", "coordinator.lab:7073", "[fd00::1]:7073"}) {
    EXPECT_TRUE(uses_tls(absl::StrCat("coordinator = '", beyond, "'"))) << beyond;
    EXPECT_TRUE(uses_tls(absl::StrCat("coordinator = '", beyond, "'\ninsecure = true"))) << "never in plaintext: " << beyond;
  }
  for (const char* near : {"127.0.0.1:7073", "127.9.9.9:7073", "[::1]:7073", "localhost:7073", "unix:/run/motley/workers"}) {
    EXPECT_FALSE(uses_tls(absl::StrCat("coordinator = '", near, "'"))) << near;
  }
  EXPECT_TRUE(uses_tls("identity = '/srv/identity'")) << "who has one shows it, over loopback, too";
}

TEST(WorkerConfig, SeveralMachinesMayBeTheCoordinator) {
  const auto refusal = [](const std::string& list) { return Message(Validate(Parse("[worker]\ncoordinator = " + list))); };
  const WorkerConfig config = Parse("[worker]\ncoordinator = ['a.lab:7073', 'b.lab:7073']\n");
  EXPECT_EQ(Validate(config), absl::OkStatus());
  EXPECT_EQ(config.coordinators, (std::vector<std::string>{"a.lab:7073", "b.lab:7073"}));
  EXPECT_TRUE(UsesTls(config));
  EXPECT_TRUE(UsesTls(Parse("[worker]\ncoordinator = ['127.0.0.1:7073', 'b.lab:7073']\n"))) << "all are dialed alike";
  EXPECT_THAT(refusal("['127.0.0.1:7073', '127.0.0.1:7074']"), HasSubstr("only a certificate tells"));
  EXPECT_THAT(refusal("['unix:/run/motley/workers.sock', 'b.lab:7073']"), HasSubstr("a Unix socket among others"));
  EXPECT_THAT(refusal("[]"), HasSubstr("from 1 to 8 addresses"));
  EXPECT_THAT(refusal("['a:1','a:2','a:3','a:4','a:5','a:6','a:7','a:8','a:9']"), HasSubstr("it names 9"));
  EXPECT_THAT(refusal("['a.lab:7073', 'a.lab:7073']"), HasSubstr("twice"));
  EXPECT_THAT(refusal("['a.lab:7073', 'nohost']"), HasSubstr("'nohost'"));
  EXPECT_THAT(Message(ParseWorkerConfig("[worker]\ncoordinator = [7073]\n", "w.toml").status()),
              HasSubstr("w.toml:2: worker.coordinator must be a text or a list of texts"));
}

TEST(WorkerConfig, TheIdentityHasAFolderOfItsOwn) {
  EXPECT_EQ(IdentityFolderOf(Parse("")), "/var/lib/motley/worker");
  EXPECT_EQ(IdentityFolderOf(Parse("[worker]\nidentity = '/srv/identity'")), "/srv/identity");
  EXPECT_THAT(Message(Validate(Parse("[worker]\ncoordinator = 'unix:/run/motley/workers'\nidentity = '/srv/identity'"))),
              HasSubstr("worker.coordinator is a Unix socket"));
}

TEST(WorkerConfig, AHomeIsNotKnownToAService) {
  for (const char* text : {"[files]\nroots = ['/data', '~/text']\n", "[worker]\nidentity = '$HOME/id'\n",
                           "[worker]\nrank_binary = '~/rank'\n", "[worker]\ncoordinator = 'unix:~/workers.sock'\n"}) {
    EXPECT_THAT(Message(Validate(Parse(text))), HasSubstr("write the whole path: ~ and $NAME are the shell's")) << text;
  }
}

TEST(WorkerConfig, RangesAndNames) {
  for (const char* text :
       {"[worker]\nname = 'a/b'\n", "[worker]\ncoordinator = 'nohost'\n", "[worker]\ndata_address = 'localhost'\n",
        "[worker]\ninsecure = true\ndata_address = '0.0.0.0'\n", "[worker]\ninsecure = true\ndata_address = 'fe80::1'\n",
        "[worker]\nstop_seconds = -1\n", "[emulation]\ntime_dilation = 0\n", "[emulation]\nmemory_scale = 2.0\n",
        "[[device]]\nkind = 'emulated'\n", "[[device]]\nkind = 'cpu'\nmodel = 'L4'\n",
        "[[device]]\nname = 'x'\n[[device]]\nname = 'x'\n",
        "[emulation]\nprecision = 'bf16'\n[[device]]\nkind = 'emulated'\nmodel = 'P40'\n"}) {
    EXPECT_FALSE(Validate(Parse(text)).ok()) << text;
  }
}

TEST(WorkerConfig, FilesOfJobsLieBesideTheIdentityUnlessItSaysWhere) {
  EXPECT_EQ(FilesFolderOf(Parse("")), "/var/lib/motley/worker/files");
  EXPECT_EQ(FilesFolderOf(Parse("[worker]\nidentity = '/srv/identity'")), "/srv/identity/files");
  EXPECT_EQ(FilesFolderOf(Parse("[files]\nlocal = '/disk'")), "/disk");
  EXPECT_THAT(Message(Validate(Parse("[files]\nlocal = 'disk'"))), HasSubstr("files.local must be an absolute path"));
  EXPECT_THAT(Message(Validate(Parse("[files]\nlocal = '~/disk'"))), HasSubstr("files.local"));
}

TEST(WorkerConfig, TrueMemoryIsAPartOfAnEmulatedDevices) {
  const std::string emulated = "[[device]]\nkind = 'emulated'\nmodel = 'L4'\n";
  for (const std::string key : {"true_memory", "true_host_memory"}) {
    const auto message = [&key](const std::string& value, const std::string& device) {
      return Message(Validate(Parse(absl::StrCat("[emulation]\n", key, " = ", value, "\n", device))));
    };
    for (const char* value : {"0", "-0.5", "1.01", "nan", "inf"}) {
      EXPECT_THAT(message(value, emulated), HasSubstr(absl::StrCat("emulation.", key, " must be above 0 and at most 1, got ")))
          << value;
    }
    for (const char* device : {"", "[[device]]\nkind = 'cpu'\n"}) {
      EXPECT_THAT(message("0.8", device),
                  HasSubstr(absl::StrCat("emulation.", key, " is of emulated devices, and this node has none")));
    }
    EXPECT_EQ(message("0.8", emulated), "");
    EXPECT_EQ(message("1", ""), "");
  }
}

TEST(WorkerConfig, ExamplesAreValid) {
  for (const char* name : {"worker.toml", "worker-emulated.toml", "worker-custom.toml"}) {
    auto config = LoadWorkerConfig(SourceFolder() + "/deploy/config/" + name);
    ASSERT_TRUE(config.ok()) << config.status();
    if (config->name.empty()) config->name = "host";
    EXPECT_TRUE(Validate(*config).ok()) << name << ": " << Validate(*config);
    // Where the unit's RuntimeDirectory is: the installed coordinator listens there alone.
    EXPECT_EQ(config->coordinators, std::vector<std::string>{"unix:/run/motley/workers.sock"}) << name;
  }
}

TEST(WorkerConfig, WhoDialsThisMachineByTcpIsToldOfTheSocket) {
  EXPECT_THAT(SocketInstead(Parse("[worker]\ncoordinator = '127.0.0.1:7073'\n")),
              HasSubstr("worker.coordinator = \"unix:/run/motley/workers.sock\""));
  for (const char* other : {"coordinator = 'unix:/run/motley/workers.sock'", "coordinator = 'a.lab:7073'",
                            "coordinator = '127.0.0.1:7073'\nidentity = '/i'"}) {
    EXPECT_EQ(SocketInstead(Parse(absl::StrCat("[worker]\n", other, "\n"))), "") << other;
  }
}

}  // namespace
}  // namespace motley::worker
