#include "common/base/written_path.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace motley {
namespace {

using testing::HasSubstr;

TEST(WrittenPathTest, WhatAShellWouldReplaceIsNoPath) {
  for (const char* path :
       {"~bob/x", "/home/ada/jobs/~/ck", "$HOME/ck", "/data/${USER}/x", "/data/$(date)", "runs/$SLURM_JOB_ID"}) {
    EXPECT_THAT(WhyNoPath(path, Patterns::kTake), HasSubstr("write the whole path: ~ and $NAME are the shell's")) << path;
  }
}

TEST(WrittenPathTest, WhatLiesElsewhereIsNoPath) {
  const std::pair<const char*, const char*> rows[] = {
      {"s3://b/x.txt", "is a URL (s3://)"},
      {"hf://datasets/a/b", "is a URL (hf://)"},
      {"https://a.org/x.txt", "is a URL (https://)"},
      {"gs://b", "is a URL (gs://)"},
      {"file:///data/x", "write the path alone"},
      {"C:\\data\\x.txt", "of Windows"},
      {"d:/data/x.txt", "of Windows"},
      {"\\\\nas\\data", "share of Windows"},
      {"nas:/export/x", "the machine or store 'nas:'"},
      {"ada@n1:/data/x", "store 'ada@n1:'"},
      {"s3:/b/x.txt", "store 's3:'"},
  };
  for (const auto& [path, why] : rows) EXPECT_THAT(WhyNoPath(path, Patterns::kTake), HasSubstr(why)) << path;
}

TEST(WrittenPathTest, PatternsAreFilesOnlyBehindAShell) {
  for (const char* path : {"/data/*.txt", "data/part-?.txt", "/data/part-[0-9].txt", "/data/{a,b}.txt", "/data/**"}) {
    EXPECT_THAT(WhyNoPath(path, Patterns::kRefuse), HasSubstr("is a pattern (")) << path;
    EXPECT_EQ(WhyNoPath(path, Patterns::kTake), "") << path;
  }
}

TEST(WrittenPathTest, BlanksAndQuotesAround) {
  EXPECT_THAT(WhyNoPath(" /data/x", Patterns::kTake), HasSubstr("blank"));
  EXPECT_THAT(WhyNoPath("'/data/x'", Patterns::kTake), HasSubstr("quoted twice"));
}

TEST(WrittenPathTest, FilesMayBeCalledAsTheyLike) {
  for (const char* path : {"",         "x",           "/",         ".",         "../x",        "/data/my text.txt",
                           "/data/a~", "/data/~a",    "/data/1$",  "/data/a$1", "/data/a:b/c", "/data/c++ (2)",
                           "/data/[",  "/data/a]b[",  "/data/{a}", "/data/a,b", "/data/don't", "/data/\xc3\xa4",
                           "a:b",      "/data/x://y", "llama3-8b", "=x"}) {
    EXPECT_EQ(WhyNoPath(path, Patterns::kRefuse), "") << path;
  }
}

TEST(WrittenPathTest, HomeIsPutInFront) {
  EXPECT_EQ(WithHome("~/ck", "/home/ada"), "/home/ada/ck");
  EXPECT_EQ(WithHome("~", "/home/ada"), "/home/ada");
  for (const char* path : {"~bob/x", "/x/~", "x~", ""}) EXPECT_EQ(WithHome(path, "/home/ada"), path);
  EXPECT_EQ(WithHome("~/ck", ""), "~/ck");
  EXPECT_EQ(WithHome("~/ck", "here"), "~/ck");
}

}  // namespace
}  // namespace motley
