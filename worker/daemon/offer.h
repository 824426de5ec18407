// What this node offers to the cluster: the devices of its configuration, or its cards where that names none; and which cards it
// does not offer, and why.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/device/device.h"
#include "common/device/rank_builds.h"
#include "worker/daemon/card_claim.h"
#include "worker/daemon/config.h"
#include "worker/daemon/host_memory.h"
#include "worker/daemon/nvidia_cards.h"

namespace motley::worker {

struct OfferedDevice {
  DeviceDescription description;
  std::string rank_binary;                       // the build that its ranks are
  int card_index = -1;                           // NVML's, of kind cuda
  double true_memory = 1, true_host_memory = 1;  // emulated: as of EmulationConfig
};

struct Offer {
  std::vector<OfferedDevice> devices;
  std::vector<UnusedCard> unused;
  std::string no_card;            // why no NVIDIA card is offered, where nobody named devices and there is none to name
  std::vector<CardClaim> claims;  // held for as long as the cards are offered
};

// What can be in the way of a card: it is lost or broken, set up for something else, full of somebody's memory, or no build of
// motley-rank runs on it: FAILED_PRECONDITION (it lasts) or UNAVAILABLE (it may pass), with what helps. Else the build for it.
absl::StatusOr<RankBuild> CheckCard(const NvidiaCard& card, const NvidiaCards& found, const std::vector<std::string>& builds);

// The builds of motley-rank that are there: `rank_binary` is the newest, the others lie beside it with their names.
std::vector<std::string> PresentBuilds(const std::string& rank_binary);

// A card that the configuration names and that cannot be used is an error, whose code says whether it may pass (UNAVAILABLE,
// ALREADY_EXISTS); one that nobody named is left out. Without cards that can be used there is one CPU device.
// Of the host's memory it offers what the configuration says, else a part of it where there are cards; FAILED_PRECONDITION: more
// than there is.
absl::StatusOr<Offer> MakeOffer(const WorkerConfig& config, const NvidiaCards& found, const HostMemory& host = ReadHostMemory());

// The same for the log and for --check: a line for each device and for each card that is not offered.
std::vector<std::string> Describe(const Offer& offer);

}  // namespace motley::worker
