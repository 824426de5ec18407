// The cards of a live cluster, from what was measured of its devices: those that measure alike are one.
#pragma once

#include <string>
#include <vector>

#include "common/device/device.h"
#include "planner/cluster/cluster.h"
#include "planner/costs/latency_book.h"

namespace motley::planner {

// The first device of a label gives it its name and decides who is like it; others that measure differently, or that another
// libtorch computes on, are LABEL-2, LABEL-3, ... Writes into both, which must outlive it.
class MeasuredCards {
 public:
  MeasuredCards(Cluster* cluster, MotleyProfile* profile) : cluster_(*cluster), profile_(*profile) {}

  // The index of the device's card in the cluster's kinds; `card` joins the mean of its measurements.
  int Add(const DeviceDescription& device, CardKind kind, MeasuredCard card);

 private:
  // A name that the profile's reader would take for another card is none.
  bool Taken(const std::string& name) const;

  Cluster& cluster_;
  MotleyProfile& profile_;
  std::vector<std::string> labels_, libtorches_;  // by kind
  std::vector<MeasuredCard> firsts_;
  std::vector<absl::Duration> launches_;
  std::vector<double> measurements_;
};

}  // namespace motley::planner
