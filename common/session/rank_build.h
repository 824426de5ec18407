// Which ranks may train together: what they say to each other, the program that they execute and the order of their arrays must
// be the same. Their libtorch may differ: each version has kernels for some cards only.
#pragma once

#include <string>

#include "common/session/data_authentication.h"

namespace motley {

// Goes up when ranks of two builds must not train together: another introduction, other messages, other numbers. Of a fixed
// length, and in one place of the program's file.
extern const char kRankBuild[];

// "ranks-0007/3/2": kRankBuild, the version of programs, the order of arrays. No blanks.
std::string RankBuild();

// As the coordinator is told of a node: "ranks-0007/3/2/codes", or without the last word where its ranks would authenticate
// nothing beyond their machine. So nodes that differ in that wait for each other like builds, and of as many the ones with codes
// train.
std::string RankBuildOfNode(DataAuthentication authentication, const std::string& data_address);

}  // namespace motley
