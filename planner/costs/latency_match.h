// The measured curve nearest to what is asked, brought to the wanted model, card, sequence and dtype by the ratio of rooflines.
// docs/inside/profiles.md has the measured distance of each such step.
#pragma once

#include <string>
#include <vector>

#include "planner/cluster/cluster.h"
#include "planner/costs/costs.h"
#include "planner/costs/latency_book.h"
#include "planner/costs/workload.h"
#include "planner/util/curve.h"

namespace motley::planner {

struct LayerCurves {
  Curve forward, backward;
  Provenance provenance;
  LatencyExtras extras;  // those that hold: measured, not brought over
};

// Of one layer of `workload` on `card`. Without a book, or with nothing in it that can be compared: the roofline itself.
LayerCurves MatchLayer(const CardKind& card, const Workload& workload, const LatencyBook* book);

// `entry` brought to `workload` on `card`; as it is when it is of that. FAILED_PRECONDITION: its model or card is not known, so
// there is nothing to compare. Extras are those of `entry` as it is, or none.
absl::StatusOr<LayerCurves> Transfer(const LatencyEntry& entry, const CardKind& card, const Workload& workload);

// Of an entry that can decide nothing, whatever else is measured, the name that is likely misspelled: an unknown model that is
// nearly the workload's, a card that is neither one of `kinds` nor in the device table. Empty: none. Published files have entries
// of many models that are nobody's here.
std::string LikelyMistake(const LatencyEntry& entry, const std::vector<CardKind>& kinds, const Workload& workload);

}  // namespace motley::planner
