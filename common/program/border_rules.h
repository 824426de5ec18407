// What is handed over at the borders between this rank's units and other ranks': rules 12, 14 to 17 and 26 of
// docs/inside/program.md. Part of Validate (program.h).
#pragma once

#include <cstdint>

#include "common/program/handed_samples.h"
#include "common/program/microbatch_rules.h"
#include "common/program/program_check.h"

namespace motley {

class BorderRules {
 public:
  BorderRules(const ProgramCheck& check, const MicrobatchRules& microbatches) : check_(check), microbatches_(microbatches) {}

  absl::Status Check(const SendActivation& s);
  absl::Status Check(const SendGradient& s);
  absl::Status Check(const ReceiveActivation& r) { return CheckHandOver(r, Ours::kUnit, received_activations_); }
  absl::Status Check(const ReceiveGradient& r) { return CheckHandOver(r, Ours::kBefore, received_gradients_); }
  absl::Status Check(const BroadcastActivation& b);

  // That the whole input of a unit, or gradient of the unit's output, is there when the present instruction starts.
  absl::Status InputReceived(int32_t unit, int32_t microbatch) const {
    return AllReceived("input", received_activations_, unit, microbatch);
  }
  absl::Status GradientReceived(int32_t unit, int32_t microbatch) const {
    return AllReceived("gradient of the output", received_gradients_, unit + 1, microbatch);
  }
  // Whether anything of what the unit made was sent.
  bool OutputSent(int32_t unit, int32_t microbatch) const { return sent_activations_.At(unit + 1, microbatch).last >= 0; }
  bool GradientSent(int32_t unit, int32_t microbatch) const { return sent_gradients_.At(unit, microbatch).last >= 0; }
  // At the end: that all of it was sent.
  absl::Status OutputAllSent(int32_t unit, int32_t microbatch) const {
    return AllSent("output", unit, sent_activations_, unit + 1, microbatch);
  }
  absl::Status GradientAllSent(int32_t unit, int32_t microbatch) const {
    return AllSent("input's gradient", unit, sent_gradients_, unit, microbatch);
  }

 private:
  // Of the two units at a border, the one on this rank's side.
  enum class Ours { kBefore, kUnit };
  absl::Status CheckBorder(int32_t unit, Ours ours, int32_t microbatch) const;
  // What all hand-overs have in common.
  template <typename Op>
  absl::Status CheckHandOver(const Op& op, Ours ours, HandedSamples& handed) const {
    MOTLEY_RETURN_IF_ERROR(CheckBorder(op.unit, ours, op.microbatch));
    if (op.peer < 0 || op.peer >= check_.program.world || op.peer == check_.program.rank) {
      return check_.Error(absl::StrCat("peer ", op.peer, " is no other rank of ", check_.program.world));
    }
    return Hand(op.unit, op.microbatch, {op.first, int64_t{op.first} + op.samples}, handed);
  }
  absl::Status Hand(int32_t unit, int32_t microbatch, HandedSamples::Range samples, HandedSamples& handed) const;
  absl::Status CheckSend(const UnitPass& made, const char* what, int32_t unit, int32_t microbatch) const;
  absl::Status AllReceived(const char* what, const HandedSamples& handed, int32_t unit, int32_t microbatch) const;
  absl::Status AllSent(const char* what, int32_t of, const HandedSamples& handed, int32_t unit, int32_t microbatch) const;

  const ProgramCheck& check_;
  const MicrobatchRules& microbatches_;
  HandedSamples sent_activations_, received_activations_, sent_gradients_, received_gradients_;
};

}  // namespace motley
