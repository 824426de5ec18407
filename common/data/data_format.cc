#include "common/data/data_format.h"

#include <array>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace motley {
namespace {

constexpr char kTokens[] = "token numbers of another trainer's tokenizer (Megatron-LM, nanoGPT)";
constexpr char kTokensRemedy[] = "give the text that they were made of: Motley's tokens are the text's bytes";
constexpr char kJsonLines[] = "JSON Lines";
constexpr char kJsonLinesRemedy[] = "take the text out of it first: jq -r .text FILE > FILE.txt";
constexpr char kParquet[] = "a Parquet table";
constexpr char kTableRemedy[] = "write its column of text to a file first (pandas, pyarrow)";
constexpr char kImage[] = "an image";
constexpr char kMediaRemedy[] = "leave it out: Motley trains on text";
constexpr char kPacked[] = "compressed";
constexpr char kPackedRemedy[] = "unpack it first";
constexpr char kWeights[] = "a file of weights";
constexpr char kWeightsRemedy[] = "leave it out: data.path names the text to train on";

struct Format {
  std::string_view begin;   // the file's first bytes; empty: told by its name alone
  std::string_view ending;  // of the file's name, lower-case; empty: told by its bytes alone
  std::string_view what, remedy;
};

// Where both are given, both must fit.
constexpr std::array kFormats = {
    Format{std::string_view("MMIDIDX\0\0", 9), "", kTokens, kTokensRemedy},
    Format{"", ".idx", kTokens, kTokensRemedy},
    Format{"", ".bin", kTokens, kTokensRemedy},
    Format{"", ".jsonl", kJsonLines, kJsonLinesRemedy},
    Format{"", ".ndjson", kJsonLines, kJsonLinesRemedy},
    Format{"PAR1", "", kParquet, kTableRemedy},
    Format{"", ".parquet", kParquet, kTableRemedy},
    Format{"ARROW1", "", "an Arrow table", kTableRemedy},
    Format{"\x93NUMPY", "", "a NumPy array", kTokensRemedy},
    Format{"\x89PNG", "", kImage, kMediaRemedy},
    Format{"\xff\xd8\xff", "", kImage, kMediaRemedy},
    Format{"GIF8", "", kImage, kMediaRemedy},
    Format{"BM", ".bmp", kImage, kMediaRemedy},
    Format{"RIFF", ".webp", kImage, kMediaRemedy},
    Format{std::string_view("II*\0", 4), "", kImage, kMediaRemedy},
    Format{std::string_view("MM\0*", 4), "", kImage, kMediaRemedy},
    Format{"%PDF-", "", "a PDF document", "take the text out of it first: pdftotext FILE FILE.txt"},
    Format{"\x1f\x8b", "", kPacked, kPackedRemedy},
    Format{"BZh", ".bz2", kPacked, kPackedRemedy},
    Format{"\xfd"
           "7zXZ",
           "", kPacked, kPackedRemedy},
    Format{"\x28\xb5\x2f\xfd", "", kPacked, kPackedRemedy},
    Format{"PK\x03\x04", "", "a zip archive or a PyTorch file", "unpack it, or leave it out"},
    Format{"", ".safetensors", kWeights, kWeightsRemedy},
    Format{"GGUF", ".gguf", kWeights, kWeightsRemedy},
};

}  // namespace

absl::Status CheckIsText(const std::string& file, std::string_view head) {
  const std::string name = absl::AsciiStrToLower(file);
  for (const Format& format : kFormats) {
    if (!head.starts_with(format.begin) || !name.ends_with(format.ending)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("data file ", file, " is ", std::string(format.what), ", not plain text; ", std::string(format.remedy)));
  }
  return absl::OkStatus();
}

}  // namespace motley
