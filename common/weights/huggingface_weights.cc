#include "common/weights/huggingface_weights.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/clean_text.h"
#include "common/base/status_macros.h"
#include "common/weights/stored_type.h"

namespace motley {
namespace {

// Of a file at once. As much again, or four times of float64 from a half type, once it is converted.
constexpr int64_t kMostRawBytes = int64_t{4} << 20;
// Rows of a matrix that is turned: what is written of each of its columns is a few lines of a cache.
constexpr int64_t kStripRows = 32;

struct Range {
  int64_t begin, end;
};

// `rows` by `columns` values of T, row-major, as columns of `stride` values each; but for those of which `out` holds nothing.
// Value [r][c] is element c * stride + r of an array of which `out` has the elements of `held`.
template <typename T>
void Turn(const char* in, int64_t rows, int64_t columns, int64_t first, int64_t stride, const Range& held, char* out) {
  for (int64_t c = 0; c < columns; ++c) {
    const int64_t element = first + c * stride;
    const int64_t from = std::max<int64_t>(0, held.begin - element), to = std::min(rows, held.end - element);
    for (int64_t r = from; r < to; ++r) {
      std::memcpy(out + (element + r - held.begin) * static_cast<int64_t>(sizeof(T)),
                  in + (r * columns + c) * static_cast<int64_t>(sizeof(T)), sizeof(T));
    }
  }
}

std::string PlaceText(int64_t element, const std::vector<int64_t>& shape) {
  std::vector<int64_t> place(shape.size());
  for (size_t d = shape.size(); d-- > 0;) {
    place[d] = element % shape[d];
    element /= shape[d];
  }
  return absl::StrCat("[", absl::StrJoin(place, ", "), "]");
}

}  // namespace

absl::StatusOr<HuggingFaceWeights> HuggingFaceWeights::Open(const std::string& folder, const ModelShape& model, DType dtype,
                                                            const OpenPath& open) {
  MOTLEY_ASSIGN_OR_RETURN(WeightsFolder opened, OpenWeightsFolder(folder, open));
  const std::string config = absl::StrCat(folder, "/", kModelConfigName);
  // A window of which transformers reads nothing is the job's to look at, which knows its seq_len: one token is in every one.
  MOTLEY_ASSIGN_OR_RETURN(const ModelShape shape, ParseHfConfig(opened.config, config, /*seq_len=*/1));
  if (!(shape == model)) {
    return absl::FailedPreconditionError(
        absl::StrCat(config, " is of another model, with ", ModelWords(shape), ", than the job's, with ", ModelWords(model),
                     "; leave out the job's [model], and submit it where that file can be read"));
  }
  MOTLEY_ASSIGN_OR_RETURN(WeightTable table, MatchWeights(opened, model));
  return HuggingFaceWeights(std::move(opened), std::move(table), dtype);
}

absl::Status HuggingFaceWeights::Read(int unit, int64_t begin, int64_t end, void* out) {
  const UnitSpec& spec = table_.layout.at(static_cast<size_t>(unit));
  const int64_t size = SizeOfBytes(dtype_);
  for (size_t t = 0; t < spec.tensors.size(); ++t) {
    const TensorSpec& tensor = spec.tensors[t];
    const int64_t offset = tensor.offset_elements;
    const int64_t from = std::max(begin, offset) - offset, to = std::min(end, offset + tensor.num_elements) - offset;
    if (from >= to) continue;
    const StoredAt& at = table_.tensors[static_cast<size_t>(unit)][t];
    char* const first = static_cast<char*>(out) + (offset + from - begin) * size;
    MOTLEY_RETURN_IF_ERROR(tensor.transposed ? ReadTurned(tensor, at, from, to, first) : ReadStraight(at, from, to, first));
    const bool tied = table_.tied_head && spec.kind == UnitKind::kEmbedding && t == 0;
    if (tied) MOTLEY_RETURN_IF_ERROR(CompareTied(from, to, first));
  }
  return absl::OkStatus();
}

absl::Status HuggingFaceWeights::ReadRaw(const StoredAt& at, int64_t first, int64_t count, char* out) {
  const SafetensorsFile& file = folder_.files[at.file];
  const int64_t size = SizeOfBytes(at.dtype);
  return ReadAt(file.file, file.path, at.tensor.begin + first * size, out, count * size);
}

absl::Status HuggingFaceWeights::ReadStraight(const StoredAt& at, int64_t begin, int64_t end, char* out) {
  const int64_t most = kMostRawBytes / SizeOfBytes(at.dtype);
  while (begin < end) {
    const int64_t count = std::min(end - begin, most);
    raw_.resize(static_cast<size_t>(count * SizeOfBytes(at.dtype)));
    MOTLEY_RETURN_IF_ERROR(ReadRaw(at, begin, count, raw_.data()));
    const int64_t bad = ConvertElements(at.dtype, raw_.data(), count, dtype_, out);
    if (bad >= 0) return NotFinite(at, begin + bad);
    begin += count;
    out += count * SizeOfBytes(dtype_);
  }
  return absl::OkStatus();
}

// The file has the matrix as [columns, rows] of ours. Of each of its rows those columns are read that hold elements of the range.
absl::Status HuggingFaceWeights::ReadTurned(const TensorSpec& spec, const StoredAt& at, int64_t begin, int64_t end, char* out) {
  const int64_t file_columns = spec.shape[0], file_rows = spec.shape[1], size = SizeOfBytes(at.dtype);
  const int64_t first = begin / file_rows, count = (end - 1) / file_rows + 1 - first;  // columns
  const bool whole = 2 * count >= file_columns;  // one read for many rows is worth more than what it reads for nothing
  const int64_t read_columns = whole ? file_columns : count;
  const int64_t most_rows = std::clamp<int64_t>(kMostRawBytes / (read_columns * size), 1, kStripRows);
  for (int64_t row = 0; row < file_rows; row += most_rows) {
    const int64_t rows = std::min(most_rows, file_rows - row);
    raw_.resize(static_cast<size_t>(rows * read_columns * size));
    converted_.resize(static_cast<size_t>(rows * count * SizeOfBytes(dtype_)));
    if (whole) MOTLEY_RETURN_IF_ERROR(ReadRaw(at, row * file_columns, rows * file_columns, raw_.data()));
    for (int64_t r = 0; r < rows; ++r) {
      char* const in = raw_.data() + r * read_columns * size;
      const int64_t element = (row + r) * file_columns + first;
      if (!whole) MOTLEY_RETURN_IF_ERROR(ReadRaw(at, element, count, in));
      const int64_t bad = ConvertElements(at.dtype, in + (whole ? first * size : 0), count, dtype_,
                                          converted_.data() + r * count * SizeOfBytes(dtype_));
      if (bad >= 0) return NotFinite(at, element + bad);
    }
    const int64_t element = first * file_rows + row;
    const auto turn = dtype_ == DType::kFloat64 ? Turn<double> : Turn<float>;
    turn(converted_.data(), rows, count, element, file_rows, {begin, end}, out);
  }
  return absl::OkStatus();
}

absl::Status HuggingFaceWeights::CompareTied(int64_t begin, int64_t end, const char* embedding) {
  const StoredAt& head = *table_.tied_head;
  const int64_t most = kMostRawBytes / SizeOfBytes(dtype_);
  while (begin < end) {
    const int64_t count = std::min(end - begin, most), bytes = count * SizeOfBytes(dtype_);
    head_.resize(static_cast<size_t>(bytes));
    MOTLEY_RETURN_IF_ERROR(ReadStraight(head, begin, begin + count, head_.data()));
    if (std::memcmp(head_.data(), embedding, static_cast<size_t>(bytes)) != 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(folder_.path, " holds ", Quoted(head.tensor.name), " that differs from ",
                       Quoted(table_.tensors[0][0].tensor.name), ", and its ", kModelConfigName,
                       " says that they are one (tie_word_embeddings); say false there where the head is the "
                       "model's own, else remove it from the file"));
    }
    begin += count;
    embedding += bytes;
  }
  return absl::OkStatus();
}

absl::Status HuggingFaceWeights::NotFinite(const StoredAt& at, int64_t element) const {
  return absl::InvalidArgumentError(absl::StrCat(
      folder_.files[at.file].path, ": tensor ", Quoted(at.tensor.name), " is NaN or infinite in ", std::string(DTypeName(dtype_)),
      " at ", PlaceText(element, at.tensor.shape), "; nothing can be trained from it: take the model from another place"));
}

}  // namespace motley
