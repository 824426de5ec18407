#include "common/program/border_rules.h"

namespace motley {

absl::Status BorderRules::CheckBorder(int32_t unit, Ours ours, int32_t microbatch) const {
  MOTLEY_RETURN_IF_ERROR(check_.UnitInRange(unit));
  if (unit == 0) return check_.Error("unit 0 has no unit before it; nothing is handed over");
  const int32_t here = ours == Ours::kUnit ? unit : unit - 1, there = ours == Ours::kUnit ? unit - 1 : unit;
  MOTLEY_RETURN_IF_ERROR(check_.Holds(here));
  if (check_.Held(there)) return check_.Error(absl::StrCat("the rank holds unit ", there, " itself; nothing is handed over"));
  return check_.InRange("microbatch", microbatch, check_.program.microbatches);
}

absl::Status BorderRules::Hand(int32_t unit, int32_t microbatch, HandedSamples::Range samples, HandedSamples& handed) const {
  const Microbatch& whole = check_.program.microbatches[microbatch];
  const auto [first, end] = samples;
  if (end <= first || first < whole.first || end > whole.end()) {
    return check_.Error(absl::StrCat("samples ", first, " to ", end, " are not in microbatch ", microbatch, ", which has ",
                                     whole.first, " to ", whole.end()));
  }
  if (const auto twice = handed.Add(unit, microbatch, samples, check_.at)) {
    return check_.Error(
        absl::StrCat("samples ", twice->first, " to ", twice->second, " of microbatch ", microbatch, " are handed over twice"));
  }
  return absl::OkStatus();
}

absl::Status BorderRules::CheckSend(const UnitPass& made, const char* what, int32_t unit, int32_t microbatch) const {
  if (made.done < 0) {
    return check_.Error(absl::StrCat("microbatch ", microbatch, " must run unit ", unit, " ", what, " before it is sent"));
  }
  MOTLEY_RETURN_IF_ERROR(check_.Ordered(made.done, "it must wait for the ", what, " of unit ", unit));
  return check_.Ordered(made.done_sum, "it must wait for the sum behind unit ", unit);
}

absl::Status BorderRules::Check(const SendActivation& s) {
  MOTLEY_RETURN_IF_ERROR(CheckHandOver(s, Ours::kBefore, sent_activations_));
  return CheckSend(microbatches_.At(s.unit - 1, s.microbatch).forward, "forward", s.unit - 1, s.microbatch);
}

absl::Status BorderRules::Check(const SendGradient& s) {
  MOTLEY_RETURN_IF_ERROR(CheckHandOver(s, Ours::kUnit, sent_gradients_));
  return CheckSend(microbatches_.At(s.unit, s.microbatch).input, "backward", s.unit, s.microbatch);
}

absl::Status BorderRules::Check(const BroadcastActivation& b) {
  if (b.of == Exchanged::kRows) return check_.Error("rows are summed, not broadcast");
  const bool gradient = b.of == Exchanged::kGradient;
  MOTLEY_RETURN_IF_ERROR(CheckBorder(b.unit, gradient ? Ours::kBefore : Ours::kUnit, b.microbatch));
  MOTLEY_RETURN_IF_ERROR(check_.InGroup(b.group));
  MOTLEY_RETURN_IF_ERROR(check_.RootInGroup(b.root, b.group));
  HandedSamples& received = gradient ? received_gradients_ : received_activations_;
  if (b.root == check_.program.rank) {
    return gradient ? GradientReceived(b.unit - 1, b.microbatch) : InputReceived(b.unit, b.microbatch);
  }
  const Microbatch& whole = check_.program.microbatches[b.microbatch];
  return Hand(b.unit, b.microbatch, {whole.first, whole.end()}, received);
}

absl::Status BorderRules::AllReceived(const char* what, const HandedSamples& handed, int32_t unit, int32_t microbatch) const {
  const HandedSamples::Place& got = handed.At(unit, microbatch);
  if (const int64_t missing = check_.program.microbatches[microbatch].samples - got.samples.total(); missing > 0) {
    return check_.Error(absl::StrCat("the ", what, " of ", missing, " samples of microbatch ", microbatch, " was not received"));
  }
  return check_.Ordered(got.last, "it must wait for what it receives for microbatch ", microbatch);
}

absl::Status BorderRules::AllSent(const char* what, int32_t of, const HandedSamples& handed, int32_t unit,
                                  int32_t microbatch) const {
  const int64_t left = check_.program.microbatches[microbatch].samples - handed.At(unit, microbatch).samples.total();
  if (left == 0) return absl::OkStatus();
  return check_.EndError(
      absl::StrCat("unit ", of, "'s ", what, " of ", left, " samples of microbatch ", microbatch, " is never sent"));
}

}  // namespace motley
