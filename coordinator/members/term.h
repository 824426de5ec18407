// Which coordinator is the cluster's, when another machine has taken it over (common/tls/term.h; docs/inside/moving.md): this one
// ends where a higher term is shown to it, with the certificate that proves it. All on the loop.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "coordinator/core/core.h"
#include "coordinator/members/shown_certificates.h"

namespace motley::coordinator {

// The store's own highest term; the first one where there is none. At start, after the authority.
absl::Status LoadTerm(Core& core);

// At start, before an address is taken: whoever answers where members look for a coordinator has not to have a higher term, nor
// this one. Takes at most two seconds, when a machine does not answer. ABORTED: one has, or the store knows of a higher one.
absl::Status CheckAlone(Core& core);

// What a worker's hello says of terms. UNAVAILABLE: it follows a higher one, so this coordinator ends (Core::ended), or another
// one of the same number, so it is not this one's.
absl::Status MeetTerm(Core& core, const NodeDescription& node);
// Where a member looks for its coordinator, for CheckAlone and AskOthers.
void NoteCoordinators(Core& core, const NodeDescription& node);

// Asks the others anew, aside. For a periodic job.
void AskOthers(Core& core);
// What they showed. Who shows what no authority of the cluster signed does not count.
void MeetOthers(Core& core, const std::vector<ShownCertificate>& shown);

}  // namespace motley::coordinator
