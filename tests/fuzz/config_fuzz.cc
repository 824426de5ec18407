// The worker's and the coordinator's configuration, and a cluster file: all TOML of ours besides the job.
#include "coordinator/core/config.h"
#include "planner/cluster/cluster_file.h"
#include "tests/fuzz/fuzz.h"
#include "worker/daemon/config.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace motley;
  const std::string_view text = fuzz::Text(data, size);
  if (const auto worker = worker::ParseWorkerConfig(text, "worker.toml"); worker.ok()) (void)worker::Validate(*worker);
  coordinator::Config config;
  if (coordinator::ParseConfig(text, "coordinator.toml", &config).ok()) (void)coordinator::Validate(config);
  (void)planner::ParseCluster(text, "cluster.toml");
  return 0;
}
