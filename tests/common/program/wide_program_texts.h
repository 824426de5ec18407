// Small valid programs of what the engine does not run yet, as text: ranges, a split backward, tensor parallelism, copies.
#pragma once

namespace motley {

// Instructions of ranges: three layers in one buffer, recomputed by operator, two microbatches at once; the head's array in two
// ranges of elements; gradients that every rank owns; steps by name, the layers' before the scalars.
inline constexpr char kWide[] =
    "program 3 training rank 0 of 2 units 5 microbatches 2@0,2@2\n"
    "holds 0,1,2,3,4\n"
    "groups 0,1\n"
    "parameters 16448,147840x3\n"
    "gradients 16448,147840x3\n"
    "0 gather block=0 buffer=0 group=0\n"
    "1 gather block=1-3 buffer=1 group=0\n"
    "2 forward block=0 mb=0-1 buffer=0 keep=all after=0\n"
    "3 release buffer=0\n"
    "4 forward block=1-3 mb=0-1 buffer=1 keep=boundary ops=attention,activation after=1\n"
    "5 gather block=4 elements=8000@0 buffer=0 group=0 after=3\n"
    "6 gather block=4 elements=8448@8000 buffer=0 group=0\n"
    "7 forward block=4 mb=0-1 buffer=0 keep=all after=6\n"
    "8 backward block=4 mb=0-1 buffer=0 grad=0\n"
    "9 release buffer=0\n"
    "10 recompute block=1-3 mb=0-1 buffer=1 ops=attention,activation\n"
    "11 backward block=1-3 mb=0-1 buffer=1 grad=1\n"
    "12 release buffer=1\n"
    "13 reduce_scatter block=4 elements=8000@0 grad=0 group=0 after=8\n"
    "14 reduce_scatter block=4 elements=8448@8000 grad=0 group=0\n"
    "15 all_reduce block=2-3 grad=1 group=0 after=11\n"
    "16 all_reduce block=1 grad=1 group=0\n"
    "17 gather block=0 buffer=0 group=0 after=9\n"
    "18 backward block=0 mb=0-1 buffer=0 grad=0 after=17\n"
    "19 reduce_scatter block=0 grad=0 group=0 after=18\n"
    "20 optimizer_step block=1-3 after=16\n"
    "21 reduce_scalars\n"
    "22 optimizer_step block=0 after=21\n"
    "23 optimizer_step block=4\n";

// The two parts of the backward apart, the layer and the head in one home.
inline constexpr char kSplitBackward[] =
    "program 3 training rank 0 of 1 units 3 microbatches 2@0,2@2\n"
    "holds 0,1,2\n"
    "groups 0\n"
    "parameters 16448:0,98560:1-2\n"
    "gradients 16448:0,98560:1-2\n"
    "0 gather block=0 buffer=0 group=0\n"
    "1 gather block=1-2 buffer=1 group=0\n"
    "2 forward block=0 mb=0 buffer=0 keep=all after=0\n"
    "3 forward block=1-2 mb=0 buffer=1 keep=all after=1\n"
    "4 backward_input block=1-2 mb=0 buffer=1\n"
    "5 backward_input block=0 mb=0 buffer=0\n"
    "6 forward block=0 mb=1 buffer=0 keep=all\n"
    "7 forward block=1-2 mb=1 buffer=1 keep=all\n"
    "8 backward_input block=1-2 mb=1 buffer=1\n"
    "9 backward_weight block=1-2 mb=0-1 grad=1\n"
    "10 backward_input block=0 mb=1 buffer=0\n"
    "11 backward_weight block=0 mb=0-1 grad=0\n"
    "12 reduce_scatter block=1-2 grad=1 group=0 after=9\n"
    "13 reduce_scatter block=0 grad=0 group=0 after=11\n"
    "14 reduce_scalars\n"
    "15 optimizer_step after=14\n";

// A middle stage of two layers on a tensor-parallel group: the first layer's sums inside its instructions, the second's between
// its segments. This rank leads the group, kFollower is the other one.
inline constexpr char kLeader[] =
    "program 3 training rank 1 of 4 units 4 microbatches 2@0\n"
    "holds 1,2\n"
    "groups 0 1 2 3 1,2\n"
    "parameters 49280:1,49280:2\n"
    "gradients 49280:1,49280:2\n"
    "0 gather block=1 buffer=0 group=1\n"
    "1 gather block=2 buffer=1 group=1\n"
    "2 receive_activation block=1 mb=0 first=0 samples=2 peer=0\n"
    "3 broadcast_activation block=1 mb=0 of=activation group=4 root=1 after=2\n"
    "4 forward block=1 mb=0 buffer=0 keep=all tp=4 after=3\n"
    "5 forward block=2 mb=0 segment=attention buffer=1 keep=all\n"
    "6 all_reduce_activation block=2 mb=0 segment=attention of=activation group=4 after=5\n"
    "7 forward block=2 mb=0 segment=mlp buffer=1 keep=all after=6\n"
    "8 all_reduce_activation block=2 mb=0 segment=mlp of=activation group=4 after=7\n"
    "9 send_activation block=3 mb=0 first=0 samples=2 peer=3 after=8\n"
    "10 receive_gradient block=3 mb=0 first=0 samples=2 peer=3\n"
    "11 broadcast_activation block=3 mb=0 of=gradient group=4 root=1 after=10\n"
    "12 backward block=2 mb=0 segment=mlp buffer=1 grad=1 after=11\n"
    "13 all_reduce_activation block=2 mb=0 segment=mlp of=gradient group=4 after=12\n"
    "14 backward block=2 mb=0 segment=attention buffer=1 grad=1 after=13\n"
    "15 all_reduce_activation block=2 mb=0 segment=attention of=gradient group=4 after=14\n"
    "16 backward block=1 mb=0 buffer=0 grad=0 tp=4 after=15\n"
    "17 send_gradient block=1 mb=0 first=0 samples=2 peer=0 after=16\n"
    "18 reduce_scatter block=2 grad=1 group=1\n"
    "19 reduce_scatter block=1 grad=0 group=1 after=16\n"
    "20 reduce_scalars\n"
    "21 optimizer_step after=20\n";

inline constexpr char kFollower[] =
    "program 3 training rank 2 of 4 units 4 microbatches 2@0\n"
    "holds 1,2\n"
    "groups 0 1 2 3 1,2\n"
    "parameters 49280:1,49280:2\n"
    "gradients 49280:1,49280:2\n"
    "0 gather block=1 buffer=0 group=2\n"
    "1 gather block=2 buffer=1 group=2\n"
    "2 broadcast_activation block=1 mb=0 of=activation group=4 root=1\n"
    "3 forward block=1 mb=0 buffer=0 keep=all tp=4 after=2\n"
    "4 forward block=2 mb=0 segment=attention buffer=1 keep=all\n"
    "5 all_reduce_activation block=2 mb=0 segment=attention of=activation group=4 after=4\n"
    "6 forward block=2 mb=0 segment=mlp buffer=1 keep=all after=5\n"
    "7 all_reduce_activation block=2 mb=0 segment=mlp of=activation group=4 after=6\n"
    "8 broadcast_activation block=3 mb=0 of=gradient group=4 root=1\n"
    "9 backward block=2 mb=0 segment=mlp buffer=1 grad=1 after=8\n"
    "10 all_reduce_activation block=2 mb=0 segment=mlp of=gradient group=4 after=9\n"
    "11 backward block=2 mb=0 segment=attention buffer=1 grad=1 after=10\n"
    "12 all_reduce_activation block=2 mb=0 segment=attention of=gradient group=4 after=11\n"
    "13 backward block=1 mb=0 buffer=0 grad=0 tp=4 after=12\n"
    "14 reduce_scatter block=2 grad=1 group=2\n"
    "15 reduce_scatter block=1 grad=0 group=2 after=13\n"
    "16 reduce_scalars\n"
    "17 optimizer_step after=16\n";

// The ranks before and behind the group of kLeader and kFollower: the embedding and the head.
inline constexpr char kBeforeTheGroup[] =
    "program 3 training rank 0 of 4 units 4 microbatches 2@0\n"
    "holds 0\n"
    "groups 0 1 2 3 1,2\n"
    "parameters 16448:0\n"
    "gradients 16448:0\n"
    "0 gather block=0 buffer=0 group=0\n"
    "1 forward block=0 mb=0 buffer=0 keep=all after=0\n"
    "2 send_activation block=1 mb=0 first=0 samples=2 peer=1 after=1\n"
    "3 receive_gradient block=1 mb=0 first=0 samples=2 peer=1\n"
    "4 backward block=0 mb=0 buffer=0 grad=0 after=3\n"
    "5 reduce_scatter block=0 grad=0 group=0 after=4\n"
    "6 reduce_scalars\n"
    "7 optimizer_step after=6\n";

inline constexpr char kBehindTheGroup[] =
    "program 3 training rank 3 of 4 units 4 microbatches 2@0\n"
    "holds 3\n"
    "groups 0 1 2 3 1,2\n"
    "parameters 16448:3\n"
    "gradients 16448:3\n"
    "0 gather block=3 buffer=0 group=3\n"
    "1 receive_activation block=3 mb=0 first=0 samples=2 peer=1\n"
    "2 forward block=3 mb=0 buffer=0 keep=all after=0,1\n"
    "3 backward block=3 mb=0 buffer=0 grad=0\n"
    "4 send_gradient block=3 mb=0 first=0 samples=2 peer=1 after=3\n"
    "5 reduce_scatter block=3 grad=0 group=3 after=3\n"
    "6 reduce_scalars\n"
    "7 optimizer_step after=6\n";

// The validation pass of a tensor-parallel group of the whole model, with a vocabulary-parallel embedding and head. The
// embedding's array comes from the group's other rank.
inline constexpr char kRows[] =
    "program 3 evaluation rank 0 of 2 units 2 microbatches 2@0\n"
    "holds 0,1\n"
    "groups 0,1 0\n"
    "parameters 16384,64\n"
    "gradients -\n"
    "0 broadcast block=0 buffer=0 group=0 root=1\n"
    "1 gather block=1 buffer=1 group=1\n"
    "2 forward block=0 mb=0 buffer=0 keep=nothing after=0\n"
    "3 all_reduce_activation block=0 mb=0 of=activation group=0 after=2\n"
    "4 forward block=1 mb=0 segment=logits buffer=1 keep=nothing after=3\n"
    "5 all_reduce_activation block=1 mb=0 segment=logits of=rows group=0 after=4\n"
    "6 forward block=1 mb=0 segment=loss buffer=1 keep=nothing after=5\n"
    "7 reduce_scalars after=6\n";

// Parameters and moments in host memory, and a layer's input while it is not needed; steps by name.
inline constexpr char kCopies[] =
    "program 3 training rank 0 of 1 units 3 microbatches 2@0\n"
    "holds 0,1,2\n"
    "groups 0\n"
    "parameters 49280,49280\n"
    "gradients 49280,49280\n"
    "0 prefetch_state block=0 of=parameters\n"
    "1 gather block=0 buffer=0 group=0 after=0\n"
    "2 prefetch_state block=1-2 of=parameters\n"
    "3 gather block=1 buffer=1 group=0 after=2\n"
    "4 forward block=0 mb=0 buffer=0 keep=all after=1\n"
    "5 release buffer=0\n"
    "6 forward block=1 mb=0 buffer=1 keep=boundary after=3\n"
    "7 offload_activation block=1 mb=0 after=6\n"
    "8 gather block=2 buffer=0 group=0 after=5\n"
    "9 forward block=2 mb=0 buffer=0 keep=all after=8\n"
    "10 backward block=2 mb=0 buffer=0 grad=0\n"
    "11 release buffer=0\n"
    "12 reduce_scatter block=2 grad=0 group=0 after=10\n"
    "13 prefetch_activation block=1 mb=0\n"
    "14 recompute block=1 mb=0 buffer=1 after=13\n"
    "15 backward block=1 mb=0 buffer=1 grad=1\n"
    "16 prefetch_state block=0-2 of=moments\n"
    "17 gather block=0 buffer=0 group=0 after=11\n"
    "18 reduce_scatter block=1 grad=1 group=0 after=15\n"
    "19 backward block=0 mb=0 buffer=0 grad=0 after=12,17\n"
    "20 reduce_scatter block=0 grad=0 group=0 after=19\n"
    "21 optimizer_step block=1-2 after=16,18\n"
    "22 offload_state block=1-2 of=moments after=21\n"
    "23 offload_state block=1-2 of=parameters\n"
    "24 reduce_scalars\n"
    "25 optimizer_step block=0 after=24\n"
    "26 offload_state block=0 of=moments after=25\n"
    "27 offload_state block=0 of=parameters\n";

// Those of which every instruction is needed by itself, and all.
inline constexpr const char* kWideTexts[] = {kWide, kSplitBackward, kFollower, kCopies};
inline constexpr const char* kAllWideTexts[] = {kWide,           kSplitBackward,  kLeader, kFollower,
                                                kBeforeTheGroup, kBehindTheGroup, kRows,   kCopies};

}  // namespace motley
