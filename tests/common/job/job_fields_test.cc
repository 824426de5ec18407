#include "common/job/job_fields.h"

#include <gtest/gtest.h>

#include "tests/common/base/folders.h"
#include "tests/common/base/temp_folder.h"

namespace motley {
namespace {

// The row of the table in docs/use/job-file.md that describes `path`.
std::string RowOf(const std::string& text, const std::string& path) {
  const size_t begin = text.find("| `" + path + "` |");
  return begin == std::string::npos ? "" : text.substr(begin, text.find('\n', begin) - begin);
}

TEST(JobFieldsTest, TheDocumentationHasEveryKeyWithItsDefaultAndChoices) {
  const std::string text = TempFolder::Read(SourceFolder() + "/docs/use/job-file.md");
  JobConfig config;
  size_t rows = 0;
  for (const JobField& field : JobFields(config)) {
    const std::string row = RowOf(text, field.Path());
    ASSERT_NE(row, "") << field.Path() << " is not in docs/use/job-file.md";
    const bool required = row.find("| required |") != std::string::npos;
    EXPECT_TRUE(required || row.find(field.ValueText()) != std::string::npos)
        << row << " lacks the default " << field.ValueText();
    for (std::string_view choice : field.choices) EXPECT_NE(row.find(choice), std::string::npos) << row << " lacks " << choice;
    ++rows;
  }
  size_t in_text = 0;
  for (size_t at = text.find("\n| `"); at != std::string::npos; at = text.find("\n| `", at + 1)) ++in_text;
  EXPECT_EQ(in_text, rows) << "docs/use/job-file.md has a key that does not exist";
}

TEST(JobFieldsTest, TypesAndTexts) {
  JobConfig config;
  config.data.path = "a\"b\n\xff";
  config.training.max_norm = 2;
  for (const JobField& field : JobFields(config)) {
    if (field.Path() == "data.path") {
      EXPECT_EQ(field.ValueText(), "\"a\\\"b\\n\xEF\xBF\xBD\"");
    }
    if (field.Path() == "training.max_norm") {
      EXPECT_EQ(field.ValueText(), "2.0");
      EXPECT_EQ(field.TypeName(), "a number");
    }
    if (field.Path() == "training.steps") {
      EXPECT_EQ(field.TypeName(), "an integer");
    }
  }
}

}  // namespace
}  // namespace motley
