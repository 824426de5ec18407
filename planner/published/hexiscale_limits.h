// What HexiScale's paper keeps to. As made by itself: none of it, which is the tuned search.
#pragma once

namespace motley::planner {

struct HexiscaleLimits {
  bool links_alone = false;           // every hop and synchronisation is priced as if no other used its links (equations 5, 7)
  bool metis_alone = false;           // pipelines are partitions by METIS, none are from the cluster's tree
  bool metis_groups = false;          // a pipeline's devices are grouped by METIS too (section 4.3, metis_groups.h)
  bool layers_in_proportion = false;  // to speed or to memory
  bool recomputes_all = false;
  bool plain_replicas = false;  // between pipelines, ZeRO-2 where they do not fit
  bool no_moves = false;        // of devices between the pipelines of a layout
};

constexpr HexiscaleLimits PublishedHexiscale() {
  return {.links_alone = true,
          .metis_alone = true,
          .metis_groups = true,
          .layers_in_proportion = true,
          .recomputes_all = true,
          .plain_replicas = true,
          .no_moves = true};
}

}  // namespace motley::planner
