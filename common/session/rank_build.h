// Which ranks may train together: what they say to each other, the program that they execute and the order of their arrays must
// be the same. Their libtorch may differ: each version has kernels for some cards only.
#pragma once

#include <string>

namespace motley {

// Goes up when ranks of two builds must not train together: another introduction, other messages, other numbers. Of a fixed
// length, and in one place of the program's file.
extern const char kRankBuild[];

// "ranks-0003/3/2": kRankBuild, the version of programs, the order of arrays. No blanks.
std::string RankBuild();

}  // namespace motley
