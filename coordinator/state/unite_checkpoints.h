// Checkpoints whose files lie on several nodes' disks, put together from what each node says that it has. Pure.
// docs/inside/local-storage.md
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/base/ids.h"
#include "common/checkpoint/held_checkpoints.h"

namespace motley::coordinator {

struct UnitedCheckpoint {
  HeldCheckpoint head;                      // as those say who have its manifest; HeldFile::here means nothing
  std::set<NodeName> manifests;             // who has that
  std::vector<std::set<NodeName>> holders;  // by file of the head
  // Every file lies on a node that is here.
  bool whole() const;
};

// Generation and step: the order of checkpoints.
using CheckpointPlace = std::pair<int64_t, int64_t>;
CheckpointPlace PlaceOf(const HeldCheckpoint& head);
// By its name; null: it is none's.
std::optional<CheckpointPlace> PlaceOf(const std::string& name);

// The newest first: by generation, then by step. Only those that `is_marked`. Who says another thing of the same checkpoint, of
// its files for example, makes one of its own, which no other node's files make whole. A file that a node has not published
// counts by its name and size where another node's marked manifest names it.
std::vector<UnitedCheckpoint> UniteCheckpoints(const std::map<NodeName, HeldCheckpoints>& held,
                                               const std::function<bool(const HeldCheckpoint&)>& is_marked);

// "rank-1.bin of node b and 2 more": what nobody who is here has; empty for a whole one.
std::string WhatLacks(const UnitedCheckpoint& checkpoint);

}  // namespace motley::coordinator
