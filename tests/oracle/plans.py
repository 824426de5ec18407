"""Plans given by hand: who computes how many samples in which microbatches, and who stores what share, on four devices."""
import copy
import json

# Owners of seven equal parts of every block: ranks in no order, several parts of a rank, none of another.
SCATTERED = [2, 0, 3, 0, 2, 2, 3]
# name: (microbatches of each rank, shares of each rank, recompute of each rank[, schedule]); the batch is 12.
HAND_PLANS = {
    "even batches, even shards": ([[3], [3], [3], [3]], [.25, .25, .25, .25], "none"),
    "uneven batches and shards": ([[5], [4], [2], [1]], [.45, .30, .15, .10], "none"),
    "batches and shards the other way round": ([[1], [2], [4], [5]], [.60, .25, .10, .05], "none"),
    "a device with batch 0": ([[6], [4], [2], []], [.25, .25, .25, .25], "none"),
    "a device with share 0": ([[3], [3], [3], [3]], [.50, .30, .20, .0], "none"),
    "a device that only stores": ([[6], [4], [2], []], [.1, .1, .1, .7], "none"),
    "a device that only computes": ([[2], [2], [2], [6]], [.4, .3, .3, .0], "none"),
    "one device holds everything": ([[3], [3], [3], [3]], [.0, 1.0, .0, .0], "none"),
    "one device computes everything": ([[], [], [12], []], [.25, .25, .25, .25], "none"),
    "one device does both": ([[12], [], [], []], [1.0, .0, .0, .0], "none"),
    "owners in any order": ([[4], [4], [2], [2]], SCATTERED, "none"),
    "smaller last microbatch": ([[2, 2, 1], [3, 1], [2], [1]], [.4, .3, .2, .1], "none"),
    "microbatches of one": ([[1, 1, 1, 1, 1], [1, 1, 1], [1, 1], [1, 1]], [.25, .25, .25, .25], "none"),
    "recompute everywhere": ([[3, 2], [4], [2], [1]], [.4, .3, .2, .1], "full"),
    "recompute on some devices": ([[3, 2], [4], [2], [1]], [.1, .2, .3, .4], ["full", "none", "full", "none"]),
    "other operators recomputed on each device": ([[3, 2], [4], [2], [1]], [.1, .2, .3, .4],
                                                  ["norm1,activation", "qkv,attention", "attn_out,up", "none"]),
    "norms of heads recomputed": ([[3, 2], [4], [2], [1]], [.1, .2, .3, .4], ["head_norm", "qkv", "head_norm,attention", "none"], "zero_bubble"),
    "norms behind others recomputed": ([[3, 2], [4], [2], [1]], [.1, .2, .3, .4], ["behind1", "attn_out,behind1,norm2", "behind2,down", "none"]),
    "zero bubble": ([[3, 2, 1], [2, 2], [1], [1]], [.4, .3, .2, .1], ["none", "norm2,up", "full", "none"], "zero_bubble"),
}


def make_plan(template, microbatches, shares, recompute, schedule=None):
    """The template (a plan that the planner made for the same job, cluster and batch) with other numbers."""
    plan = copy.deepcopy(template)
    plan["strategy"] = "by hand"
    plan["schedule"] = schedule or plan["schedule"]
    plan.pop("predicted", None)
    plan.pop("schedules", None)  # of the template's microbatches; left out, they are made anew
    stage = plan["pipelines"][0]["stages"][0]
    recompute = [recompute] * len(shares) if isinstance(recompute, str) else recompute
    for unit, sizes, policy in zip(stage["units"], microbatches, recompute):
        unit["microbatches"] = sizes
        unit["ranks"][0]["recompute"] = policy
        unit["ranks"][0].pop("predicted", None)
    ownership = plan.pop("ownership")
    if shares != SCATTERED:
        for unit, share in zip(stage["units"], shares):
            unit["ranks"][0]["shard_ratio"] = share
        return json.dumps(plan)
    devices = [unit["ranks"][0]["device"] for unit in stage["units"]]
    for alike in ownership:
        elements = alike["ranges"][-1][2]
        cuts = [elements * i // len(SCATTERED) for i in range(len(SCATTERED) + 1)]
        alike["ranges"] = [[devices[rank], cuts[i], cuts[i + 1]] for i, rank in enumerate(SCATTERED)]
    plan["ownership"] = ownership
    return json.dumps(plan)


def make_tensor_parallel_plan(template, parts):
    """Two units of two devices; of `parts` key-value heads the second device of each computes one."""
    plan = json.loads(make_plan(template, [[4, 3], [], [3, 2], []], [.4, .3, .2, .1], ["norm1,activation", "full", "none", "none"]))
    stage = plan["pipelines"][0]["stages"][0]
    units = stage["units"]
    stage["units"] = [{**unit, "ranks": unit["ranks"] + other["ranks"]} for unit, other in (units[:2], units[2:])]
    for unit in stage["units"]:
        for rank, share in zip(unit["ranks"], (1 - 1 / parts, 1 / parts)):
            rank["tp_share"] = share
    return json.dumps(plan)
