#include "common/job/job_file.h"

#include <toml++/toml.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "common/base/clean_text.h"
#include "common/base/files.h"
#include "common/base/status_macros.h"
#include "common/base/written_path.h"
#include "common/job/initial_model.h"
#include "common/job/job_fields.h"
#include "common/job/job_input.h"
#include "common/job/unknown_key.h"

namespace motley {
namespace {

constexpr int64_t kLargestFileBytes = 1 << 20;
constexpr char kDefault[] = "default";
constexpr char kOverride[] = "--set";
constexpr char kWantsConfigJson[] =
    "; it is the path of a config.json: of a model on HuggingFace's hub download that file first (hf download ID config.json)";
constexpr char kUnseen[] =
    " is not here, and the job says no model, so that it is gpt2's debug; correct the path, or say the model (model.config: a "
    "copy of its config.json)";

// Whole: "name" is not found in "model.name", nor "model.config" in "model.config_json".
size_t FindPath(std::string_view sentence, std::string_view path) {
  const auto joins = [](char c) { return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.'; };
  for (size_t at = sentence.find(path); at != std::string_view::npos; at = sentence.find(path, at + 1)) {
    const size_t end = at + path.size();
    if ((at == 0 || !joins(sentence[at - 1])) && (end == sentence.size() || !joins(sentence[end]))) return at;
  }
  return std::string_view::npos;
}

// One load: collects every problem before it gives up, so that a user mends a file in one go.
class Loader {
 public:
  explicit Loader(std::string path) : path_(std::move(path)), fields_(JobFields(file_.config)) {
    for (const JobField& field : fields_) file_.origins[field.Path()] = kDefault;
  }
  Loader(const Loader&) = delete;  // fields_ points into file_

  void Begin(const JobConfig& config) { file_.config = config; }
  void ReadText(std::string_view text);
  void Override(const std::string& assignment);
  enum class Paths { kAll, kGiven };
  absl::Status MakePathsAbsolute(Paths which = Paths::kAll);
  void ReadInitial();
  void ReadModelConfig();
  void CompareWithInitial();
  void CheckRanges();
  absl::StatusOr<JobFile> Finish(const JobCheck& check);

 private:
  void ReadSection(const std::string& section, const toml::table& table);
  void ReadValue(const std::string& section, const std::string& key, const toml::node& node);
  bool Assign(const JobField& field, const toml::node& node);
  JobField* Find(std::string_view path);
  std::vector<std::string> Sections() const;
  std::vector<std::string> KeysOf(std::string_view section) const;
  std::string UnknownKey(const std::string& section, const std::string& key) const;
  void Problem(const std::string& where, const std::string& what) { problems_.push_back(absl::StrCat(where, ": ", what)); }
  // Of a value that is wrong by itself.
  void Problem(const JobField& field, const std::string& where, const std::string& what);
  bool SaysModel() const {
    return std::any_of(file_.origins.begin(), file_.origins.end(),
                       [](const auto& of) { return of.first.starts_with("model.") && of.second != kDefault; });
  }
  // Where the first value that a sentence names was given.
  std::string OriginOf(const std::string& sentence) const;
  int64_t PlaceOf(const std::string& problem) const;
  std::string Line(const toml::node& node) const { return absl::StrCat(path_, ":", node.source().begin.line); }

  std::string path_;
  JobFile file_;
  std::vector<JobField> fields_;
  std::vector<std::string> problems_;
  std::set<std::string> wrong_;  // paths of values that are wrong by themselves
  bool read_ = true;             // the file is TOML
  absl::Status unread_;          // why the model's config.json was not
  InitialModel initial_;         // of the folder that the job begins with, where the job says a model, too
  std::string unseen_;           // what is said where that folder is not here and the job says no model
};

void Loader::Problem(const JobField& field, const std::string& where, const std::string& what) {
  wrong_.insert(field.Path());
  Problem(where, what);
}

std::string Loader::OriginOf(const std::string& sentence) const {
  std::string origin = path_;
  size_t first = std::string::npos;
  for (const auto& [path, from] : file_.origins) {
    const size_t at = FindPath(sentence, path);
    if (from == kDefault || at >= first) continue;
    first = at;
    origin = from;
  }
  return origin;
}

// In the order of the file; behind it what has no line of its own, and what was said beside the file.
int64_t Loader::PlaceOf(const std::string& problem) const {
  constexpr int64_t kNoLine = int64_t{1} << 40;
  absl::string_view rest = problem;
  if (!absl::ConsumePrefix(&rest, path_)) return kNoLine + 1;
  int64_t line = 0;
  const bool numbered = absl::ConsumePrefix(&rest, ":") && absl::SimpleAtoi(rest.substr(0, rest.find(':')), &line);
  return numbered ? line : kNoLine;
}

JobField* Loader::Find(std::string_view path) {
  for (JobField& field : fields_) {
    if (field.Path() == path) return &field;
  }
  return nullptr;
}

std::vector<std::string> Loader::Sections() const {
  std::vector<std::string> sections;
  for (const JobField& field : fields_) {
    if (!field.section.empty() && (sections.empty() || sections.back() != field.section)) sections.emplace_back(field.section);
  }
  return sections;
}

std::vector<std::string> Loader::KeysOf(std::string_view section) const {
  std::vector<std::string> keys;
  for (const JobField& field : fields_) {
    if (field.section == section) keys.emplace_back(field.key);
  }
  return keys;
}

std::string Loader::UnknownKey(const std::string& section, const std::string& key) const {
  if (const std::string where = AskedInPlanning(key); !where.empty()) {
    return absl::StrCat("unknown key ", Quoted(key), " in [", section, "]", where);
  }
  for (const JobField& field : fields_) {
    if (field.key == key && !field.section.empty()) {
      return absl::StrCat("unknown key ", Quoted(key), " in [", section, "]; it belongs to [", std::string(field.section), "]");
    }
  }
  return absl::StrCat("unknown key ", Quoted(key), " in [", section, "]", DidYouMean(key, KeysOf(section)));
}

bool Loader::Assign(const JobField& field, const toml::node& node) {
  if (std::holds_alternative<std::string*>(field.value)) {
    if (!node.is_string()) return false;
    field.SetText(node.as_string()->get());
  } else if (auto* const* integer = std::get_if<int64_t*>(&field.value)) {
    if (!node.is_integer()) return false;
    **integer = node.as_integer()->get();
  } else if (auto* const* flag = std::get_if<bool*>(&field.value)) {
    if (!node.is_boolean()) return false;
    **flag = node.as_boolean()->get();
  } else {
    if (!node.is_number()) return false;
    *std::get<double*>(field.value) = *node.value<double>();
  }
  return true;
}

void Loader::ReadValue(const std::string& section, const std::string& key, const toml::node& node) {
  JobField* field = Find(absl::StrCat(section, ".", key));
  if (field == nullptr) return Problem(Line(node), UnknownKey(section, key));
  if (!Assign(*field, node)) return Problem(*field, Line(node), absl::StrCat(field->Path(), " must be ", field->TypeName()));
  file_.origins[field->Path()] = Line(node);
}

void Loader::ReadSection(const std::string& section, const toml::table& table) {
  if (KeysOf(section).empty()) {
    return Problem(Line(table), absl::StrCat("unknown section [", Echo(section), "]", DidYouMean(section, Sections())));
  }
  for (const auto& [key, node] : table) ReadValue(section, std::string(key.str()), node);
}

// "2k" in that line, from 1, is no number of TOML: what to write instead. Empty: there is none.
std::string WrittenOut(std::string_view text, size_t line) {
  for (size_t i = 1; i < line && text.find('\n') != std::string_view::npos; ++i) text.remove_prefix(text.find('\n') + 1);
  text = text.substr(0, text.find_first_of("\n#"));
  const size_t equals = text.find('=');
  if (equals == std::string_view::npos) return "";
  const std::string value(absl::StripAsciiWhitespace(std::string(text.substr(equals + 1))));
  int64_t number = 0;
  constexpr std::string_view kUnits = "kmg";
  const size_t unit = value.empty() ? kUnits.npos : kUnits.find(absl::ascii_tolower(static_cast<unsigned char>(value.back())));
  constexpr int64_t kLargest = 1 << 20;  // times a giga it still is a number
  if (unit == kUnits.npos || !absl::SimpleAtoi(value.substr(0, value.size() - 1), &number) || number < 0 || number > kLargest) {
    return "";
  }
  int64_t binary = number, decimal = number;
  for (size_t i = 0; i <= unit; ++i) binary *= 1024, decimal *= 1000;
  return absl::StrCat("; numbers are written out: ", binary, " (or ", decimal, ") instead of ", value);
}

void Loader::ReadText(std::string_view text) {
  try {
    const toml::table root = toml::parse(text, path_);
    for (const auto& [key, node] : root) {
      const std::string name(key.str());
      if (const toml::table* table = node.as_table()) {
        ReadSection(name, *table);
      } else if (JobField* field = Find(name); field != nullptr && Assign(*field, node)) {
        file_.origins[name] = Line(node);
      } else if (field != nullptr) {
        Problem(*field, Line(node), absl::StrCat(name, " must be ", field->TypeName()));
      } else {
        std::vector<std::string> known = Sections();
        known.insert(known.begin(), "name");
        Problem(Line(node), absl::StrCat("unknown key ", Quoted(name), " outside a section", DidYouMean(name, known)));
      }
    }
  } catch (const toml::parse_error& error) {
    read_ = false;
    const toml::source_index line = error.source().begin.line;
    Problem(absl::StrCat(path_, ":", line), absl::StrCat("not TOML: ", std::string(error.description()), WrittenOut(text, line)));
  }
}

void Loader::Override(const std::string& assignment) {
  const std::string where = absl::StrCat(kOverride, " ", assignment);
  const size_t equals = assignment.find('=');
  if (equals == std::string::npos) return Problem(where, "must have the form section.key=value");
  const std::string path = assignment.substr(0, equals), value = assignment.substr(equals + 1);
  JobField* field = Find(path);
  if (field == nullptr) {
    std::vector<std::string> known;
    for (const JobField& f : fields_) known.push_back(f.Path());
    const std::string asked = AskedInPlanning(path);
    return Problem(where, absl::StrCat("unknown key ", Quoted(path), asked.empty() ? DidYouMean(path, known) : asked));
  }
  const std::string digits = absl::StrReplaceAll(value, {{"_", ""}});
  int64_t whole = 0;  // the parsers write into their target even when they fail
  double number = 0;
  bool good = true;
  if (std::holds_alternative<std::string*>(field->value)) {
    field->SetText(value);
  } else if (auto* const* integer = std::get_if<int64_t*>(&field->value)) {
    if ((good = absl::SimpleAtoi(digits, &whole))) **integer = whole;
  } else if (auto* const* flag = std::get_if<bool*>(&field->value)) {
    if ((good = value == "true" || value == "false")) **flag = value == "true";
  } else {
    if ((good = absl::SimpleAtod(digits, &number))) *std::get<double*>(field->value) = number;
  }
  if (!good) return Problem(*field, where, absl::StrCat(path, " must be ", field->TypeName()));
  file_.origins[path] = kOverride;
}

// kGiven: those of --set alone; a job that was submitted has its own as they are.
absl::Status Loader::MakePathsAbsolute(Paths which) {
  std::error_code error;
  const std::filesystem::path here = std::filesystem::current_path(error);
  if (error) return FileError(error.value(), "find", "the current folder");
  const std::string home = HomeFolder();
  for (const char* path : {"data.path", "data.validation_path", "checkpoint.folder", "checkpoint.initial", "model.config"}) {
    if (which == Paths::kGiven && file_.origins[path] != kOverride) continue;
    const JobField& field = *Find(path);
    std::string& value = *std::get<std::string*>(field.value);
    const std::optional<std::string> here_path = HerePath(value), nodes_path = NodesPath(value);
    if (nodes_path) file_.on_nodes.insert(path);
    value = WithHome(here_path ? *here_path : nodes_path.value_or(value), home);
    const Patterns patterns = &value == &file_.config.model.config ? Patterns::kTake : Patterns::kRefuse;
    if (const std::string why = WhyNoPath(value, patterns); !why.empty()) {
      Problem(field, file_.origins[path], absl::StrCat(path, ": ", Quoted(value), " ", why));
      continue;
    }
    const bool initial = !here_path && !nodes_path && &value == &file_.config.checkpoint.initial;
    if (here_path && value.empty()) Problem(field, file_.origins[path], absl::StrCat(path, ": behind 'here:' a path must stand"));
    if (value.empty() || (initial && InitialIsJob(file_.config.checkpoint)) || ParseInput(value)) continue;
    const std::filesystem::path base = file_.origins[path] == kOverride ? here : (here / path_).parent_path();
    value = (base / value).lexically_normal().string();
    if (value.size() > 1 && value.back() == '/') value.pop_back();
    if (here_path) value = PathHere(value);
  }
  return absl::OkStatus();
}

// The model of a HuggingFace folder that the job begins with is that folder's. What cannot be seen here the nodes may see, and
// what else is wrong with the folder they say.
void Loader::ReadInitial() {
  const JobField& field = *Find("checkpoint.initial");
  const std::string& initial = file_.config.checkpoint.initial;
  if (initial.empty() || InitialIsJob(file_.config.checkpoint) || wrong_.contains(field.Path())) return;
  absl::StatusOr<InitialModel> held = ReadInitialModel(HerePath(initial).value_or(initial));
  const std::string& origin = file_.origins[field.Path()];
  if (absl::IsInvalidArgument(held.status())) {
    return Problem(field, origin, absl::StrCat(field.Path(), ": ", held.status().message()));
  }
  if (!held.ok() && !SaysModel()) unseen_ = absl::StrCat(field.Path(), ": ", initial, kUnseen);
  if (!held.ok() || held->config_json.empty()) return;
  if (SaysModel()) {
    initial_ = *std::move(held);
    return;
  }
  file_.config.model.config = held->config;
  file_.config.model.config_json = held->config_json;
  file_.origins["model.config"] = file_.origins["model.config_json"] = origin;
}

void Loader::CompareWithInitial() {
  if (initial_.config_json.empty()) return;
  const absl::StatusOr<ModelShape> said = ResolveModel(file_.config);
  if (!said.ok()) return;  // which is said
  const JobField& field = *Find("checkpoint.initial");
  const std::string why = WhyOtherModel(initial_, *said, file_.config.training.seq_len);
  if (!why.empty()) Problem(field, file_.origins[field.Path()], absl::StrCat(field.Path(), ": ", why));
}

void Loader::ReadModelConfig() {
  ModelSection& model = file_.config.model;
  if (model.config.empty() || !model.config_json.empty() || wrong_.contains("model.config")) return;
  absl::StatusOr<std::string> text = ReadSmallFile(model.config, kLargestFileBytes);
  if (!text.ok()) {
    unread_ = text.status();
    return Problem(*Find("model.config"), file_.origins["model.config"],
                   absl::StrCat("model.config: ", std::string(text.status().message()),
                                model.config.ends_with(".json") ? "" : kWantsConfigJson));
  }
  if (text->empty()) {
    return Problem(*Find("model.config"), file_.origins["model.config"],
                   absl::StrCat("model.config ", model.config, ": it is empty; download it again"));
  }
  model.config_json = *std::move(text);
  file_.origins["model.config_json"] = model.config;
}

void Loader::CheckRanges() {
  for (const JobField& field : fields_) {
    const std::string complaint = field.Complaint();
    if (!complaint.empty()) Problem(field, file_.origins[field.Path()], complaint);
  }
}

absl::StatusOr<JobFile> Loader::Finish(const JobCheck& check) {
  std::vector<std::string> more;
  if (read_) more = ProblemsBesideRanges(file_.config, wrong_.empty());
  if (read_ && check) {
    for (std::string& problem : check(file_.config)) more.push_back(std::move(problem));
  }
  for (const std::string& problem : more) {
    // What is wrong by itself was said, and what would be in its place is not known.
    const bool said =
        std::any_of(wrong_.begin(), wrong_.end(), [&](const std::string& path) { return problem.starts_with(path); });
    if (!said) Problem(OriginOf(problem), problem);
  }
  // What is wrong may be so of that model alone.
  if (!unseen_.empty() && !problems_.empty()) Problem(file_.origins["checkpoint.initial"], unseen_);
  std::stable_sort(problems_.begin(), problems_.end(),
                   [this](const std::string& a, const std::string& b) { return PlaceOf(a) < PlaceOf(b); });
  const std::string all = absl::StrJoin(problems_, "\n");
  if (problems_.size() == 1 && !unread_.ok()) return absl::Status(unread_.code(), all);
  if (!problems_.empty()) return absl::InvalidArgumentError(all);
  file_.notes = TrainingNotes(file_.config);
  if (!unseen_.empty()) file_.notes.push_back(unseen_);
  return file_;
}

}  // namespace

absl::StatusOr<JobFile> ParseJobFile(std::string_view text, const std::string& path, const std::vector<std::string>& overrides,
                                     const JobCheck& check) {
  Loader loader(path);
  loader.ReadText(text);
  for (const std::string& assignment : overrides) loader.Override(assignment);
  loader.CheckRanges();
  MOTLEY_RETURN_IF_ERROR(loader.MakePathsAbsolute());
  loader.ReadInitial();
  loader.ReadModelConfig();
  loader.CompareWithInitial();
  return loader.Finish(check);
}

absl::StatusOr<JobConfig> WithOverrides(const JobConfig& config, const std::vector<std::string>& overrides) {
  Loader loader("the job");
  loader.Begin(config);
  for (const std::string& assignment : overrides) loader.Override(assignment);
  loader.CheckRanges();
  MOTLEY_RETURN_IF_ERROR(loader.MakePathsAbsolute(Loader::Paths::kGiven));
  MOTLEY_ASSIGN_OR_RETURN(JobFile file, loader.Finish({}));
  return std::move(file.config);
}

absl::StatusOr<JobFile> LoadJobFile(const std::string& path, const std::vector<std::string>& overrides, const JobCheck& check) {
  MOTLEY_ASSIGN_OR_RETURN(const std::string text, ReadSmallFile(path, kLargestFileBytes));
  return ParseJobFile(text, path, overrides, check);
}

}  // namespace motley
