// Whatever is done to a checkpoint's files: what is read is what was written, or an error says otherwise, or an older checkpoint
// is used and the newer one named.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/checkpoint/checkpoint_reader.h"
#include "tests/common/base/temp_folder.h"
#include "tests/common/checkpoint/checkpoint_fixture.h"
#include "tests/common/checkpoint/old_format.h"

namespace motley {
namespace {

namespace fs = std::filesystem;

std::string ReadAll(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}
void WriteAll(const fs::path& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }

// A flipped bit, a cut end, a tail of foreign bytes, a run of zeros.
std::string Damaged(std::string bytes, std::mt19937& random) {
  const size_t at = random() % bytes.size();
  switch (random() % 8) {
    case 0:
      bytes.resize(at);
      break;
    case 1:
      bytes += std::string(1 + random() % 64, 'x');
      break;
    case 2:
      std::fill_n(bytes.begin() + static_cast<int64_t>(at), std::min<size_t>(bytes.size() - at, 1 + random() % 512), '\0');
      break;
    default:
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << random() % 8));
  }
  return bytes;
}

// Of every unit: what the newest checkpoint below `root` holds, if it can be read. `older`: the one before was taken.
absl::Status ReadNewest(const std::string& root, const ModelShape& model, bool* older, bool* as_written) {
  auto found = FindNewestCheckpoint(root, {});
  if (!found.ok()) return found.status();
  *older = found->manifest.step != 20;
  if (*older && found->skipped.empty()) return absl::InternalError("an older checkpoint without a word");
  auto reader = CheckpointReader::Open(found->folder);
  if (!reader.ok()) return reader.status();
  const std::vector<UnitSpec> units = ParameterLayout(model);
  for (int unit = 0; unit < static_cast<int>(units.size()); ++unit) {
    for (int t = 0; t < kNumStateTensors; ++t) {
      std::vector<float> values(units[unit].num_elements);
      const absl::Status read = reader->Read(unit, static_cast<StateTensor>(t), 0, units[unit].num_elements, values.data());
      if (!read.ok()) return read;
      for (size_t i = 0; i < values.size(); ++i) {
        *as_written &= values[i] == ExpectedValue(unit, static_cast<StateTensor>(t), static_cast<int64_t>(i));
      }
    }
  }
  *as_written &= reader->manifest().job == "job-1" && reader->manifest().seed == 42 &&
                 reader->manifest().data_digest == "0123abcd" && (reader->manifest().step == 20 || *older);
  return absl::OkStatus();
}

void NothingIsReadAsSomethingElse(int format, int times) {
  const TempFolder root;
  const ModelShape model = TinyModel(true);
  ASSERT_TRUE(WriteTestCheckpoint(root.path(), 10, model, 0.5).ok());
  ASSERT_TRUE(WriteTestCheckpoint(root.path(), 20, model, 0.3).ok());
  const fs::path folder = fs::path(root.path()) / NameOf(20);
  if (format < kSharedCheckpointFormat) ToOldFormat(folder.string(), format);
  const std::vector<std::string> names = {"manifest.json", "rank-0.bin", "rank-1.bin"};
  const char* seed_text = getenv("MOTLEY_SEED");
  const unsigned seed = seed_text == nullptr ? 20261122 : static_cast<unsigned>(atoi(seed_text));
  std::mt19937 random(seed);
  int said = 0, skipped = 0, same = 0;
  for (int i = 0; i < times; ++i) {
    const fs::path victim = folder / names[random() % names.size()];
    const std::string whole = ReadAll(victim), damaged = Damaged(whole, random);
    WriteAll(victim, damaged);
    SCOPED_TRACE(absl::StrCat("damage ", i, " to ", victim.filename().string(), ", seed ", seed));
    bool older = false, as_written = true;
    const absl::Status status = ReadNewest(root.path(), model, &older, &as_written);
    WriteAll(victim, whole);
    ASSERT_NE(status.code(), absl::StatusCode::kInternal) << status;
    if (!status.ok()) {
      ASSERT_TRUE(absl::StrContains(status.message(), "step-00000020")) << status;
      ++said;
      continue;
    }
    ASSERT_TRUE(as_written);
    ++(older ? skipped : same);
    if (!older) ASSERT_EQ(damaged, whole) << "nothing noticed it";
  }
  std::printf("%d damages: %d said, %d left for the checkpoint before, %d without effect\n", times, said, skipped, same);
  EXPECT_GT(said, 0);
  EXPECT_GT(skipped, 0);
}

TEST(CheckpointDamageTest, NothingThatIsDoneToItIsReadAsSomethingElse) { NothingIsReadAsSomethingElse(3, 2600); }
TEST(CheckpointDamageTest, NorIsOneInTheOldOrder) { NothingIsReadAsSomethingElse(2, 1300); }

}  // namespace
}  // namespace motley
