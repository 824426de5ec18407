#include "worker/engine/trainer.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "common/base/fault.h"
#include "common/base/status_macros.h"
#include "common/data/data_files.h"
#include "common/data/data_size.h"
#include "common/data/loss_figures.h"
#include "common/program/engine_subset.h"
#include "worker/engine/base/heartbeat.h"
#include "worker/engine/base/memory.h"
#include "worker/engine/base/monotonic.h"
#include "worker/engine/base/this_node.h"
#include "worker/engine/batch.h"
#include "worker/engine/check_slice.h"
#include "worker/engine/check_slots.h"
#include "worker/engine/checkpointer.h"
#include "worker/engine/rehearsal.h"
#include "worker/engine/reserve_transfers.h"

namespace motley::engine {
namespace {

constexpr absl::Duration kSaveBeat = absl::Seconds(1);
// Of a last checkpoint: a moment's trouble of a file system passes; what lasts longer is reported.
constexpr absl::Duration kFirstPause = absl::Seconds(1), kLongestPause = absl::Seconds(10), kMostPauses = absl::Seconds(100);

// A driver does not give the same to the byte each time. What the plan leaves free of a device has room for it.
constexpr int64_t kContextMarginBytes = int64_t{32} << 20;

std::vector<int64_t> ValidationSamples(const Microbatch& microbatch) {
  std::vector<int64_t> samples(static_cast<size_t>(microbatch.samples));
  std::iota(samples.begin(), samples.end(), microbatch.first);
  return samples;
}

// Whether what the epoch resumes from is one of the job's folder.
bool IsOwnCheckpoint(const RankAssignment& assignment) {
  if (assignment.resume_from.empty()) return false;
  const std::filesystem::path root = std::filesystem::path(assignment.resume_from).parent_path();
  return assignment.start_step > 0 || root == std::filesystem::path(assignment.config.checkpoint.folder);
}

}  // namespace

Trainer::Trainer(const RankAssignment& assignment, const EngineOptions& options, DeviceBackend& backend, RankHost& host,
                 Communicator& communicator, LinkClock& links, const StopRequest& stop)
    : assignment_(assignment),
      options_(options),
      backend_(backend),
      host_(host),
      communicator_(communicator),
      stop_(stop),
      pacer_(assignment.device, clock_),
      progress_(host),
      proof_(assignment, options, communicator, progress_),
      host_link_(assignment.device, assignment.devices, assignment.rank, links),
      schedule_(assignment.config.checkpoint, options.clock != nullptr ? *options.clock : clock_) {}

absl::StatusOr<std::unique_ptr<Dataset>> Trainer::OpenJobData(const JobsData& which) {
  const std::string& path = which.path;
  MOTLEY_ASSIGN_OR_RETURN(const FileDescriptor opened,
                          options_.roots != nullptr ? options_.roots->OpenForRead(which.key, path) : OpenData(path));
  DataOptions options;
  options.vocabulary = assignment_.model.vocab_size;
  options.known_digest = which.digest;
  if (options_.roots != nullptr) {
    options.beyond = [this, key = which.key](const std::string& target) { return options_.roots->OpenForRead(key, target); };
  }
  MOTLEY_ASSIGN_OR_RETURN(Dataset data,
                          Dataset::Read(opened, path, assignment_.config.training.seq_len, which.validation_fraction, options));
  if (!which.digest.empty() && data.summary().digest != which.digest) {
    return absl::FailedPreconditionError(absl::StrCat(
        "data ", path, " has digest ", data.summary().digest, " on ", NodeOf(assignment_.devices[assignment_.rank]).value(),
        ", the job was planned for ", which.digest, "; put the same files on every node"));
  }
  return std::make_unique<Dataset>(std::move(data));
}

absl::Status Trainer::ReadData() {
  progress_.Beat("opening the data");
  const DataSection& section = assignment_.config.data;
  const auto open = [this](const JobsData& which, std::unique_ptr<Dataset>* to) -> absl::Status {
    absl::StatusOr<std::unique_ptr<Dataset>> data = OpenJobData(which);
    MOTLEY_RETURN_IF_ERROR(which.digest.empty() ? data.status() : OfThisNode(data.status()));
    *to = *std::move(data);
    return absl::OkStatus();
  };
  MOTLEY_RETURN_IF_ERROR(open({"data.path", section.path, ValidationFraction(section), assignment_.data_digest}, &data_));
  if (!section.validation_path.empty()) {
    MOTLEY_RETURN_IF_ERROR(open(
        {"data.validation_path", section.validation_path, kAllForValidation, assignment_.validation_digest}, &validation_data_));
  }
  proof_.Begin(DataSets());
  return absl::OkStatus();
}

std::vector<const Dataset*> Trainer::DataSets() const {
  std::vector<const Dataset*> sets = {data_.get()};
  if (validation_data_ != nullptr) sets.push_back(validation_data_.get());
  return sets;
}

absl::Status Trainer::CheckValidationCounts() {
  const int64_t samples = assignment_.config.data.validation_samples;
  if (samples == 0 || !ValidationData().has_rows()) return absl::OkStatus();
  MOTLEY_ASSIGN_OR_RETURN(const int64_t trained,
                          CountTrained(ValidationData(), Split::kValidation, ValidationSamples({samples, 0})));
  MOTLEY_ASSIGN_OR_RETURN(const auto by_rank, communicator_.GatherScalars({static_cast<double>(trained)}));
  std::vector<int64_t> counts;
  for (const std::vector<double>& of_rank : by_rank) counts.push_back(static_cast<int64_t>(of_rank[0]));
  const bool alike = std::all_of(counts.begin(), counts.end(), [trained](int64_t count) { return count == trained; });
  if (alike && trained > 0) return absl::OkStatus();
  return proof_.NothingCommonToTrain(counts, absl::StrCat("the ", samples, " validation rows"),
                                     "raise data.validation_samples, or give other rows");
}

absl::Status Trainer::CheckValidationData() {
  const DataSection& section = assignment_.config.data;
  const int64_t samples = ValidationData().num_samples(Split::kValidation);
  if (section.validation_samples <= samples) return CheckValidationCounts();
  const bool own = validation_data_ != nullptr;
  return absl::FailedPreconditionError(absl::StrCat("data.validation_samples is ", section.validation_samples, ", ",
                                                    own ? absl::StrCat("data.validation_path ", section.validation_path)
                                                        : absl::StrCat("the validation split of ", section.path),
                                                    " has ", samples, " samples; lower it, or ",
                                                    own ? "give more data" : "raise data.validation_fraction"));
}

absl::Status Trainer::Prepare() {
  const JobConfig& config = assignment_.config;
  MOTLEY_RETURN_IF_ERROR(Validate(assignment_.program));
  for (const Program* program : {&assignment_.program, &assignment_.evaluation}) MOTLEY_RETURN_IF_ERROR(RunsInEngine(*program));
  MOTLEY_ASSIGN_OR_RETURN(const Precision precision, PrecisionOf(config.training));
  progress_.BeginStep(assignment_.start_step);
  MOTLEY_RETURN_IF_ERROR(AgreeOnPrograms());
  MOTLEY_RETURN_IF_ERROR(ReadData());
  MOTLEY_RETURN_IF_ERROR(CheckSlice(assignment_, assignment_.program));
  MOTLEY_RETURN_IF_ERROR(CheckSlots(assignment_, precision, assignment_.program));
  if (!assignment_.evaluation.instructions.empty()) {
    MOTLEY_RETURN_IF_ERROR(Validate(assignment_.evaluation));
    MOTLEY_RETURN_IF_ERROR(CheckSlice(assignment_, assignment_.evaluation));
    MOTLEY_RETURN_IF_ERROR(CheckValidationData());
  }
  MOTLEY_RETURN_IF_ERROR(CheckOffloads(assignment_, precision));
  order_ = std::make_unique<SampleOrder>(config.training.seed, data_->summary().digest, config.training.seq_len,
                                         data_->num_samples(Split::kTrain));
  lanes_ = std::make_unique<RankLanes>(assignment_.device, backend_, communicator_, host_link_, pacer_);
  {
    const Heartbeat heartbeat(
        kStartBeat, [this] { progress_.Beat("rehearsing the model's units"); }, kLongestStart);
    const int64_t before = backend_.CurrentBytes();
    const bool rows = data_->has_rows() || ValidationData().has_rows();
    MOTLEY_RETURN_IF_ERROR(Rehearse(assignment_, precision, rows, backend_, lanes_->all()));
    library_bytes_ = std::max<int64_t>(0, backend_.CurrentBytes() - before);
  }
  {
    const Heartbeat heartbeat(
        kStartBeat, [this] { progress_.Beat("making room in the host's memory"); }, kLongestStart);
    MOTLEY_ASSIGN_OR_RETURN(host_tier_, HostTier::Make(assignment_, precision, backend_.memory()));
  }
  MOTLEY_ASSIGN_OR_RETURN(ShardedState state, ShardedState::Create(assignment_, backend_.tensors(), host_tier_->areas(),
                                                                   options_.roots, [this] { progress_.Beat("restoring"); }));
  state_ = std::make_unique<ShardedState>(std::move(state));
  for (const Program* program : {&assignment_.program, &assignment_.evaluation}) {
    MOTLEY_RETURN_IF_ERROR(ReserveTransfers(assignment_, *program, precision, communicator_));
  }
  MOTLEY_ASSIGN_OR_RETURN(
      batches_, BatchLoader::Make(*data_, assignment_.program, config.training.seq_len, config.training.global_batch_size,
                                  backend_, [this](int64_t step, const Microbatch& m) {
                                    return order_->Samples(step, assignment_.config.training.global_batch_size, m.first,
                                                           m.samples);
                                  }));
  const CountingAs counting(MemoryPurpose::kContext);  // the model's own tables
  executor_ = std::make_unique<Executor>(assignment_, precision, backend_, *state_, communicator_,
                                         Executor::HostSide{*host_tier_, host_link_}, *lanes_);
  executor_->set_progress([this](int64_t instruction, const Operation& op) {
    progress_.Begin(instruction, op);
    if (options_.before_instruction) options_.before_instruction(instruction);
  });
  communicator_.set_progress([this] { progress_.Beat(); });
  host_link_.set_progress([this] { progress_.Beat(); });
  pacer_.set_heartbeat([this] { progress_.Beat(); });
  allocation_retries_ = backend_.AllocationRetries();
  return absl::OkStatus();
}

absl::Status Trainer::AgreeOnPrograms() {
  MOTLEY_ASSIGN_OR_RETURN(const std::vector<std::string> digests, communicator_.GatherStrings(assignment_.programs_digest));
  std::vector<std::string> others;
  for (size_t r = 0; r < digests.size(); ++r) {
    if (digests[r] != digests[0]) others.push_back(assignment_.devices[r].value());
  }
  if (others.empty()) return absl::OkStatus();
  return WithFault(
      absl::FailedPreconditionError(absl::StrCat(absl::StrJoin(others, ", "), " were given programs of another plan than ",
                                                 assignment_.devices[0].value(), "; the epoch must be planned again")),
      Fault::kOurs);
}

int64_t Trainer::ContextAbovePlan() const {
  const int64_t beside = backend_.BytesBesideAllocator(), planned = assignment_.planned_context_bytes;
  if (beside == 0 || planned == 0) return 0;
  const int64_t context = beside + library_bytes_;
  return context > planned + kContextMarginBytes ? context : 0;
}

bool Trainer::EvaluationDue(int64_t steps_done) const {
  if (assignment_.evaluation.instructions.empty()) return false;
  const int64_t interval = assignment_.config.data.validation_interval;
  return steps_done == assignment_.config.training.steps || (interval > 0 && steps_done % interval == 0);
}

absl::Status Trainer::Save(int64_t steps_done) {
  // Gigabytes to a slow file system take longer than the patience with a rank that does not move.
  const Heartbeat heartbeat(kSaveBeat, [this] { progress_.Beat("saving a checkpoint"); });
  const absl::Status status = SaveCheckpoint(assignment_, *state_, steps_done, options_.look_patience, communicator_, host_);
  if (status.ok()) {
    saved_step_ = steps_done;
    schedule_.Saved();
  } else if (FaultOf(status) == Fault::kStorage && assignment_.rank == 0) {
    host_.OnCheckpointFailed(steps_done, std::string(status.message()), DeviceId(BlamedDeviceOf(status)));
  }
  return status;
}

absl::Status Trainer::SaveAndGoOn(int64_t steps_done) {
  const absl::Status status = Save(steps_done);
  if (FaultOf(status) != Fault::kStorage) return status;
  schedule_.Failed();
  return absl::OkStatus();
}

// All ranks get the same verdict and so take the same turns.
absl::Status Trainer::SaveAtLast(int64_t steps_done) {
  absl::Duration waited, pause = kFirstPause;
  for (;;) {
    const absl::Status status = Save(steps_done);
    if (FaultOf(status) != Fault::kStorage || waited >= kMostPauses) return status;
    const Heartbeat heartbeat(kSaveBeat, [this] { progress_.Beat("waiting to save a checkpoint"); });
    options_.pause ? options_.pause(pause) : absl::SleepFor(pause);
    waited += pause;
    pause = std::min(2 * pause, kLongestPause);
  }
}

absl::Status Trainer::SaveWhatIsDue(int64_t steps_done, bool last, const StepScalars& agreed) {
  if (assignment_.config.checkpoint.folder.empty() || saved_step_ == steps_done) return absl::OkStatus();
  const bool at_last = last || (agreed.stop && agreed.save);
  if (!at_last && !agreed.checkpoint) return absl::OkStatus();
  MOTLEY_ASSIGN_OR_RETURN(const bool may_save, MaySave(steps_done, last, agreed));
  if (!may_save) return absl::OkStatus();
  return at_last ? SaveAtLast(steps_done) : SaveAndGoOn(steps_done);
}

// Nobody goes on from steps on other data. All ranks together: one that came to a save before rank 0 would wait for it only as
// long as a file system may be late, and rank 0 compares data.
absl::StatusOr<bool> Trainer::MaySave(int64_t steps_done, bool last, const StepScalars& agreed) {
  if (last) {
    MOTLEY_RETURN_IF_ERROR(proof_.Await());
    return true;
  }
  const auto stops = [this, &agreed] { return stop_.stop || agreed.stop; };
  MOTLEY_ASSIGN_OR_RETURN(const bool proven, proof_.AwaitUnlessStopped(schedule_.Unsaved(), stops));
  if (proven) return true;
  schedule_.Failed();  // without an end it is tried again
  if (agreed.stop && assignment_.rank == 0) {
    host_.OnCheckpointFailed(steps_done,
                             "its data are not compared yet, which takes longer than these steps or than a stop may; what was "
                             "compared is kept, and the next generation goes on with the rest",
                             DeviceId());
  }
  return false;
}

absl::StatusOr<StepOutcome> Trainer::Step(int64_t step, StepResult& result) {
  const JobConfig& config = assignment_.config;
  const Program& program = assignment_.program;
  const int64_t begin_ns = MonotonicNs();
  progress_.BeginStep(step);
  backend_.ResetPeak();
  result.held_memory_bytes = backend_.CurrentBytes();
  pacer_.ResetCounters();
  const double lateness_before = TransferLateness();
  MOTLEY_RETURN_IF_ERROR(proof_.Found());
  StepInput input;
  MOTLEY_ASSIGN_OR_RETURN(input.batch, batches_->Load(step));
  input.trained_tokens = input.batch.trained_tokens;
  MOTLEY_ASSIGN_OR_RETURN(input.touched, proof_.TakeTouched());
  input.step = step;
  input.lr = LearningRate(config, step);
  LossScale& loss_scale = state_->loss_scale();
  input.skipped = loss_scale.skipped_steps();
  input.loss_scale = loss_scale.scale();
  input.may_skip = loss_scale.may_skip();
  if (options_.overflows && options_.overflows(step)) input.loss_scale = std::numeric_limits<double>::infinity();
  input.stop = stop_.stop;
  input.save = stop_.save;
  input.checkpoint = assignment_.rank == 0 && schedule_.Due(step + 1);
  MOTLEY_ASSIGN_OR_RETURN(StepOutcome outcome, executor_->Run(program, input));
  if (outcome.scalars.sum.touched) proof_.Again(false);
  if (outcome.is_void) {
    return proof_.NothingCommonToTrain(
        outcome.scalars.trained_tokens,
        absl::StrCat("the ", config.training.global_batch_size, " rows of ", config.data.path, " in step ", step + 1),
        "raise training.global_batch_size, or prepare the data with more that is trained on");
  }

  result.step = step + 1;
  result.loss = outcome.scalars.loss();
  result.grad_norm = outcome.scalars.norm();
  TakeVerdict(outcome, result);
  result.lr = input.lr;
  result.step_seconds = (MonotonicNs() - begin_ns) * 1e-9;
  for (InstructionSpan& span : outcome.spans)
    span = {span.begin - absl::Nanoseconds(begin_ns), span.end - absl::Nanoseconds(begin_ns)};
  result.lanes = SecondsByLane(program, outcome.spans, absl::Seconds(result.step_seconds));
  result.spans = std::move(outcome.spans);
  result.peak_memory_bytes = backend_.PeakBytes();
  result.host_memory_bytes = host_tier_->bytes();
  result.memory = executor_->Memory();
  SayAllocationRetries(result.step);
  result.lateness_seconds = pacer_.lateness_seconds() + TransferLateness() - lateness_before;
  return outcome;
}

void Trainer::SayAllocationRetries(int64_t step) {
  const int64_t retries = backend_.AllocationRetries(), more = retries - allocation_retries_;
  allocation_retries_ = retries;
  if (more <= 0) return;
  host_.OnLog(absl::StrCat(assignment_.devices[assignment_.rank].value(), ", step ", step, ": its memory was full ", more,
                           " times, and the allocator had to wait for the device to find some; leave the job more of it, or use "
                           "smaller microbatches or recompute"));
}

void Trainer::TakeVerdict(const StepOutcome& outcome, StepResult& result) {
  LossScale& loss_scale = state_->loss_scale();
  result.loss_scale = loss_scale.scales() ? loss_scale.scale() : 0;
  result.skipped = !outcome.overflow.empty();
  if (!result.skipped) return loss_scale.Applied();
  loss_scale.Skipped();
  if (assignment_.rank != 0) return;
  host_.OnLog(absl::StrCat("step ", result.step, " is skipped: float16 overflowed in ", outcome.overflow, ". The loss scale is ",
                           loss_scale.scale(), " now, after ", result.loss_scale));
}

absl::Status Trainer::Evaluate(int64_t steps_done, StepResult& result) {
  const Program& program = assignment_.evaluation;
  StepInput input;
  MOTLEY_ASSIGN_OR_RETURN(input.batch, MakeBatch(ValidationData(), Split::kValidation, program,
                                                 assignment_.config.training.seq_len, backend_.tensors(), ValidationSamples));
  input.step = steps_done - 1;
  MOTLEY_ASSIGN_OR_RETURN(const StepOutcome outcome, executor_->Run(program, input));
  result.has_validation_loss = true;
  result.validation_loss = outcome.scalars.loss();
  result.validation_bits_per_byte = BitsPerByte(result.validation_loss, ValidationData().summary());
  return absl::OkStatus();
}

absl::StatusOr<RunEnd> Trainer::Run() {
  MOTLEY_RETURN_IF_ERROR(Prepare());
  host_.OnReady(communicator_.transports(), ContextAbovePlan());
  // What an epoch resumed from needs no saving again; weights to begin with that lie elsewhere are not the job's yet.
  if (IsOwnCheckpoint(assignment_)) saved_step_ = assignment_.start_step;
  // Before the first save it may free the space for it. What others still restore from may be among what older epochs left,
  // so in a resumed run it waits for the first step, which no rank takes alone.
  if (assignment_.resume_from.empty()) RemoveAbandonedCheckpoints(assignment_, host_);
  // Only where asked for: it is as large as every other, and the seed makes the same weights again.
  const CheckpointSection& checkpoint = assignment_.config.checkpoint;
  if (checkpoint.enable_step_zero_checkpoint && assignment_.start_step == 0 && saved_step_ != 0 && !checkpoint.folder.empty()) {
    MOTLEY_RETURN_IF_ERROR(SaveAndGoOn(0));
  }
  schedule_.Begin();

  const int64_t steps = assignment_.config.training.steps;
  for (int64_t step = assignment_.start_step; step < steps; ++step) {
    StepResult result;
    MOTLEY_ASSIGN_OR_RETURN(const StepOutcome outcome, Step(step, result));
    if (step == assignment_.start_step && !assignment_.resume_from.empty()) RemoveAbandonedCheckpoints(assignment_, host_);
    if (EvaluationDue(step + 1)) MOTLEY_RETURN_IF_ERROR(Evaluate(step + 1, result));
    host_.OnStep(result);
    const StepScalars& agreed = outcome.scalars.sum;
    const bool last = step + 1 == steps;
    if (last) MOTLEY_RETURN_IF_ERROR(proof_.Await());  // no job succeeds on data that nobody has compared
    MOTLEY_RETURN_IF_ERROR(SaveWhatIsDue(step + 1, last, agreed));
    if (agreed.stop && !last) return RunEnd::kStopped;
  }
  return RunEnd::kAllSteps;
}

}  // namespace motley::engine
