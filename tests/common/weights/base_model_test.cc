#include "common/weights/base_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

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

TEST(BaseModelTest, WhatIsKeptIsReadBack) {
  const TempFolder root;
  const auto name = KeepBase(SomeBase(), root.path(), 3);
  ASSERT_TRUE(name.ok()) << name.status();
  EXPECT_TRUE(IsBaseName(*name)) << *name;
  const auto again = KeepBase(SomeBase(), root.path(), 4);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again, *name);
  const auto base = ReadBase(root.path(), *name);
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
  EXPECT_NE(*KeepBase(other, root.path(), 3), *name);
  int entries = 0;
  for (const auto& entry : std::filesystem::directory_iterator(root.path())) entries += entry.is_directory();
  EXPECT_EQ(entries, 2) << "nothing unfinished is left";
}

TEST(BaseModelTest, WhatAKilledWriterLeftIsNoBase) {
  const TempFolder root;
  const auto name = KeepBase(SomeBase(), root.path(), 3);
  ASSERT_TRUE(name.ok());
  std::filesystem::rename(root / *name, root / (".tmp-" + *name + "-gen-5"));
  std::filesystem::remove(root / (".tmp-" + *name + "-gen-5/base.json"));
  EXPECT_EQ(ReadBase(root.path(), *name).status().code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(KeepBase(SomeBase(), root.path(), 5).ok());
  EXPECT_TRUE(ReadBase(root.path(), *name).ok());
}

TEST(BaseModelTest, DamageIsNamed) {
  const TempFolder root;
  const std::string name = *KeepBase(SomeBase(), root.path(), 3);
  root.Write(name + "/files/tokenizer.json", "{}");
  absl::Status status = ReadBase(root.path(), name).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(Message(status), HasSubstr("files/tokenizer.json was altered"));
  root.Write(name + "/base.json", "{}");
  status = ReadBase(root.path(), name).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(Message(status), HasSubstr("base.json was altered"));
  EXPECT_EQ(ReadBase(root.path(), "../base-0123456789abcdef").status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(KeepBase(SomeBase(), root / "absent", 3).status().code(), absl::StatusCode::kUnavailable);
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

TEST(SmallFilesTest, AreThoseOfAModelAndNoWeights) {
  const TempFolder folder;
  for (const char* name : {"config.json", "tokenizer.json", "vocab.json", "merges.txt", "chat_template.jinja", "LICENSE",
                           "additional_chat_templates/tool.jinja", "README.md", "model.safetensors", "original/params.json",
                           "modeling_own.py", "additional_chat_templates/notes.md", "LICENSES/MIT.txt"}) {
    folder.Write(name, name);
  }
  const auto files = ReadSmallFiles(folder.path(), OpenAnywhere);
  ASSERT_TRUE(files.ok()) << files.status();
  std::vector<std::string> names;
  for (const SmallFile& file : *files) {
    EXPECT_EQ(file.text, file.name);
    names.push_back(file.name);
  }
  EXPECT_THAT(names, testing::ElementsAre("LICENSE", "README.md", "additional_chat_templates/tool.jinja", "chat_template.jinja",
                                          "config.json", "merges.txt", "tokenizer.json", "vocab.json"));
}

}  // namespace
}  // namespace motley
