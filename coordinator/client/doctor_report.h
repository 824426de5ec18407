// What an examination of the cluster found, for people and as JSON.
#pragma once

#include <ostream>
#include <string>

#include "coordinator/client/json.h"
#include "coordinator/client/screen.h"
#include "proto/motley/v1/motley.pb.h"

namespace motley::client {

// The worst state among the findings; what was left out counts as ok.
v1::Finding::State Worst(const v1::ClusterCheck& check);
// "all is well", "nothing is wrong, 1 warning", "2 things are wrong, 1 warning".
std::string Verdict(const v1::ClusterCheck& check);

// A row for each finding, the links of a small cluster, the verdict. Texts are folded at the screen's width, and never cut.
void PrintCheck(std::ostream& out, const Screen& screen, const v1::ClusterCheck& check);
Json CheckJson(const v1::ClusterCheck& check);

}  // namespace motley::client
