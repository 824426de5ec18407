#include "coordinator/periodic/runner.h"

#include <algorithm>

#include "coordinator/epoch/carrying.h"
#include "coordinator/epoch/copies.h"
#include "coordinator/epoch/disk_looks.h"
#include "coordinator/epoch/epoch_driver.h"
#include "coordinator/epoch/inputs.h"
#include "coordinator/epoch/looks.h"
#include "coordinator/epoch/memory_probe.h"
#include "coordinator/epoch/prober.h"
#include "coordinator/members/clones.h"
#include "coordinator/members/examiner.h"
#include "coordinator/members/joining.h"
#include "coordinator/members/path_looks.h"
#include "coordinator/members/term.h"
#include "coordinator/periodic/backup.h"
#include "coordinator/periodic/lease_checker.h"
#include "coordinator/periodic/metrics_updater.h"
#include "coordinator/periodic/retention.h"
#include "coordinator/periodic/ring_pruner.h"

namespace motley::coordinator {

std::vector<PeriodicJob> PeriodicJobs() {
  return {
      {"lease checker", absl::Milliseconds(250), CheckLeases},
      {"clones", absl::Seconds(1), SayClones},
      {"inputs", absl::Milliseconds(250), KeepInputs},  // who lacks data gets no cluster
      {"epoch driver", absl::Milliseconds(50), Drive},
      {"looks", absl::Milliseconds(250), LookAgain},
      {"copies", absl::Milliseconds(250), KeepCopies},
      {"carries", absl::Milliseconds(250), AdvanceCarries},
      {"disks", absl::Milliseconds(250), KeepDisks},
      {"path looks", absl::Milliseconds(250), KeepPathLooks},
      {"examiner", absl::Milliseconds(250), AdvanceExamination},
      {"memory probe", absl::Milliseconds(250), AdvanceMemoryProbe},
      {"prober", absl::Milliseconds(250), ProbeNewcomers},
      {"metrics updater", absl::Seconds(1), UpdateMetrics},
      {"ring pruner", absl::Seconds(60), PruneRings},
      {"retention", absl::Seconds(60), Retain},
      {"backup", absl::Seconds(1), BackUp},
      {"old authority", absl::Seconds(1), EndOldAuthority},
      {"own files", absl::Seconds(5), KeepOwnFiles},
      {"other coordinators", absl::Seconds(10), AskOthers},
  };
}

Runner::Runner(Core& core, std::vector<PeriodicJob> jobs)
    : core_(core), jobs_(std::move(jobs)), due_(jobs_.size(), core.clock.Now()) {}

absl::Duration Runner::RunDue() {
  const absl::Duration now = core_.clock.Now();
  absl::Duration next = absl::Seconds(1);
  for (size_t i = 0; i < jobs_.size(); ++i) {
    if (due_[i] <= now) {
      jobs_[i].run(core_);
      due_[i] = now + jobs_[i].interval;
    }
    next = std::min(next, due_[i] - now);
  }
  return next;
}

}  // namespace motley::coordinator
