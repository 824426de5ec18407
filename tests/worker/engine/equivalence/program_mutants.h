// A rank's program with one mistake, as a lowering or a hand could make it.
#pragma once

#include <string>
#include <vector>

#include "common/program/program.h"

namespace motley::engine {

enum class Mistake {
  kDroppedAfter,   // an instruction does not wait for what it named
  kChangedField,   // one field of an instruction is one more or one less: unit, microbatch, buffer, group, samples, peer
  kSwapped,        // two neighbours of one lane change places
  kDropped,        // an instruction is not there
  kShiftedSample,  // a microbatch of the header begins one sample later or earlier
};

struct Mutant {
  Mistake mistake;
  std::string what;  // "12 backward: grad 1 -> 2"
  Program program;
  bool of_copy = false;  // the instruction copies, or no longer waits for one that does
};

// All programs that are one such mistake away. Those with a field that names nothing (a buffer that is not there) are among them.
std::vector<Mutant> MutantsOf(const Program& program);

// Programs of all ranks in which a collective is not there on any rank of its group, or a hand-over on neither side: mistakes
// that no rank sees by comparing itself with the others.
struct AgreedMutant {
  std::string what;
  std::vector<Program> programs;
};
std::vector<AgreedMutant> AgreedMutantsOf(const std::vector<Program>& programs);

}  // namespace motley::engine
