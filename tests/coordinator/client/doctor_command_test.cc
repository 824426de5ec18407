#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "common/base/version.h"
#include "coordinator/client/doctor_report.h"
#include "nlohmann/json.hpp"
#include "tests/common/base/temp_folder.h"
#include "tests/coordinator/client/fake_motley.h"

namespace motley::client {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

class DoctorTest : public ::testing::Test {
 protected:
  DoctorTest() {
    fake_.check.set_version(kVersion);
    fake_.check.set_protocol(kProtocol);
    fake_.check.set_seconds(1.5);
    Add(v1::Finding::STATE_OK, "node a", "ready, 1 device");
    v1::Link* link = fake_.check.add_links();
    link->set_from("a"), link->set_to("b");
    link->set_connect_seconds(0.00025);
    link->set_bytes_per_second(1.125e8);
    link = fake_.check.add_links();
    link->set_from("b"), link->set_to("a");
    link->set_error("no answer");
  }
  void Add(v1::Finding::State state, const std::string& what, const std::string& text) {
    v1::Finding* finding = fake_.check.add_findings();
    finding->set_state(state);
    finding->set_what(what);
    finding->set_text(text);
  }
  FakeMotley fake_;
};

TEST_F(DoctorTest, AllIsWell) {
  Add(v1::Finding::STATE_LEFT_OUT, "paths", "none was named");
  const Ran ran = Motley(fake_, {"doctor"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.err, "");
  EXPECT_EQ(ran.out, absl::StrCat("STATE     WHAT\n"
                                  "ok        coordinator  ",
                                  fake_.address(), ": version ", kVersion, ", protocol ", kProtocol,
                                  "\n"
                                  "ok        node a       ready, 1 device\n"
                                  "left out  paths        none was named\n"
                                  "\n"
                                  "FROM  TO  CONNECTION  RATE        STATE\n"
                                  "a     b   0.25 ms     112.5 MB/s  ok\n"
                                  "b     a   -           -           wrong\n"
                                  "\n"
                                  "all is well\n"));
  EXPECT_EQ(fake_.checked.at(0).data_path() + fake_.checked.at(0).checkpoint_folder(), "");
  EXPECT_FALSE(fake_.checked.at(0).rates_beside_job());
}

TEST_F(DoctorTest, WhatIsWrongDecidesTheExit) {
  Add(v1::Finding::STATE_WARNING, "clock of b", "3.0 s ahead");
  Ran ran = Motley(fake_, {"doctor"});
  EXPECT_EQ(ran.code, 0);
  EXPECT_THAT(ran.out, HasSubstr("nothing is wrong, 1 warning\n"));
  Add(v1::Finding::STATE_WRONG, "ports", "node b is not reached");
  Add(v1::Finding::STATE_WRONG, "nodes", "bad\n\x1b[2Jtext");
  ran = Motley(fake_, {"doctor"});
  EXPECT_EQ(ran.code, 65);
  EXPECT_THAT(ran.out, HasSubstr("wrong    ports        node b is not reached\n"));
  EXPECT_THAT(ran.out, HasSubstr("2 things are wrong, 1 warning\n"));
  EXPECT_THAT(ran.out, Not(HasSubstr("\x1b")));
}

TEST_F(DoctorTest, AnotherVersionIsAWarningAndAnotherProtocolWrong) {
  fake_.check.set_version("9.9.9");
  EXPECT_EQ(Motley(fake_, {"doctor"}).code, 0);
  fake_.check.set_protocol("motley.v2");
  const Ran ran = Motley(fake_, {"doctor"});
  EXPECT_EQ(ran.code, 65);
  EXPECT_THAT(ran.out, HasSubstr("install the same version on both"));
}

TEST_F(DoctorTest, Json) {
  Add(v1::Finding::STATE_LEFT_OUT, "paths", "none was named");
  const json all = json::parse(Motley(fake_, {"doctor", "-o", "json"}).out);
  EXPECT_EQ(all["state"], "ok");
  EXPECT_EQ(all["verdict"], "all is well");
  EXPECT_EQ(all["version"], kVersion);
  EXPECT_EQ(all["seconds"], 1.5);
  EXPECT_EQ(all["findings"][0]["what"], "coordinator");
  EXPECT_EQ(all["findings"][2]["state"], "left_out");
  EXPECT_EQ(all["links"][0]["bytes_per_second"], 1.125e8);
  EXPECT_TRUE(all["links"][0]["error"].is_null());
  EXPECT_TRUE(all["links"][1]["connect_seconds"].is_null());
  EXPECT_EQ(all["links"][1]["error"], "no answer");
}

TEST_F(DoctorTest, WithoutACoordinatorOrWithAnOlderOne) {
  fake_.refusal = {grpc::StatusCode::UNIMPLEMENTED, ""};  // gRPC's own has no text
  Ran ran = Motley(fake_, {"doctor"});
  EXPECT_EQ(ran.code, 65);
  EXPECT_THAT(ran.out, HasSubstr("wrong  coordinator  the coordinator does not know this request; is it another version?"));
  fake_.Stop();
  ran = Motley(fake_, {"doctor"});
  EXPECT_EQ(ran.code, 69);
  EXPECT_THAT(ran.out, HasSubstr("no coordinator answers at"));
  EXPECT_THAT(ran.out, HasSubstr("1 thing is wrong"));
  const Ran as_json = Motley(fake_, {"doctor", "-o", "json"});
  EXPECT_EQ(as_json.code, 69);
  EXPECT_EQ(json::parse(as_json.out)["state"], "wrong");
  EXPECT_TRUE(json::parse(as_json.out)["version"].is_null());
}

TEST_F(DoctorTest, PathsComeFromFlagsOrAJobFile) {
  TempFolder folder;
  EXPECT_EQ(Motley(fake_, {"doctor", "--data", "/d/../e", "--folder", "relative", "--rates"}).code, 0);
  EXPECT_EQ(fake_.checked.back().data_path(), "/e");
  EXPECT_EQ(fake_.checked.back().checkpoint_folder(), (std::filesystem::current_path() / "relative").string());
  EXPECT_TRUE(fake_.checked.back().rates_beside_job());
  const std::string file = folder.Write("j.toml", "[data]\npath = \"text\"\n[checkpoint]\nfolder = \"/out\"\n");
  EXPECT_EQ(Motley(fake_, {"doctor", "--job", file}).code, 0);
  EXPECT_EQ(fake_.checked.back().data_path(), folder / "text");
  EXPECT_EQ(fake_.checked.back().checkpoint_folder(), "/out");
  EXPECT_EQ(fake_.checked.back().validation_path() + fake_.checked.back().initial(), "");
  EXPECT_EQ(Motley(fake_, {"doctor", "--job", file, "--set", "data.validation_path=/held-out", "--set",
                           "data.validation_fraction=0", "--set", "checkpoint.initial=/base/model"})
                .code,
            0);
  EXPECT_EQ(fake_.checked.back().validation_path(), "/held-out");
  EXPECT_EQ(fake_.checked.back().initial(), "/base/model");
  EXPECT_EQ(Motley(fake_, {"doctor", "--job", file, "--set", "checkpoint.initial=another-job"}).code, 0);
  EXPECT_EQ(fake_.checked.back().initial(), "") << "a job's id";
  EXPECT_EQ(Motley(fake_, {"doctor", "--job", file, "--data", "/d"}).code, 64);
  EXPECT_EQ(Motley(fake_, {"doctor", "--job", file, "--set", "data.path=/elsewhere"}).code, 0);
  EXPECT_EQ(fake_.checked.back().data_path(), "/elsewhere");
  EXPECT_EQ(Motley(fake_, {"doctor", "--job", file, "--set", "data.paht=/elsewhere"}).code, 65);
  EXPECT_EQ(Motley(fake_, {"doctor", "--set", "data.path=/elsewhere"}).code, 64) << "of which job?";
  EXPECT_EQ(Motley(fake_, {"doctor", "--job", folder / "absent"}).code, 66);
  fake_.refusal = {grpc::StatusCode::INVALID_ARGUMENT, "data_path must be"};
  const Ran refused = Motley(fake_, {"doctor"});
  EXPECT_EQ(refused.code, 65);
  EXPECT_EQ(refused.err, "motley: data_path must be\n");
  EXPECT_EQ(refused.out, "");
}

TEST_F(DoctorTest, LongTextsAreFoldedAndNeverCut) {
  Add(v1::Finding::STATE_WRONG, "ports", std::string(30, 'x') + " " + std::string(30, 'y') + " last words");
  std::ostringstream out;
  PrintCheck(out, {.width = 60}, fake_.check);
  EXPECT_THAT(out.str(),
              HasSubstr("wrong  ports   " + std::string(30, 'x') + "\n               " + std::string(30, 'y') + " last words\n"));
}

}  // namespace
}  // namespace motley::client
