// What a fake worker answers when it is to measure, or to try.
#include "common/model/operators.h"
#include "common/model/parameters.h"
#include "common/wire/assignment.h"
#include "tests/coordinator/rpc/fake_worker.h"

namespace motley::coordinator {
namespace {

// A device of 1 GFLOP/s with links of 1 GB/s.
v1::UnitProfile InventUnit(const ModelShape& shape, UnitKind unit, int64_t seq_len) {
  v1::UnitProfile profile;
  for (const int64_t m : {1, 2, 4, 8}) {
    v1::ComputePoint* point = profile.add_points();
    point->set_microbatch(m);
    point->set_forward_seconds(1e-5 + ForwardFlops(shape, unit, m, seq_len) / 1e9);
    point->set_backward_seconds(1e-5 + BackwardFlops(shape, unit, m, seq_len) / 1e9);
    point->set_saved_bytes(SavedBytes(shape, unit, m, seq_len, DType::kFloat32));
    point->set_workspace_bytes(1024 * m);
  }
  return profile;
}

v1::CollectiveProfile InventCollectives(const v1::RankAssignment& rank, const ModelShape& shape) {
  v1::CollectiveProfile profile;
  for (const std::string& device : rank.device_ids()) profile.add_device_ids(device);
  const double n = rank.device_ids_size();
  for (const int64_t bytes : {int64_t{4096}, int64_t{65536}, 4 * NumParameters(shape)}) {
    for (const double skew : {1 / n, (1 + 1 / n) / 2, 1.0}) {
      v1::CollectivePoint* point = profile.add_points();
      point->set_bytes(bytes);
      point->set_skew(skew);
      point->set_all_gather_seconds(1e-4 + static_cast<double>(bytes) / 1e9);
      point->set_reduce_scatter_seconds(1e-4 + static_cast<double>(bytes) / 1e9);
    }
  }
  profile.set_barrier_seconds(1e-4);
  return profile;
}

}  // namespace

void FakeWorker::AnswerTrial(const v1::ProfileRequest& request, v1::ProfileResult* result) {
  const auto assignment = wire::FromProto(request.ranks(0));
  if (!assignment.ok()) return result->set_error(std::string(assignment.status().message()));
  const int64_t samples = BatchSize(*assignment);
  const bool fits = options_.trial_fits(request.ranks(0), samples);
  if (!options_.trial_error.empty() || !fits) {
    result->set_error(fits ? options_.trial_error : "out of memory");
    return result->set_fault(fits ? v1::FAULT_OURS : v1::FAULT_MEMORY);
  }
  result->mutable_trial()->set_samples(samples);
  result->mutable_trial()->set_seconds(0.25 * static_cast<double>(samples));
  result->mutable_trial()->set_peak_bytes(assignment->planned_bytes);
}

void FakeWorker::AnswerProfile(const v1::ProfileRequest& request) {
  if (request.trial() || request.ranks().empty()) {
    absl::MutexLock lock(&mutex_);
    request.trial() ? ++trials_ : ++called_off_;
    if (!request.trial() || !options_.answer_trials) return;
  }
  if (request.collectives() && !options_.answer_collectives) return;
  if (request.collectives()) {
    for (const v1::RankAssignment& rank : request.ranks()) Meet(rank, "profile/");
    absl::MutexLock lock(&mutex_);
    measuring_.assign(request.ranks().begin(), request.ranks().end());
  }
  if (request.collectives() && !options_.measures) return;
  v1::WorkerMessage answer;
  v1::ProfileResult* result = answer.mutable_profile_result();
  result->set_job_id(request.job_id());
  result->set_epoch(request.epoch());
  result->set_check_id(request.check_id());
  const bool fails =
      !options_.profile_error.empty() && (options_.failing_profiles == nullptr || (*options_.failing_profiles)-- > 0);
  if (fails) {
    result->set_error(options_.profile_error);
    result->set_fault(options_.profile_fault);
  }
  if (request.trial() && options_.trial_fits) AnswerTrial(request, result);
  if (fails || options_.empty_profile || request.trial()) return Send(answer);
  for (const v1::RankAssignment& rank : request.ranks()) {
    const auto assignment = wire::FromProto(rank);
    if (!assignment.ok()) {
      result->set_error(std::string(assignment.status().message()));
      break;
    }
    v1::ComputeProfile* profile = result->add_compute();
    const int64_t seq_len = assignment->config.training.seq_len;
    profile->set_device_id(rank.device().id());
    *profile->mutable_embedding() = InventUnit(assignment->model, UnitKind::kEmbedding, seq_len);
    *profile->mutable_layer() = InventUnit(assignment->model, UnitKind::kLayer, seq_len);
    *profile->mutable_head() = InventUnit(assignment->model, UnitKind::kHead, seq_len);
    profile->set_optimizer_seconds_per_element(1e-8);
    if (request.collectives() && rank.rank() == 0) *result->mutable_collectives() = InventCollectives(rank, assignment->model);
  }
  if (options_.on_profile) options_.on_profile(*result);
  Send(answer);
}

}  // namespace motley::coordinator
