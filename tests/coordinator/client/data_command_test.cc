// motley data: which Python runs which program with which words.
#include "coordinator/client/data_command.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "coordinator/client/data_python.h"
#include "tests/common/base/folders.h"
#include "tests/common/base/temp_folder.h"
#include "tests/coordinator/client/fake_motley.h"

namespace motley::client {
namespace {

// A Python that says what it was started with, and ends with 7.
std::string FakePython(const TempFolder& folder) {
  const std::string path = folder.Write("python", "#!/bin/sh\necho \"started: $*\" >&2\nexit 7\n");
  chmod(path.c_str(), 0755);
  return path;
}

TEST(DataPythonTest, AskedThenEnvironmentThenSetup) {
  TempFolder folder;
  const std::string program = SourceFolder() + "/deploy/data";
  const DataPlaces places{folder / "cache", "/of/the/environment", ""};
  EXPECT_EQ(*DataPython(places, program, "/asked"), "/asked");
  EXPECT_EQ(*DataPython(places, program, ""), "/of/the/environment");
  const DataPlaces bare{folder / "cache", "", ""};
  const absl::StatusOr<std::string> none = DataPython(bare, program, "");
  EXPECT_EQ(none.status().code(), absl::StatusCode::kNotFound);
  for (const char* way : {"motley data setup", "--python", "MOTLEY_DATA_PYTHON"})
    EXPECT_NE(none.status().message().find(way), std::string::npos) << none.status();
  const std::string venv = *DataVenv(bare, program);
  EXPECT_EQ(venv.rfind(folder / "cache/data-", 0), 0u) << venv;
  std::filesystem::create_directories(venv + "/bin");
  std::ofstream(venv + "/bin/python") << "";
  EXPECT_EQ(*DataPython(bare, program, ""), venv + "/bin/python");
}

TEST(DataPythonTest, AnotherListIsAnotherFolder) {
  TempFolder folder;
  const DataPlaces places{"/cache", "", ""};
  folder.Write("requirements.lock", "one==1\n");
  const std::string one = *DataVenv(places, folder / "");
  EXPECT_EQ(one, *DataVenv(places, folder / ""));
  folder.Write("requirements.lock", "one==2\n");
  EXPECT_NE(one, *DataVenv(places, folder / ""));
  EXPECT_FALSE(DataVenv(places, folder / "absent").ok());
}

TEST(DataPythonTest, ProgramIsBesideTheClientOrInTheSources) {
  TempFolder folder;
  DataPlaces places{"", "", folder / "usr/bin"};
  EXPECT_EQ(DataProgram(places).status().code(), absl::StatusCode::kNotFound);
  std::filesystem::create_directories(folder / "usr/share/motley/data");
  std::ofstream(folder / "usr/share/motley/data/__main__.py") << "";
  EXPECT_EQ(*DataProgram(places), folder / "usr/share/motley/data");
  places.beside = SourceFolder() + "/build/any/bin";
  EXPECT_EQ(*DataProgram(places), SourceFolder() + "/deploy/data");
}

TEST(DataCommandTest, SaysItsWordsToThePython) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // the process is replaced
  TempFolder folder;
  const std::string python = FakePython(folder);
  const std::vector<std::string> prepare = {"data",           "prepare", "--python",  python,    "--tokenizer",    "T",
                                            "--out",          "O",       "--seq-len", "64",      "--json",         "--no-pack",
                                            "--train",        "last",    "--eos",     "<end>",   "--template-arg", "a=1",
                                            "--template-arg", "b=2",     "x.jsonl",   "y.txt.gz"};
  EXPECT_EXIT(std::exit(MotleyAlone(prepare).code), testing::ExitedWithCode(7),
              "started: -B .*deploy/data prepare --tokenizer=T --out=O --seq-len=64 --eos=<end> --no-pack --train=last "
              "--template-arg=a=1 --template-arg=b=2 --json -- x.jsonl y.txt.gz");
  EXPECT_EXIT(std::exit(MotleyAlone({"data", "show", "--python", python, "O", "--row", "0", "--tokens"}).code),
              testing::ExitedWithCode(7), "started: -B .*deploy/data show --row=0 --tokens -- O");
  EXPECT_EXIT(std::exit(MotleyAlone({"data", "setup", "--python", python, "--parquet", "--wheels", "W"}).code),
              testing::ExitedWithCode(7), "started: -B .*deploy/data setup --venv=.*/data-[0-9a-f]+ --wheels=W --parquet");
}

TEST(DataCommandTest, WrongUsage) {
  const std::vector<std::string> whole = {"data",  "prepare",  "--tokenizer",   "T", "--out", "O",
                                          "x.txt", "--python", "/absent/python"};
  EXPECT_EQ(MotleyAlone(whole).code, 69);
  EXPECT_NE(MotleyAlone(whole).err.find("/absent/python cannot be started"), std::string::npos) << MotleyAlone(whole).err;
  const auto with = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words = whole;
    words.insert(words.end(), more.begin(), more.end());
    return MotleyAlone(words);
  };
  EXPECT_EQ(with({"--seq-len", "1"}).code, 64);
  EXPECT_EQ(with({"--seq-len", "1048577"}).code, 64) << "no job has so long rows";
  EXPECT_EQ(with({"--train", "users"}).code, 64);
  EXPECT_EQ(with({"--skip-bad", "-1"}).code, 64);
  EXPECT_EQ(with({"--processes", "0"}).code, 64);
  EXPECT_EQ(MotleyAlone({"data"}).code, 64);
  EXPECT_EQ(MotleyAlone({"data", "prepare", "--tokenizer", "T", "x.txt"}).code, 64) << "no --out";
  EXPECT_EQ(MotleyAlone({"data", "prepare", "--tokenizer", "T", "--out", "O"}).code, 64) << "no input";
  EXPECT_EQ(MotleyAlone({"data", "show"}).code, 64);
  EXPECT_EQ(MotleyAlone({"data", "show", "O", "--row", "-2"}).code, 64);
}

}  // namespace
}  // namespace motley::client
