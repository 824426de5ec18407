// Where documents begin and end in the samples of a microbatch: positions count from 0 in each, and attention never leaves one.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "common/data/row.h"

namespace motley::engine {

struct Borders {
  std::vector<DocumentLengths> lengths;  // on the host, by sample; each sums to seq_len
  // On the device, int32. Samples lie one after the other.
  at::Tensor cu_seqlens;  // [documents + 1]: where each begins, and where the last one ends
  at::Tensor positions;   // [samples * seq_len]: in its document
};

// Numbers that a device's kernels are told.
int64_t DocumentsIn(const std::vector<DocumentLengths>& lengths);
inline int64_t DocumentsIn(const Borders& borders) { return DocumentsIn(borders.lengths); }
int64_t LongestDocument(const Borders& borders);
// Whether borders change nothing: each sample is one document, and so is what has no borders (null).
bool AreSamples(const Borders* borders);

// What `borders.lengths` says: DocumentsIn + 1 numbers, and samples * seq_len.
void WriteCuSeqlens(const std::vector<DocumentLengths>& lengths, int32_t* cu_seqlens);
void WritePositions(const std::vector<DocumentLengths>& lengths, int32_t* positions);
// With tensors of their own.
Borders MakeBorders(std::vector<DocumentLengths> lengths, c10::Device device);

}  // namespace motley::engine
