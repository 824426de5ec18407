#include "worker/engine/operators/borders.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "worker/engine/base/torch_pch.h"

namespace motley::engine {

int64_t DocumentsIn(const std::vector<DocumentLengths>& lengths) {
  int64_t documents = 0;
  for (const DocumentLengths& of_sample : lengths) documents += static_cast<int64_t>(of_sample.size());
  return documents;
}

int64_t LongestDocument(const Borders& borders) {
  int32_t longest = 0;
  for (const DocumentLengths& of_sample : borders.lengths) {
    for (const int32_t length : of_sample) longest = std::max(longest, length);
  }
  return longest;
}

bool AreSamples(const Borders* borders) {
  return borders == nullptr || std::all_of(borders->lengths.begin(), borders->lengths.end(),
                                           [](const DocumentLengths& of_sample) { return of_sample.size() == 1; });
}

void WriteCuSeqlens(const std::vector<DocumentLengths>& lengths, int32_t* cu_seqlens) {
  int32_t end = 0;
  *cu_seqlens++ = 0;
  for (const DocumentLengths& of_sample : lengths) {
    for (const int32_t length : of_sample) *cu_seqlens++ = end += length;
  }
}

void WritePositions(const std::vector<DocumentLengths>& lengths, int32_t* positions) {
  for (const DocumentLengths& of_sample : lengths) {
    for (const int32_t length : of_sample) {
      std::iota(positions, positions + length, 0);
      positions += length;
    }
  }
}

Borders MakeBorders(std::vector<DocumentLengths> lengths, c10::Device device) {
  Borders borders{std::move(lengths), at::Tensor(), at::Tensor()};
  int64_t tokens = 0;
  for (const DocumentLengths& of_sample : borders.lengths) tokens += std::accumulate(of_sample.begin(), of_sample.end(), 0);
  const at::Tensor cu_seqlens = at::empty({DocumentsIn(borders) + 1}, at::kInt), positions = at::empty({tokens}, at::kInt);
  WriteCuSeqlens(borders.lengths, cu_seqlens.mutable_data_ptr<int32_t>());
  WritePositions(borders.lengths, positions.mutable_data_ptr<int32_t>());
  borders.cu_seqlens = cu_seqlens.to(device);
  borders.positions = positions.to(device);
  return borders;
}

}  // namespace motley::engine
