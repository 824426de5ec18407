// Whether the nodes of a set-up reach each other's data addresses, and without whom the job goes on where they do not. Pure;
// asked by epoch/setup_reach, decided on with the storage check (decide.h).
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "coordinator/state/ways.h"

namespace motley::coordinator {

struct ClusterState;
struct JobRun;
struct NodeRecord;

struct SetupReach {
  std::string id;  // check_id of its messages; empty: nobody was asked
  std::set<NodeName> unanswered;
  std::map<Way, std::string> broken;  // with what the first of the way said of it
};

// Whom to leave out of the nodes of these ways, all of which are there; at least one. A way that is listed twice weighs twice.
// The order is OutOfReach's.
NodeName RatherLeftOut(const ClusterState& state, const JobRun& run, const std::vector<Way>& ways);

// "a does not reach b at 10.0.0.2:4711 (no answer for 3 s; is a firewall in between?); " and what helps.
std::string BrokenWay(const ClusterState& state, const Way& way, const std::string& error);

// The nodes without which all others reach each other, with why: first whoever has most broken ways, and of two whoever is not
// reached rather than whoever does not reach. Where both do neither, it is who has not trained yet, who is not on the
// coordinator's machine, who has fewer devices.
std::map<NodeName, std::string> OutOfReach(const ClusterState& state, const JobRun& run);

// The job goes on without this node because others do not reach it, or it does not reach them.
bool IsUnreached(const JobRun& run, const NodeRecord& node);
// "without node b: a does not reach b at ...", of all such nodes; empty: there is none.
std::string WithoutWhom(const ClusterState& state, const JobRun& run);

}  // namespace motley::coordinator
