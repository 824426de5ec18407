#include "common/data/data_format.h"

#include <array>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/data/text_shape.h"

namespace motley {
namespace {

constexpr char kTokens[] = "token numbers in a file of their own (Megatron-LM, nanoGPT)";
constexpr char kTokensRemedy[] = "give the .bin itself as data.path, or the text alone";
constexpr char kArrayRemedy[] = "write it as bare uint16 (numpy.load(FILE).astype('uint16').tofile('X.bin')) and give that .bin";
constexpr char kJsonLines[] = "JSON Lines";
constexpr char kJsonLinesRemedy[] = "take the text out of it first: jq -r .text FILE > FILE.txt";
constexpr char kTable[] = "a table (CSV, TSV)";
constexpr char kParquet[] = "a Parquet table";
constexpr char kTableRemedy[] = "write its column of text to a file first (pandas, pyarrow)";
constexpr char kImage[] = "an image";
constexpr char kMediaRemedy[] = "leave it out: Motley trains on text";
constexpr char kPacked[] = "compressed";
constexpr char kPackedRemedy[] = "unpack it first";
constexpr char kArchive[] = "an archive";
constexpr char kUtf16[] = "UTF-16 text";
constexpr char kUtf16Remedy[] = "convert it first: iconv -f UTF-16 -t UTF-8 FILE > FILE.txt";
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
    Format{"", ".csv", kTable, kTableRemedy},
    Format{"", ".tsv", kTable, kTableRemedy},
    Format{"PAR1", "", kParquet, kTableRemedy},
    Format{"", ".parquet", kParquet, kTableRemedy},
    Format{"ARROW1", "", "an Arrow table", kTableRemedy},
    Format{"\x93NUMPY", "", "a NumPy array", kArrayRemedy},
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
    Format{"7z\xbc\xaf\x27\x1c", "", kArchive, kPackedRemedy},
    Format{"Rar!\x1a\x07", "", kArchive, kPackedRemedy},
    Format{"!<arch>\n", "", kArchive, kPackedRemedy},
    Format{"", ".tar", kArchive, kPackedRemedy},
    Format{std::string_view("SQLite format 3\0", 16), "", "a SQLite database",
           "write its column of text to a file first (sqlite3 FILE 'select text from NAME' > FILE.txt)"},
    Format{"\x89HDF\r\n", "", "an HDF5 file", kTableRemedy},
    Format{"\xff\xfe", "", kUtf16, kUtf16Remedy},
    Format{"\xfe\xff", "", kUtf16, kUtf16Remedy},
    Format{"version https://git-lfs.github.com/spec/", "", "a pointer of Git LFS, without the file's contents",
           "fetch them first: git lfs pull"},
    Format{"PK\x03\x04", "", "a zip archive or a PyTorch file", "unpack it, or leave it out"},
    Format{"", ".safetensors", kWeights, kWeightsRemedy},
    Format{"GGUF", ".gguf", kWeights, kWeightsRemedy},
};

// Behind the name, sizes and dates of a tar's first file.
constexpr size_t kTarMarkOffset = 257;
constexpr std::string_view kTarMark = "ustar";

// Letters of UTF-16 in most scripts have a NUL beside them: the second byte of each pair, or the first.
constexpr size_t kUtf16Sample = 4096;
const char* Utf16Kind(std::string_view head) {
  const std::string_view sample = head.substr(0, kUtf16Sample);
  size_t nuls[2] = {0, 0};
  for (size_t i = 0; i < sample.size(); ++i) nuls[i % 2] += sample[i] == '\0' ? 1 : 0;
  const size_t many = sample.size() / 8;
  if (nuls[1] > many && nuls[0] * 16 < nuls[1]) return "UTF-16LE";
  if (nuls[0] > many && nuls[1] * 16 < nuls[0]) return "UTF-16BE";
  return nullptr;
}

absl::Status IsNoText(const std::string& file, std::string_view what, std::string_view remedy) {
  return absl::InvalidArgumentError(
      absl::StrCat("data file ", file, " is ", std::string(what), ", not plain text; ", std::string(remedy)));
}

absl::Status CheckShape(const std::string& file, std::string_view head) {
  switch (ShapeOf(head)) {
    case TextShape::kJsonLines:
      return IsNoText(file, kJsonLines, kJsonLinesRemedy);
    case TextShape::kJsonRecords:
      return IsNoText(file, "a JSON list of records", "take the text out of it first: jq -r '.[].text' FILE > FILE.txt");
    case TextShape::kTable:
      return IsNoText(file, kTable, kTableRemedy);
    case TextShape::kPlain:
      break;
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckIsText(const std::string& file, std::string_view head) {
  const std::string name = absl::AsciiStrToLower(file);
  for (const Format& format : kFormats) {
    if (head.starts_with(format.begin) && name.ends_with(format.ending)) return IsNoText(file, format.what, format.remedy);
  }
  if (head.size() > kTarMarkOffset && head.substr(kTarMarkOffset).starts_with(kTarMark)) {
    return IsNoText(file, kArchive, kPackedRemedy);
  }
  if (const char* kind = Utf16Kind(head); kind != nullptr) {
    return IsNoText(file, absl::StrCat(kUtf16, " without a mark"),
                    absl::StrCat("convert it first: iconv -f ", kind, " -t UTF-8 FILE > FILE.txt"));
  }
  return CheckShape(file, head);
}

absl::Status CheckIsBareTokens(const std::string& file, std::string_view head) {
  constexpr size_t kFewestBytes = 4;  // fewer are tokens that a text may well begin with
  for (const Format& format : kFormats) {
    if (format.begin.size() < kFewestBytes || !format.ending.empty() || !head.starts_with(format.begin)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("data file ", file, " is ", std::string(format.what), ", not token numbers; ", std::string(format.remedy)));
  }
  return absl::OkStatus();
}

}  // namespace motley
