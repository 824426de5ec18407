#include "planner/costs/workload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "absl/strings/str_cat.h"
#include "common/model/parameters.h"
#include "tests/common/base/temp_folder.h"
#include "tests/common/model/published_configs.h"

namespace motley::planner {
namespace {

using testing::HasSubstr;

Workload Valid() {
  Workload workload = *LoadModel("gpt-2.7b");
  workload.global_batch = 128;
  workload.seq_len = 512;
  return workload;
}

TEST(ModelPresets, AreDistinctAndValid) {
  std::set<std::string_view> names;
  for (const ModelPreset& preset : ModelPresets()) {
    EXPECT_TRUE(names.insert(preset.name).second) << preset.name;
    EXPECT_FALSE(preset.what.empty()) << preset.name;
    Workload workload = *LoadModel(std::string(preset.name));
    workload.global_batch = 1;
    workload.seq_len = 512;
    EXPECT_EQ(Validate(workload), absl::OkStatus());
    EXPECT_EQ(preset.model.num_heads % preset.model.num_kv_heads, 0) << preset.name;
  }
}

struct Size {
  const char* name;
  double billions;
};

TEST(ModelPresets, HaveThePublishedSizes) {
  for (const Size& size :
       {Size{"gpt2-1.5b", 1.56}, Size{"gpt-2.7b", 2.65}, Size{"gpt-6.7b", 6.66}, Size{"gpt-175b", 174.6}, Size{"llama-7b", 6.74},
        Size{"llama-13b", 13.0}, Size{"llama-33b", 32.5}, Size{"llama-65b", 65.3}, Size{"llama2-70b", 69.0},
        Size{"llama3-8b", 8.03}, Size{"llama-3b", 3.43}, Size{"bert-large", 0.335}, Size{"vit-e", 3.81}, Size{"vit-g", 1.85}}) {
    const double billions = static_cast<double>(NumParameters(LoadModel(size.name)->model)) / 1e9;
    EXPECT_NEAR(billions, size.billions, 0.01 * size.billions) << size.name;
  }
}

// Reference: the elements of the published safetensors.
TEST(ModelPresets, PublishedModelsHaveTheirParametersToTheUnit) {
  for (const auto& [name, parameters] : std::initializer_list<std::pair<const char*, int64_t>>{{"llama3.1-8b", 8'030'261'248},
                                                                                               {"llama3.2-1b", 1'235'814'400},
                                                                                               {"llama3.2-3b", 3'212'749'824},
                                                                                               {"qwen2.5-0.5b", 494'032'768},
                                                                                               {"qwen2.5-1.5b", 1'543'714'304},
                                                                                               {"qwen2.5-7b", 7'615'616'512},
                                                                                               {"mistral-7b", 7'241'732'096}}) {
    EXPECT_EQ(NumParameters(LoadModel(name)->model), parameters) << name;
  }
  for (const auto& [name, config] : {std::pair{"llama3.1-8b", kLlama31Config},
                                     {"llama3.2-1b", kLlama32Config},
                                     {"qwen2.5-7b", kQwen25Config},
                                     {"mistral-7b", kMistralConfig}}) {
    EXPECT_EQ(LoadModel(name)->model, ParseHfShape(config, name)->shape) << name;
  }
}

// Reference: zorse/model_stats.json, parameters_per_layer.
TEST(ModelPresets, LayersAreTheAuthors) {
  for (const auto& [name, elements] : {std::pair{"gpt-2.7b", 78676480},
                                       {"llama-tiny", 51384320},
                                       {"llama-3b", 123910400},
                                       {"llama-7b", 202383360},
                                       {"llama-33b", 535049216},
                                       {"vit-g", 38361728},
                                       {"vit-e", 67926784},
                                       {"bert-xlarge", 28331520}}) {
    EXPECT_EQ(ParameterLayout(LoadModel(name)->model)[1].num_elements, elements) << name;
  }
}

TEST(LoadModel, UnknownNameNamesTheNearest) {
  const auto model = LoadModel("llama-7");
  EXPECT_EQ(model.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(model.status().message(), HasSubstr("did you mean 'llama-7b'?"));
  EXPECT_EQ(
      std::string(LoadModel("13b").status().message()),
      "model '13b' is neither a preset nor a file; did you mean 'gpt-13b', 'llama-13b', 'llama2-13b'? `motley models` lists "
      "all. Or give the path of a HuggingFace config.json.");
  EXPECT_THAT(LoadModel("Qwen").status().message(), HasSubstr("did you mean 'qwen2.5-0.5b', 'qwen2.5-1.5b', 'qwen2.5-7b'?"));
  for (const char* path : {"confg.json", "./llama-7b", "a/b/c"}) {
    EXPECT_EQ(std::string(LoadModel(path).status().message()),
              absl::StrCat("model '", path, "': there is no such file; `motley models` lists the presets"));
  }
  EXPECT_THAT(LoadModel("zzzzzzzzzzzz").status().message(), HasSubstr("neither a preset nor a file. Known: "));
  const TempFolder folder;
  const absl::Status directory = LoadModel(folder / "").status();
  EXPECT_EQ(directory.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(directory.message(), HasSubstr("is a directory; give its config.json"));
}

TEST(LoadModel, NamesOfTodaysModelsFindTheirs) {
  for (const auto& [said, nearest] : {std::pair{"llama-3.1-8b", "llama3.1-8b"},
                                      {"Llama-3.2-1B", "llama3.2-1b"},
                                      {"llama3.2-3b-instruct", "llama3.2-3b"},
                                      {"qwen-2.5-7b", "qwen2.5-7b"},
                                      {"Qwen2.5-0.5B", "qwen2.5-0.5b"},
                                      {"mistral-7b-v0.1", "mistral-7b"},
                                      {"llama-3-8b", "llama3-8b"}}) {
    EXPECT_THAT(LoadModel(said).status().message(), HasSubstr(std::string("did you mean '") + nearest + "'?")) << said;
  }
}

TEST(LoadModel, AnIdOfTheHubSaysWhatToDownload) {
  const absl::Status status = LoadModel("meta-llama/Llama-3.1-8B").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(status.message(), HasSubstr("download its config.json first (hf download meta-llama/Llama-3.1-8B config.json)"));
  EXPECT_THAT(status.message(), HasSubstr("or take the preset 'llama3.1-8b'"));
  for (const char* path : {"./config", "models/a/config", "m/config.json", "/x"}) {
    EXPECT_THAT(LoadModel(path).status().message(), HasSubstr("there is no such file")) << path;
  }
}

TEST(LoadModel, ReadsConfigJson) {
  const TempFolder folder;
  const std::string path = folder.Write("config.json", ToHfConfig(LoadModel("llama3-8b")->model));
  const auto model = LoadModel(path);
  ASSERT_EQ(model.status(), absl::OkStatus());
  EXPECT_EQ(model->model, LoadModel("llama3-8b")->model);
  EXPECT_EQ(model->model_name, path);
  EXPECT_TRUE(model->notes.empty());
}

TEST(LoadModel, NotesWhatTheShapeLeavesOut) {
  const TempFolder folder;
  const auto model = LoadModel(folder.Write("config.json", kMistralConfig));
  ASSERT_EQ(model.status(), absl::OkStatus());
  EXPECT_EQ(model->model.num_kv_heads, 8);
  EXPECT_THAT(model->notes, testing::Contains(HasSubstr("config.json: sliding_window 4096: attention is priced over all")));
}

TEST(LoadModel, RefusesMixtureOfExpertsByKey) {
  const TempFolder folder;
  const std::string path = folder.Write("config.json", R"({"model_type": "llama", "num_local_experts": 8})");
  EXPECT_THAT(LoadModel(path).status().message(), HasSubstr("num_local_experts"));
}

TEST(LoadModel, RefusesALargeFile) {
  const TempFolder folder;
  const std::string path = folder.Write("config.json", std::string(2 << 20, ' '));
  EXPECT_THAT(LoadModel(path).status().message(), HasSubstr("larger than the 1048576 bytes"));
}

TEST(ValidateWorkload, NamesFieldAndRemedy) {
  EXPECT_EQ(Validate(Valid()), absl::OkStatus());
  Workload workload = Valid();
  workload.seq_len = 4096;
  EXPECT_THAT(Validate(workload).message(), HasSubstr("1 to 2048, the positions of gpt-2.7b, got 4096; give --seq-len"));
  workload.seq_len = 0;
  EXPECT_FALSE(Validate(workload).ok());
  workload = Valid();
  workload.global_batch = 0;
  EXPECT_THAT(Validate(workload).message(), HasSubstr("give --global-batch"));
  workload.global_batch = int64_t{1} << 40;
  EXPECT_FALSE(Validate(workload).ok());
  workload = Valid();
  workload.model.hidden_size = -1;
  EXPECT_THAT(Validate(workload).message(), HasSubstr("hidden_size"));
}

}  // namespace
}  // namespace motley::planner
