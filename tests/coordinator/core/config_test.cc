#include "coordinator/core/config.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/common/base/folders.h"

namespace motley::coordinator {
namespace {

absl::Status Load(const std::string& text, Config* config) {
  std::string path = (std::filesystem::temp_directory_path() / "motley-config-XXXXXX").string();
  close(mkstemp(path.data()));
  std::ofstream(path) << text;
  absl::Status status = LoadConfigFile(path, config);
  std::filesystem::remove(path);
  return status;
}

TEST(CoordinatorConfig, ReadsEveryKey) {
  Config config;
  ASSERT_TRUE(
      Load(
          "[server]\nsocket='/x'\nlisten='127.0.0.1:1'\nmetrics=''\ninsecure=true\nstop_seconds=7\n"
          "[workers]\nlisten='127.0.0.1:2'\nsocket='/"
          "y'\naccounts=['root',1001]\ntls=true\ncertificate_days=2\ninsecure=false\n[state]\nfolder='/"
          "s'\n[backup]\nfolder='/"
          "b'\nevery=2\n[lease]\nseconds=3\n[limits]\nupdates=1\nupdate_bytes=2\nlog_lines=3\nlog_bytes=4\njobs_with_logs=5\njob_"
          "bytes=6\naccount_jobs=0\npeople_connections=7\naccount_connections=9\nworkers_connections=8\n[log]\nlevel='debug'\n",
          &config)
          .ok());
  EXPECT_EQ(config.listen, "127.0.0.1:1");
  EXPECT_EQ(config.metrics, "");
  EXPECT_TRUE(config.insecure);
  EXPECT_EQ(config.stop, absl::Seconds(7));
  EXPECT_EQ(config.socket, "/x");
  EXPECT_EQ(config.workers_listen, "127.0.0.1:2");
  EXPECT_EQ(config.workers_socket, "/y");
  EXPECT_EQ(config.worker_accounts, (std::vector<std::string>{"root", "1001"}));
  EXPECT_EQ(config.workers_tls, true);
  EXPECT_EQ(config.certificate_lifetime, absl::Hours(48));
  EXPECT_EQ(config.people_connections, 7u);
  EXPECT_EQ(config.account_connections, 9u);
  EXPECT_EQ(config.worker_connections, 8u);
  EXPECT_EQ(config.state_folder, "/s");
  EXPECT_EQ(config.backup_folder, "/b");
  EXPECT_EQ(config.backup_every, absl::Seconds(2));
  EXPECT_EQ(config.lease, absl::Seconds(3));
  EXPECT_EQ(config.updates_kept, 1u);
  EXPECT_EQ(config.update_bytes_kept, 2u);
  EXPECT_EQ(config.log_lines_kept, 3u);
  EXPECT_EQ(config.log_bytes_kept, 4u);
  EXPECT_EQ(config.jobs_with_rings, 5u);
  EXPECT_EQ(config.waiting_job_bytes, 6u);
  EXPECT_EQ(config.account_jobs, 0u);
  EXPECT_EQ(config.log_level, LogLevel::kDebug);
}

TEST(CoordinatorConfig, AMistypedKeyIsNamedWithItsLineAndTheNearest) {
  Config config;
  const std::string message(Load("[server]\nlisten='127.0.0.1:1'\nmetrisc='x'\n", &config).message());
  EXPECT_NE(message.find(":3: unknown key 'server.metrisc'; did you mean 'server.metrics'?"), std::string::npos) << message;
  EXPECT_EQ(Load("[lease]\nseconds='long'\n", &config).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Load("[limits]\nlog_lines=0\n", &config).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Load("[lease\n", &config).code(), absl::StatusCode::kInvalidArgument);
}

TEST(CoordinatorConfig, AHomeIsNotKnownToAService) {
  for (const char* text :
       {"[state]\nfolder='~/motley'\n", "[backup]\nfolder='$HOME/backups'\n", "[server]\nsocket='~/people.sock'\n"}) {
    Config config;
    ASSERT_TRUE(Load(text, &config).ok());
    const std::string message(Validate(config).message());
    EXPECT_NE(message.find("write the whole path: ~ and $NAME are the shell's"), std::string::npos) << text << message;
  }
}

TEST(CoordinatorConfig, AStopHasItsLimits) {
  Config config;
  config.stop = absl::ZeroDuration();
  EXPECT_TRUE(Validate(config).ok());
  for (const absl::Duration stop : {-absl::Seconds(1), absl::Hours(2)}) {
    config.stop = stop;
    const std::string message(Validate(config).message());
    EXPECT_NE(message.find("server.stop_seconds"), std::string::npos) << message;
  }
}

TEST(CoordinatorConfig, APlaintextListenerBeyondLoopbackNeedsTheWord) {
  for (const char* host : {"0.0.0.0", "10.0.0.1", "127.evil.example", "[::]"}) {
    Config config;
    EXPECT_TRUE(Validate(config).ok()) << Validate(config);
    config.metrics = absl::StrCat(host, ":7071");
    EXPECT_NE(Validate(config).message().find("server.insecure"), std::string::npos) << host;
    config.insecure = true;
    EXPECT_TRUE(Validate(config).ok()) << Validate(config);
  }
  Config config;
  config.workers_listen = "nonsense";
  EXPECT_EQ(Validate(config).message().find("workers.listen must be host:port"), 0u);
}

TEST(CoordinatorConfig, WorkersBeyondLoopbackShowCertificates) {
  Config config;
  EXPECT_FALSE(WorkersUseTls(config));
  config.workers_listen = "10.0.0.1:7073";
  EXPECT_TRUE(WorkersUseTls(config));
  EXPECT_TRUE(Validate(config).ok()) << Validate(config);
  config.workers_tls = false;
  EXPECT_NE(Validate(config).message().find("motley node token"), std::string::npos) << Validate(config);
  config = Config();
  config.workers_tls = true;
  EXPECT_TRUE(WorkersUseTls(config)) << "on loopback where it is asked for";
  const std::string old(Load("[workers]\ninsecure=true\n", &config).message());
  EXPECT_NE(old.find(":2: workers.insecure must be left out"), std::string::npos) << old;
  EXPECT_NE(old.find("motley-worker --join TOKEN"), std::string::npos) << "what to do instead: " << old;
  for (const double days : {0.0001, -1.0, 366.0}) {
    config.certificate_lifetime = absl::Hours(24) * days;
    EXPECT_NE(Validate(config).message().find("workers.certificate_days"), std::string::npos) << days;
  }
}

TEST(CoordinatorConfig, TheWorkersSocketLiesBesideThePeoples) {
  Config config;
  config.state_folder = "/s";
  const std::string people = SocketPath(config), workers = WorkersSocketPath(config);
  EXPECT_EQ(people.substr(0, people.rfind('/')), workers.substr(0, workers.rfind('/')));
  config.socket = "/elsewhere/c.sock";
  EXPECT_EQ(WorkersSocketPath(config), "/elsewhere/workers.sock");
  config.socket = "c.sock";
  EXPECT_EQ(WorkersSocketPath(config), "workers.sock");
  config.socket = "";
  EXPECT_EQ(WorkersSocketPath(config), workers) << "people have none";
  config.workers_socket = "";
  EXPECT_EQ(WorkersSocketPath(config), "");
}

TEST(CoordinatorConfig, WhereJobsHaveOwnersNoWorkerComesUnseen) {
  Config config;
  config.socket = "/s/c.sock";
  config.owners = true;
  for (const char* listen : {"127.0.0.1:7073", "[::1]:0", "localhost:7073"}) {
    config.workers_listen = listen;
    config.workers_tls.reset();
    const std::string message(Validate(config).message());
    EXPECT_NE(message.find(absl::StrCat("workers.listen = '", listen, "'")), std::string::npos) << message;
    EXPECT_NE(message.find("Say workers.listen = \"\""), std::string::npos) << message;
    EXPECT_NE(message.find("worker.coordinator = \"unix:/s/workers.sock\" in worker.toml"), std::string::npos) << message;
    config.workers_tls = true;
    EXPECT_TRUE(Validate(config).ok()) << "certificates say who comes: " << Validate(config);
  }
  config.workers_tls.reset();
  config.workers_listen = "10.0.0.1:7073";
  EXPECT_TRUE(Validate(config).ok()) << "by TLS: " << Validate(config);
  config.workers_listen = "";
  EXPECT_TRUE(Validate(config).ok()) << Validate(config);
  EXPECT_FALSE(WorkersUseTls(config));
  config.workers_tls = true;
  EXPECT_FALSE(WorkersUseTls(config)) << "there is no such door";
  config.workers_socket = "";
  EXPECT_NE(Validate(config).message().find("no worker could come"), std::string::npos) << Validate(config);
}

TEST(CoordinatorConfig, AnAccountThatIsNotThereIsNamed) {
  Config config;
  ASSERT_TRUE(Load("[workers]\naccounts=['root', 4001, 'alcie the typo']\n", &config).ok());
  const std::vector<std::string> unknown = UnknownAccounts(config);
  ASSERT_EQ(unknown.size(), 1u) << "a number needs no account";
  EXPECT_EQ(unknown[0].find("workers.accounts: 'alcie the typo' is no account of this machine"), 0u) << unknown[0];
  EXPECT_TRUE(Validate(config).ok()) << "it may be known later: " << Validate(config);
  for (const char* wrong : {"'root'", "[true]", "[1.5]", "[['root']]"}) {
    const std::string said(Load(absl::StrCat("[workers]\naccounts=", wrong, "\n"), &config).message());
    EXPECT_NE(said.find(":2: workers.accounts must be a list of accounts, by name or number"), std::string::npos) << said;
  }
}

TEST(CoordinatorConfig, PeopleStayOnThisMachine) {
  Config config;
  config.listen = "0.0.0.0:7070";
  config.insecure = true;
  EXPECT_NE(Validate(config).message().find("commands the cluster"), std::string::npos);
  config.listen = "[::1]:7070";
  EXPECT_TRUE(Validate(config).ok()) << Validate(config);
  config.listen = "";
  config.socket = "";
  EXPECT_NE(Validate(config).message().find("nobody could reach"), std::string::npos);
}

TEST(CoordinatorConfig, TheSocketIsInTheStateFolderWhereTheServicesFolderIsNot) {
  Config config;
  config.state_folder = "/s";
  const std::string path = SocketPath(config);
  EXPECT_TRUE(path == "/s/people/coordinator.sock" ||
              (path == "/run/motley/coordinator.sock" && access("/run/motley", W_OK) == 0))
      << path;
  config.socket = "/elsewhere";
  EXPECT_EQ(SocketPath(config), "/elsewhere");
}

TEST(CoordinatorConfig, TheExampleHoldsTheDefaults) {
  Config config;
  const absl::Status status = LoadConfigFile(SourceFolder() + "/deploy/config/coordinator.toml", &config);
  ASSERT_TRUE(status.ok()) << status;
  const Config defaults;
  EXPECT_TRUE(Validate(config).ok()) << Validate(config);
  EXPECT_EQ(config.listen, defaults.listen);
  EXPECT_TRUE(config.owners);
  EXPECT_EQ(config.workers_listen, "") << "beside owners";
  EXPECT_EQ(config.worker_accounts, defaults.worker_accounts);
  EXPECT_EQ(config.stop, defaults.stop);
  EXPECT_EQ(config.people_connections, defaults.people_connections);
  EXPECT_EQ(config.account_jobs, defaults.account_jobs);
  EXPECT_EQ(config.account_connections, defaults.account_connections);
  EXPECT_EQ(config.log_bytes_kept, defaults.log_bytes_kept);
  EXPECT_EQ(config.retention.events, defaults.retention.events);
}

TEST(CoordinatorConfig, WhatIsKeptIsCountedFromOne) {
  Config config;
  ASSERT_TRUE(Load("[retention]\nevents=10\njobs=2\ndays=3\nepochs=4\nprofiles=5\n", &config).ok());
  EXPECT_EQ(config.retention.events, 10);
  EXPECT_EQ(config.retention.jobs, 2);
  EXPECT_EQ(config.retention.days, 3);
  EXPECT_EQ(config.retention.epochs, 4);
  EXPECT_EQ(config.retention.profiles, 5);
  EXPECT_EQ(Load("[retention]\njobs=0\n", &config).code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace motley::coordinator
