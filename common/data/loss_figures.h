// What a mean loss (natural logarithm, over tokens that count) says: the figures that models are compared by. Either may be no
// finite number, as the loss may.
#pragma once

#include <optional>

#include "common/data/data_summary.h"

namespace motley {

// e to the loss: among how many equally likely tokens the model chooses. Infinite where that is beyond a double's range.
double Perplexity(double loss);

// Bits for each byte of the text that the tokens were made of, by which models of unlike tokenizers are compared: the loss in
// bits, times the tokens of these data by their source's bytes. Nothing where the data do not say these bytes, and of rows: of
// their tokens not all count, and a chat template wrote some.
std::optional<double> BitsPerByte(double loss, const DataSummary& data);

}  // namespace motley
