#include "coordinator/jobs/watchdog.h"

#include <systemd/sd-daemon.h>

namespace motley::coordinator {

void PetWatchdog(Core&) { sd_notify(0, "WATCHDOG=1"); }

}  // namespace motley::coordinator
