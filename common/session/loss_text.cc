#include "common/session/loss_text.h"

#include <cmath>

#include "absl/strings/str_format.h"

namespace motley {
namespace {

std::string NotFiniteText(double value) { return std::isnan(value) ? "NaN" : value > 0 ? "inf" : "-inf"; }

}  // namespace

std::string LossText(double loss, int digits) {
  return std::isfinite(loss) ? absl::StrFormat("%.*f", digits, loss) : NotFiniteText(loss);
}

std::string NormText(double norm) { return std::isfinite(norm) ? absl::StrFormat("%.3g", norm) : NotFiniteText(norm); }

}  // namespace motley
