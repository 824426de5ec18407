// A loss and a norm as people read them. Either may be no finite number: of a step that float16 skipped, of a validation pass
// over weights that have diverged.
#pragma once

#include <optional>
#include <string>

namespace motley {

// "2.8943"; "NaN", "inf", "-inf".
std::string LossText(double loss, int digits = 4);
// "0.123", "1.5e+30"; "NaN", "inf".
std::string NormText(double norm);
// "2.8943 (perplexity 18.07; 1.32 bits a byte)". Of a loss that is not finite only that.
std::string ValidationText(double loss, std::optional<double> bits_per_byte);

}  // namespace motley
