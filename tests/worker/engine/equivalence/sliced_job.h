// Jobs of tensor-parallel groups with programs written here, instruction by instruction: what the engine runs, whoever lowers it.
#pragma once

#include <string>
#include <vector>

#include "common/model/model.h"
#include "common/session/assignment.h"

namespace motley::engine {

// Neighbouring units of the model on groups of ranks. Every replica has one rank for each share; replicas divide the batch.
struct SlicedStage {
  int32_t first_unit = 0, last_unit = 0;
  std::vector<double> shares = {1.0};
  int replicas = 1;
};

struct SlicedJob {
  ModelShape model;
  JobConfig config;  // of whose validation samples each replica has as many
  // Several have one replica each, and the first and last ranks of a border hand over. The last has the head; a tied head is in
  // the embedding's stage.
  std::vector<SlicedStage> stages;
  std::string recomputed;  // of layers: a program's `ops`; "full": all; empty: nothing. With it the head keeps its boundary
  bool split = false;      // backwards in two halves
  bool homes = true;       // arrays stay in buffers
  bool overtakes = false;  // a leader computes with what it received before it has handed it on
  int microbatches = 2;    // of a replica
};

// By rank. Each instruction follows all before it, but see `overtakes`.
std::vector<RankAssignment> AssignmentsOf(const SlicedJob& job);

}  // namespace motley::engine
