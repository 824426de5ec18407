#include "coordinator/state/unite_checkpoints.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/checkpoint/checkpoint_folders.h"

namespace motley::coordinator {
namespace {

// What two nodes must say alike to speak of one checkpoint.
HeldCheckpoint HeadOf(HeldCheckpoint held) {
  for (HeldFile& file : held.files) file.here = false;
  return held;
}

bool Has(const std::vector<HeldFile>& files, const HeldFile& wanted) {
  return std::any_of(files.begin(), files.end(),
                     [&](const HeldFile& file) { return file.here && file.name == wanted.name && file.bytes == wanted.bytes; });
}

// Whether the node has the file under the checkpoint's name, or not published.
bool Holds(const HeldCheckpoints& held, const HeldCheckpoint& head, const HeldFile& file) {
  for (const HeldCheckpoint& own : held.checkpoints) {
    if (own.manifest_digest == head.manifest_digest && own.name == head.name && Has(own.files, file)) return true;
  }
  return std::any_of(held.unpublished.begin(), held.unpublished.end(), [&](const UnpublishedFiles& own) {
    return own.epoch == head.epoch && own.step == head.step && Has(own.files, file);
  });
}

}  // namespace

CheckpointPlace PlaceOf(const HeldCheckpoint& head) { return {head.epoch.value(), head.step}; }

std::optional<CheckpointPlace> PlaceOf(const std::string& name) {
  const auto folder = ParseCheckpointFolder("", name);
  return folder ? std::optional(CheckpointPlace(folder->epoch, folder->step)) : std::nullopt;
}

bool UnitedCheckpoint::whole() const {
  return std::none_of(holders.begin(), holders.end(), [](const std::set<NodeName>& nodes) { return nodes.empty(); });
}

std::vector<UnitedCheckpoint> UniteCheckpoints(const std::map<NodeName, HeldCheckpoints>& held,
                                               const std::function<bool(const HeldCheckpoint&)>& is_marked) {
  std::vector<UnitedCheckpoint> united;
  for (const auto& [node, of_node] : held) {
    for (const HeldCheckpoint& checkpoint : of_node.checkpoints) {
      if (!is_marked(checkpoint)) continue;
      HeldCheckpoint head = HeadOf(checkpoint);
      auto known = std::find_if(united.begin(), united.end(), [&](const UnitedCheckpoint& each) { return each.head == head; });
      if (known == united.end()) known = united.insert(united.end(), UnitedCheckpoint{std::move(head), {}, {}});
      known->manifests.insert(node);
    }
  }
  for (UnitedCheckpoint& checkpoint : united) {
    for (const HeldFile& file : checkpoint.head.files) {
      std::set<NodeName>& holders = checkpoint.holders.emplace_back();
      for (const auto& [node, of_node] : held) {
        if (Holds(of_node, checkpoint.head, file)) holders.insert(node);
      }
    }
  }
  std::stable_sort(united.begin(), united.end(), [](const auto& a, const auto& b) { return PlaceOf(a.head) > PlaceOf(b.head); });
  return united;
}

std::string WhatLacks(const UnitedCheckpoint& checkpoint) {
  size_t lacking = 0;
  std::string first;
  for (size_t f = 0; f < checkpoint.holders.size(); ++f) {
    if (!checkpoint.holders[f].empty()) continue;
    const HeldFile& file = checkpoint.head.files[f];
    if (++lacking == 1) first = absl::StrCat(file.name, " of node ", file.node);
  }
  return lacking > 1 ? absl::StrCat(first, " and ", lacking - 1, " more") : first;
}

}  // namespace motley::coordinator
