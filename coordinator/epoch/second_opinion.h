// Asks a second node to read a checkpoint in which a rank found damage, and acts on the verdict (state/second_reader).
#pragma once

#include <string>

#include "coordinator/core/core.h"
#include "coordinator/state/run.h"
#include "coordinator/state/second_reader.h"

namespace motley::coordinator {

// From now on set-up waits for the verdict.
void Suspect(Core& core, const Failure& failure);
// A rank cannot read what it resumes from, of a job whose checkpoints lie on its nodes' disks: a bad sector is as good as damage,
// and the next start looks for it.
void SuspectUnread(Core& core);
void AskReader(Core& core, const NodeName& node, const std::string& reason);
// True: the report is the answer to such a question, and was filed.
bool OnSecondReading(Core& core, const NodeName& node, const StorageReport& report);
void Judge(Core& core, Verdict verdict, const std::string& reason);

}  // namespace motley::coordinator
