#include "coordinator/page/page_feed.h"

#include <set>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "coordinator/page/web/page_document.h"
#include "coordinator/rpc/clean_message.h"
#include "coordinator/rpc/job_lanes.h"
#include "coordinator/rpc/job_memory.h"
#include "coordinator/rpc/views.h"

namespace motley::coordinator {
namespace {

using MessagePointer = std::unique_ptr<google::protobuf::Message>;

// Of a page that begins.
constexpr int64_t kFirstSteps = static_cast<int64_t>(PageBoard::kMostEntries);
constexpr int64_t kFirstLines = 200;
constexpr int kFirstEvents = 500;
constexpr int kEventsAtOnce = 200;  // the rest half a second later

template <typename Message>
MessagePointer Boxed(Message message) {
  return std::make_unique<Message>(std::move(message));
}

}  // namespace

struct PageDraft {
  bool anew = false;
  std::map<std::string, MessagePointer> rows;
  std::map<std::string, std::string> ready;  // rows that are JSON already
  std::set<std::string> same;
  MessagePointer history;
  std::map<std::string, std::vector<MessagePointer>> lists;
};

namespace {

std::string Printed(const MessagePointer& message) {
  CleanTexts(*message);
  return PageJson(*message);
}

PageNews Print(const PageDraft& draft) {
  PageNews news;
  news.anew = draft.anew;
  news.rows = draft.ready;
  news.same = draft.same;
  for (const auto& [name, message] : draft.rows) news.rows[name] = Printed(message);
  if (draft.history != nullptr) news.history = Printed(draft.history);
  for (const auto& [name, messages] : draft.lists) {
    for (const MessagePointer& message : messages) news.lists[name].push_back(Printed(message));
  }
  return news;
}

// Seven digits are more than a page shows, and half as long.
void Shorten(v1::StepRecord* step) {
  const auto* reflection = step->GetReflection();
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  reflection->ListFields(*step, &fields);
  for (const auto* field : fields) {
    if (field->cpp_type() != google::protobuf::FieldDescriptor::CPPTYPE_DOUBLE) continue;
    double value = 0;
    if (absl::SimpleAtod(absl::StrFormat("%.7g", reflection->GetDouble(*step, field)), &value)) {
      reflection->SetDouble(step, field, value);
    }
  }
}

// What a list shows of it. Without what changes by itself: a thousand that wait would be news each second.
v1::Job ListedJob(const ClusterState& state, const JobRecord& job) {
  v1::Job out = View(static_cast<const JobStatus&>(job));
  out.mutable_spec()->mutable_training()->set_steps(job.config.training.steps);
  if (out.has_last_step()) Shorten(out.mutable_last_step());
  if (job.phase == JobPhase::kQueued && state.run) out.set_reason(absl::StrCat("waits for ", state.run->job.value()));
  return out;
}

// Of the curve: the job's own row has the rest of the newest.
v1::StepRecord CurveStep(const StepStats& step) {
  v1::StepRecord out = View(step);
  out.clear_elapsed_seconds();
  out.clear_remaining_seconds();
  out.clear_peak_memory_bytes();
  out.clear_peak_memory_share();
  out.clear_lateness_seconds();
  Shorten(&out);
  return out;
}

// The texts of the ranks' programs, whose instructions measured spans are of.
std::string ProgramsJson(const Core& core, const JobId& job) {
  const absl::StatusOr<PlanRow> plan = core.store.FindPlan(job);
  if (!plan.ok()) return "[]";
  const auto quote = [](std::string* out, const std::string& text) { absl::StrAppend(out, PageJson(text)); };
  return absl::StrCat("[", absl::StrJoin(plan->programs, ",", quote), "]");
}

// A cursor into a ring whose job was pruned and has begun anew lies above it.
template <typename T>
int64_t CursorIn(const Ring<T>& ring, std::optional<int64_t> cursor, int64_t first) {
  return cursor && *cursor <= ring.newest() ? *cursor : ring.newest() - first;
}

}  // namespace

PageFeed::PageFeed(Core& core, PageBoard& board, std::function<void(std::function<void()>)> print)
    : core_(core), board_(board), print_(std::move(print)) {}
PageFeed::~PageFeed() = default;

bool PageFeed::IsDue(const std::string& row, absl::Duration every, Told& told, PageDraft& draft) {
  std::optional<absl::Duration>& last = told.when[row];
  if (last && core_.clock.Now() - *last < every) {
    draft.same.insert(row);
    return false;
  }
  last = core_.clock.Now();
  return true;
}

bool PageFeed::IsNews(const std::string& row, std::string mark, Told& told, PageDraft& draft) {
  const auto known = told.marks.find(row);
  if (known != told.marks.end() && known->second == mark) {
    draft.same.insert(row);
    return false;
  }
  told.marks[row] = std::move(mark);
  return true;
}

void PageFeed::UpdatePages() {
  const std::vector<PageTopic> topics = board_.LookedAt();
  std::set<std::string> looked;
  for (const PageTopic& topic : topics) looked.insert(topic.name);
  std::erase_if(told_, [&looked](const auto& told) { return !looked.contains(told.first); });
  for (const PageTopic& topic : topics) {
    Told& told = told_[topic.name];
    if (told.number != topic.number) {
      told = Told();
      told.number = topic.number;
    } else if (*told.printing || core_.clock.Now() - told.at < kEvery) {
      continue;
    }
    told.at = core_.clock.Now();
    Gather(topic, told);
  }
}

void PageFeed::Gather(const PageTopic& topic, Told& told) {
  auto draft = std::make_shared<PageDraft>();
  const size_t slash = topic.name.find('/');
  const auto job =
      slash == std::string::npos ? core_.state.jobs.end() : core_.state.jobs.find(JobId(topic.name.substr(slash + 1)));
  const std::string uid = job == core_.state.jobs.end() ? "" : job->second.uid.value();
  if (uid != told.uid) {  // another job of this id, or none any more
    draft->anew = true;
    Told fresh;
    fresh.number = told.number, fresh.at = told.at, fresh.printing = told.printing, fresh.uid = uid;
    told = std::move(fresh);
  }
  if (slash == std::string::npos) {
    GatherCluster(told, *draft);
  } else if (job == core_.state.jobs.end()) {
    draft->ready["missing"] = "true";
  } else if (absl::StartsWith(topic.name, "job/")) {
    GatherJob(job->second, told, *draft);
  } else if (absl::StartsWith(topic.name, "simulated/")) {
    GatherPlan(job->second, "trace", told, *draft);
  } else {
    GatherMeasured(job->second, told, *draft);
  }
  *told.printing = true;
  print_([board = &board_, topic, draft, printing = told.printing] {
    board->Publish(topic, Print(*draft));
    *printing = false;
  });
}

void PageFeed::GatherCluster(Told& told, PageDraft& draft) {
  for (const auto& [name, node] : core_.state.nodes) {
    if (node.forgotten) continue;
    v1::Node view = View(core_.state, node);
    view.clear_last_seen_unix_ms();  // it changes with every heartbeat
    draft.rows[absl::StrCat("node:", name.value())] = Boxed(std::move(view));
  }
  for (const auto& [id, job] : core_.state.jobs) {
    const std::string row = absl::StrCat("job:", id.value());
    // Of those that have ended nothing changes by itself.
    if (!IsFinal(job.phase)) {
      told.marks.erase(row);
    } else if (!IsNews(row, absl::StrCat(job.uid.value(), " ", job.finished_unix_ms, " ", job.safe_checkpoint), told, draft)) {
      continue;
    }
    draft.rows[row] = Boxed(ListedJob(core_.state, job));
  }
  std::erase_if(told.marks,
                [&draft](const auto& mark) { return !draft.same.contains(mark.first) && !draft.rows.contains(mark.first); });
}

void PageFeed::GatherJob(const JobRecord& job, Told& told, PageDraft& draft) {
  v1::Job view = View(core_, job);
  view.clear_spec();
  if (view.has_last_step()) Shorten(view.mutable_last_step());
  draft.rows["job"] = Boxed(std::move(view));
  // A resumed job may have another one.
  if (IsDue("spec", kHistoryEvery, told, draft)) {
    draft.rows["spec"] = Boxed(BriefSpec(job.config));
    draft.history = Boxed(View(core_.journal.histories().Of(job.id)));
  }
  GatherPlan(job, "plan", told, draft);
  GatherRanks(job, told, draft);
  GatherNews(job, told, draft);
}

void PageFeed::GatherRanks(const JobRecord& job, Told& told, PageDraft& draft) {
  const bool runs = core_.state.run && core_.state.run->job == job.id;
  if (runs && IsDue("lanes", kLanesEvery, told, draft)) {
    v1::GetJobResponse lanes;
    AddLanes(core_, job, &lanes);
    draft.rows["lanes"] = Boxed(std::move(lanes));
  }
  // Of one that does not run it stays as it is, but for another plan, or its last step.
  const std::string mark = absl::StrCat(job.epoch.value(), " ", static_cast<int>(job.phase));
  const bool same = told.marks["memory"] == mark;
  if (same && !(runs && IsDue("memory", kMemoryEvery, told, draft))) {
    draft.same.insert("memory");
    return;
  }
  told.marks["memory"] = mark;
  v1::GetJobResponse memory;
  const absl::Status status = AddMemory(core_, job, &memory);
  if (status.ok()) draft.rows["memory"] = Boxed(std::move(memory));
  if (!status.ok() && !absl::IsNotFound(status)) told.marks.erase("memory");
}

// The plan's row is written with the phase that starts it, so it is read again only when phase or number has changed.
void PageFeed::GatherPlan(const JobRecord& job, const std::string& row, Told& told, PageDraft& draft) {
  if (!IsNews(row, absl::StrCat(job.epoch.value(), " ", static_cast<int>(job.phase)), told, draft)) return;
  const absl::StatusOr<PlanRow> plan = core_.store.FindPlan(job.id);
  if (!plan.ok() && !absl::IsNotFound(plan.status())) told.marks.erase(row);  // the next time
  if (!plan.ok()) return;
  draft.ready[row] = row == "trace" ? plan->trace_json : PagePlanJson(plan->epoch.value(), plan->explanation, plan->plan_json);
}

void PageFeed::GatherNews(const JobRecord& job, Told& told, PageDraft& draft) {
  const Ring<Update>& updates = core_.journal.Updates(job.id);
  told.step = CursorIn(updates, told.step, kFirstSteps);
  int64_t found = 0;
  while (const Update* update = updates.After(*told.step, &found)) {
    told.step = found;
    if (const auto* step = std::get_if<StepStats>(update)) draft.lists["steps"].push_back(Boxed(CurveStep(*step)));
  }
  const Ring<LogRecord>& lines = core_.journal.Logs(job.id);
  told.line = CursorIn(lines, told.line, kFirstLines);
  while (const LogRecord* line = lines.After(*told.line, &found)) {
    told.line = found;
    draft.lists["logs"].push_back(Boxed(View(*line)));
  }
  // From the store, which has those of before this coordinator was started, too.
  const auto events =
      told.event ? core_.store.EventsAfter(job.id, *told.event, kEventsAtOnce) : core_.store.NewestEvents(job.id, kFirstEvents);
  if (!events.ok()) return;
  if (!told.event) told.event = 0;
  for (const EventRecord& event : *events) {
    told.event = event.sequence;
    draft.lists["events"].push_back(Boxed(View(event)));
  }
}

// Asked for once; its pages look until all ranks have answered.
void PageFeed::GatherMeasured(const JobRecord& job, Told& told, PageDraft& draft) {
  for (const auto& [row, mark] : told.marks) draft.same.insert(row);
  if (told.marks.contains("end")) return;
  if (told.measured == nullptr) {
    v1::TraceStepRequest request;
    request.set_job_id(job.id.value());
    told.measured = std::make_unique<TraceStepSource>(request);
  }
  while (true) {
    v1::TraceStepUpdate update;
    const absl::StatusOr<Pull> pull = told.measured->Next(core_, &update);
    if (pull.ok() && *pull == Pull::kWait) return;
    if (!pull.ok() || *pull == Pull::kEnd) {
      draft.ready["programs"] = ProgramsJson(core_, job.id);
      draft.ready["end"] = pull.ok() ? "{}" : absl::StrCat("{\"error\":", PageJson(std::string(pull.status().message())), "}");
      told.marks["programs"] = told.marks["end"] = "";
      return;
    }
    if (!update.has_rank()) continue;
    const std::string row = absl::StrCat("rank:", update.rank().rank());
    told.marks[row] = "";
    draft.rows[row] = Boxed(std::move(*update.mutable_rank()));
  }
}

}  // namespace motley::coordinator
