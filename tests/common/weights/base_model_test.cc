#include "common/weights/base_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "common/base/sha256.h"
#include "tests/common/checkpoint/checkpoint_fixture.h"
#include "tests/common/weights/weights_fixture.h"

namespace motley {
namespace {

using testing::HasSubstr;

BaseModel SomeBase() {
  return {{{"h.0.ln_1.weight", "transformer.h.0.ln_1.weight", DType::kBFloat16},
           {"wte.weight", "transformer.wte.weight", DType::kFloat16}},
          {{"additional_chat_templates/tool.jinja", "{{ x }}"}, {"config.json", "{\"a\": 1}\n"}, {"tokenizer.json", "\x01\xff"}}};
}

const JobUid kNobody;

// Its name, where that is well.
std::string Keep(const BaseModel& base, const std::string& root, int64_t epoch, const JobUid& uid = kNobody) {
  const NamedBase named(base);
  const absl::Status kept = KeepBase(named, root, epoch, uid);
  EXPECT_TRUE(kept.ok()) << kept;
  return named.name;
}

TEST(BaseModelTest, WhatIsKeptIsReadBack) {
  const TempFolder root;
  const std::string name = Keep(SomeBase(), root.path(), 3);
  EXPECT_TRUE(IsBaseName(name)) << name;
  EXPECT_EQ(Keep(SomeBase(), root.path(), 4), name);
  const auto base = ReadBase(root.path(), name);
  ASSERT_TRUE(base.ok()) << base.status();
  EXPECT_EQ(base->tensors, SomeBase().tensors);
  ASSERT_EQ(base->files.size(), 3u);
  for (const SmallFile& file : SomeBase().files) {
    ASSERT_NE(base->Find(file.name), nullptr) << file.name;
    EXPECT_EQ(*base->Find(file.name), file.text);
  }
  EXPECT_EQ(base->Find("merges.txt"), nullptr);
  BaseModel other = SomeBase();
  other.tensors[0].dtype = DType::kFloat32;
  EXPECT_NE(Keep(other, root.path(), 3), name);
  int entries = 0;
  for (const auto& entry : std::filesystem::directory_iterator(root.path())) entries += entry.is_directory();
  EXPECT_EQ(entries, 2) << "nothing unfinished is left";
}

TEST(BaseModelTest, WhatAKilledWriterLeftIsNoBase) {
  const TempFolder root;
  const std::string name = Keep(SomeBase(), root.path(), 3);
  std::filesystem::rename(root / name, root / (".tmp-" + name + "-gen-5"));
  std::filesystem::remove(root / (".tmp-" + name + "-gen-5/base.json"));
  EXPECT_EQ(ReadBase(root.path(), name).status().code(), absl::StatusCode::kNotFound);
  Keep(SomeBase(), root.path(), 5);
  EXPECT_TRUE(ReadBase(root.path(), name).ok());
}

TEST(BaseModelTest, WhatSomebodyDeletedOfItIsWrittenAgain) {
  for (const char* lost : {"", "/base.json", "/files", "/files/config.json", "/files/additional_chat_templates"}) {
    const TempFolder root;
    const std::string name = Keep(SomeBase(), root.path(), 3);
    std::filesystem::remove_all(root / (name + lost));
    Keep(SomeBase(), root.path(), 3);
    EXPECT_TRUE(ReadBase(root.path(), name).ok()) << lost << ": " << ReadBase(root.path(), name).status();
  }
  const TempFolder root;
  const std::string name = Keep(SomeBase(), root.path(), 3);
  root.Write(name + "/files/config.json", "{");
  Keep(SomeBase(), root.path(), 3);
  EXPECT_TRUE(ReadBase(root.path(), name).ok()) << "cut off";
}

// Whoever may write in the folder would lead an export elsewhere, and the writer as well.
TEST(BaseModelTest, NoPartOfItIsALink) {
  for (const char* part : {"", "/base.json", "/files", "/files/config.json", "/files/additional_chat_templates"}) {
    const TempFolder root, elsewhere;
    const std::string name = Keep(SomeBase(), root.path(), 3);
    std::filesystem::rename(root / (name + part), elsewhere / "moved");
    std::filesystem::create_symlink(elsewhere / "moved", root / (name + part));
    for (const absl::Status& status :
         {ReadBase(root.path(), name).status(), KeepBase(NamedBase(SomeBase()), root.path(), 3, kNobody)}) {
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << part << ": " << status;
      EXPECT_THAT(Message(status), HasSubstr(root / (name + part) + " is a symbolic link"));
    }
  }
}

TEST(BaseModelTest, JobsThatShareItAreMarked) {
  const TempFolder root;
  const std::string name = Keep(SomeBase(), root.path(), 3, kOneUid);
  EXPECT_THAT(*KeepersOf(root.path(), name), testing::ElementsAre(kOneUid));
  Keep(SomeBase(), root.path(), 4, kOneUid);
  Keep(SomeBase(), root.path(), 1, kOtherUid);
  EXPECT_THAT(*KeepersOf(root.path(), name), testing::UnorderedElementsAre(kOneUid, kOtherUid));
  EXPECT_TRUE(ReadBase(root.path(), name).ok());
  const TempFolder of_older_build;
  Keep(SomeBase(), of_older_build.path(), 3);
  Keep(SomeBase(), of_older_build.path(), 3, kOneUid);
  EXPECT_THAT(*KeepersOf(of_older_build.path(), name), testing::IsEmpty()) << "nobody knows who else needs it";
  EXPECT_TRUE(absl::IsNotFound(KeepersOf(root.path(), "base-0123456789abcdef").status()));
}

TEST(BaseModelTest, DamageIsNamed) {
  const TempFolder root;
  const std::string name = Keep(SomeBase(), root.path(), 3);
  root.Write(name + "/files/tokenizer.json", "{}");
  absl::Status status = ReadBase(root.path(), name).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(Message(status), HasSubstr("files/tokenizer.json was altered"));
  root.Write(name + "/base.json", "{}");
  status = ReadBase(root.path(), name).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(Message(status), HasSubstr("base.json was altered"));
  EXPECT_EQ(ReadBase(root.path(), "../base-0123456789abcdef").status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(KeepBase(NamedBase(SomeBase()), root / "absent", 3, kNobody).code(), absl::StatusCode::kUnavailable);
}

TEST(BaseModelTest, ItsDocumentNamesItsFiles) {
  const NamedBase named(SomeBase());
  const auto files = FilesOfBase(named.document, named.name);
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_EQ(files->size(), 3u);
  EXPECT_EQ(files->at(named.name + "/files/additional_chat_templates/tool.jinja"), Sha256Hex("{{ x }}"));
  EXPECT_TRUE(absl::IsDataLoss(FilesOfBase(named.document + " ", named.name).status())) << "altered";
  BaseModel outside = SomeBase();
  outside.files[0].name = "../config.json";
  const NamedBase bad(outside);
  EXPECT_TRUE(absl::IsDataLoss(FilesOfBase(bad.document, bad.name).status())) << "leads out of it";
}

TEST(BaseModelTest, NamesAndTypesAreThoseOfTheFiles) {
  const TempFolder folder;
  ModelShape model = TinyModel(true);
  std::vector<TestTensor> tensors = TensorsOfTest(
      {model, [](const std::string& name) { return name.find("ln_") == std::string::npos ? DType::kFloat16 : DType::kFloat32; },
       /*without_prefix=*/true});
  tensors.push_back(tensors[0]);
  tensors.back().name = "lm_head.weight";
  WriteWhole(folder, model, tensors);
  const auto weights = HuggingFaceWeights::Open(folder.path(), model, DType::kFloat32, OpenAnywhere);
  ASSERT_TRUE(weights.ok()) << weights.status();
  const BaseModel base = BaseOf(*weights);
  EXPECT_EQ(base.tensors.size(), tensors.size());
  const auto has = [&](const BaseTensor& tensor) {
    return std::find(base.tensors.begin(), base.tensors.end(), tensor) != base.tensors.end();
  };
  EXPECT_TRUE(has({"wte.weight", "transformer.wte.weight", DType::kFloat16}));
  EXPECT_TRUE(has({"lm_head.weight", "transformer.wte.weight", DType::kFloat16}));
  EXPECT_TRUE(has({"h.1.ln_2.bias", "transformer.h.1.ln_2.bias", DType::kFloat32}));
}

}  // namespace
}  // namespace motley
