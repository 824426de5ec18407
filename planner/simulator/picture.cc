#include "planner/simulator/picture.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "planner/simulator/lane_blocks.h"
#include "planner/util/quantity_text.h"

namespace motley::planner {
namespace {

constexpr int kMargin = 24, kNames = 235, kBusy = 64;  // pixels: around, names at the left, part of time busy at the right
constexpr int kComputeHeight = 16, kLaneHeight = 7, kLaneGap = 2, kActorGap = 7, kHeadingHeight = 20, kIndent = 10;
constexpr size_t kLongestName = 34;  // characters
constexpr double kNamedBlock = 4;    // pixels from which a block says what it is
constexpr double kDigit = 5.6;       // width of one in a block's label

struct Style {
  TaskKind kind;
  const char* colour;
  const char* name;
};
// In the order of the legend, which is the kinds' own. Work in strong colours, its variants lighter; communication in greens and
// reds.
constexpr std::array<Style, kNumTaskKinds> kStyles = {{{TaskKind::kForward, "#4c78a8", "forward"},
                                                       {TaskKind::kRecompute, "#9ecae9", "recompute"},
                                                       {TaskKind::kBackward, "#f58518", "backward"},
                                                       {TaskKind::kBackwardInput, "#e6762f", "backward, input"},
                                                       {TaskKind::kBackwardWeight, "#ffbf79", "backward, weights"},
                                                       {TaskKind::kOptimizer, "#b279a2", "optimizer"},
                                                       {TaskKind::kGather, "#54a24b", "gather"},
                                                       {TaskKind::kReduceScatter, "#a3cf8b", "reduce-scatter"},
                                                       {TaskKind::kAllReduce, "#439894", "all-reduce"},
                                                       {TaskKind::kScalars, "#83bcb6", "scalars"},
                                                       {TaskKind::kSend, "#d1495b", "send"},
                                                       {TaskKind::kOffload, "#8c6d31", "offload"},
                                                       {TaskKind::kPrefetch, "#eeca3b", "prefetch"},
                                                       {TaskKind::kWait, "#c7c7c7", "wait"}}};
static_assert(std::ranges::all_of(kStyles, [](const Style& s) { return &s - kStyles.data() == static_cast<int>(s.kind); }));

// A name as XML text: control characters, which XML forbids, become question marks.
std::string Escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
    }
  }
  return out;
}

// The first characters of a UTF-8 text.
std::string Shortened(const std::string& text, size_t most) {
  size_t characters = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if ((text[i] & 0xc0) == 0x80) continue;  // inside a character
    if (++characters > most) return text.substr(0, i) + "…";
  }
  return text;
}

// Actors to draw, ascending: all, or of every stage in turn the next until there are enough.
std::vector<size_t> ChooseActors(const StepGraph& graph, size_t most) {
  std::map<std::pair<int, int>, std::vector<size_t>> stages;
  for (size_t a = 0; a < graph.actors.size(); ++a) stages[{graph.actors[a].pipeline, graph.actors[a].stage}].push_back(a);
  std::vector<size_t> chosen;
  for (size_t turn = 0; chosen.size() < std::min(most, graph.actors.size()); ++turn) {
    for (const auto& [stage, actors] : stages) {
      if (turn < actors.size() && chosen.size() < most) chosen.push_back(actors[turn]);
    }
  }
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

struct Axis {
  double step_seconds = 1, unit_seconds = 1;
  const char* unit = "s";
  int decimals = 0;
};
// About ten ticks at 1, 2 or 5 times a power of ten.
Axis MakeAxis(double seconds) {
  Axis axis;
  const double power = std::pow(10, std::floor(std::log10(seconds / 10)));
  for (const double times : {1.0, 2.0, 5.0, 10.0}) {
    axis.step_seconds = power * times;
    if (seconds / axis.step_seconds <= 10) break;
  }
  if (seconds < 1) axis = {axis.step_seconds, 1e-3, "ms", 0};
  if (seconds < 1e-3) axis = {axis.step_seconds, 1e-6, "µs", 0};
  axis.decimals = std::max(0, static_cast<int>(-std::floor(std::log10(axis.step_seconds / axis.unit_seconds) + 1e-9)));
  return axis;
}

class Drawing {
 public:
  Drawing(const StepGraph& graph, const Timeline& timeline, const PictureOptions& options)
      : graph_(graph),
        timeline_(timeline),
        options_(options),
        left_(kMargin + kNames),
        width_(std::max(200, options.width - 2 * kMargin - kNames - kBusy)),
        actors_(ChooseActors(graph, static_cast<size_t>(std::max(1, options.most_actors)))),
        lane_tasks_(graph.actors.size() * kNumLanes) {
    for (size_t t = 0; t < graph.tasks.size(); ++t) {
      for (const int32_t lane : graph.tasks[t].lanes) lane_tasks_[lane].push_back(static_cast<int32_t>(t));
      if (!graph.tasks[t].lanes.empty()) kinds_[static_cast<size_t>(graph.tasks[t].kind)] = true;
    }
    for (const Actor& actor : graph.actors) {
      stages_differ_ |= actor.pipeline != graph.actors[0].pipeline || actor.stage != graph.actors[0].stage;
    }
  }

  std::string Draw() {
    y_ = kMargin + 16;
    DrawTitle();
    DrawLegend();
    const int top = y_ += 26;
    DrawActors();
    const int bottom = y_;
    if (actors_.size() < graph_.actors.size()) {
      y_ += 18;
      Text(left_, y_, "note", absl::StrCat(graph_.actors.size() - actors_.size(), " more actors are not shown"));
    }
    const int total = width_ + left_ + kBusy + kMargin, height = y_ + kMargin;
    std::string grid;
    std::swap(grid, body_);
    DrawAxis(top, bottom);  // under the blocks
    return absl::StrCat(Head(total, height), body_, grid, "</svg>\n");
  }

 private:
  std::string Head(int width, int height) const {
    std::string head = absl::StrFormat(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" "
        "font-family=\"Inter, 'Helvetica Neue', Helvetica, Arial, 'DejaVu Sans', sans-serif\">\n<style>\n"
        ".title{font-size:18px;font-weight:600;fill:#1f2933}.name{font-size:12px;fill:#1f2933}.lane{font-size:8px;fill:#7b8794}"
        ".note{font-size:11px;fill:#52606d}.head{font-size:11px;font-weight:600;fill:#52606d}"
        ".in{font-size:9px;fill:#fff}.idle{fill:#e8ebef}.grid{stroke:#d5dae1;stroke-width:1}\n",
        width, height, width, height);
    for (const Style& style : kStyles) {
      if (!kinds_[static_cast<size_t>(style.kind)]) continue;
      absl::StrAppend(&head, ".k", static_cast<int>(style.kind), "{fill:", style.colour, "}");
    }
    return absl::StrCat(head, "\n</style>\n<rect width=\"", width, "\" height=\"", height, "\" fill=\"#fff\"/>\n");
  }

  void Text(double x, double y, const char* style, std::string_view text, const char* anchor = "start") {
    absl::StrAppendFormat(&body_, "<text x=\"%.6g\" y=\"%.6g\" class=\"%s\"", x, y, style);
    if (anchor != std::string_view("start")) absl::StrAppend(&body_, " text-anchor=\"", anchor, "\"");
    absl::StrAppend(&body_, ">", Escaped(text), "</text>\n");
  }

  void DrawTitle() {
    const std::string seconds = absl::StrCat(SecondsText(ToSeconds(timeline_.end)), " a step");
    Text(kMargin, y_, "title", options_.title.empty() ? seconds : absl::StrCat(options_.title, ": ", seconds));
    y_ += 26;
  }

  void DrawLegend() {
    double x = kMargin;
    const auto entry = [&](const std::string& style, std::string_view name) {
      const double wide = 22 + 6.2 * static_cast<double>(name.size());
      if (x + wide > left_ + width_ + kBusy) {
        x = kMargin;
        y_ += 18;
      }
      absl::StrAppendFormat(&body_, "<rect x=\"%.6g\" y=\"%d\" width=\"12\" height=\"12\" rx=\"2\" class=\"%s\"/>", x, y_ - 10,
                            style);
      Text(x + 17, y_, "note", name);
      x += wide + 10;
    };
    for (const Style& style : kStyles) {
      if (kinds_[static_cast<size_t>(style.kind)]) entry(absl::StrCat("k", static_cast<int>(style.kind)), style.name);
    }
    entry("idle", "idle");
  }

  void DrawAxis(int top, int bottom) {
    if (timeline_.end == 0) return;
    const double seconds = ToSeconds(timeline_.end);
    const Axis axis = MakeAxis(seconds);
    for (int i = 0; i * axis.step_seconds <= seconds * (1 + 1e-9); ++i) {
      const double x = left_ + width_ * i * axis.step_seconds / seconds;
      absl::StrAppendFormat(&body_, "<path class=\"grid\" d=\"M%.6g %dV%d\"/>", x, top - 4, bottom);
      const double value = i * axis.step_seconds / axis.unit_seconds;
      Text(x, top - 9, "note", absl::StrFormat("%.*f %s", axis.decimals, value, axis.unit), "middle");
    }
    Text(left_ + width_ + kBusy, top - 9, "note", "busy", "end");
  }

  void DrawActors() {
    std::pair<int, int> stage{-1, -1};
    std::string unit;
    for (const size_t a : actors_) {
      const Actor& actor = graph_.actors[a];
      if (stages_differ_ && stage != std::pair{actor.pipeline, actor.stage}) {
        stage = {actor.pipeline, actor.stage};
        DrawHeading(0, "head", absl::StrCat("pipeline ", actor.pipeline, ", stage ", actor.stage));
      }
      if (!actor.unit.empty() && actor.unit != unit) DrawHeading(Indent(), "note", absl::StrCat("unit ", actor.unit));
      unit = actor.unit;
      DrawActor(a);
    }
  }

  void DrawHeading(int indent, const char* style, const std::string& text) {
    Text(kMargin + indent, y_ + kHeadingHeight - 7, style, text);
    y_ += kHeadingHeight;
  }
  // Of what stands under its stage.
  int Indent() const { return stages_differ_ ? kIndent : 0; }

  void DrawActor(size_t a) {
    const Actor& actor = graph_.actors[a];
    Text(kMargin + Indent() + (actor.unit.empty() ? 0 : kIndent), y_ + kComputeHeight - 4, "name",
         Shortened(actor.name, kLongestName));
    const Picoseconds busy = timeline_.busy[a * kNumLanes];
    if (timeline_.end > 0) {
      Text(left_ + width_ + kBusy, y_ + kComputeHeight - 4, "name",
           absl::StrFormat("%.0f %%", 100 * static_cast<double>(busy) / static_cast<double>(timeline_.end)), "end");
    }
    for (int lane = 0; lane < kNumLanes; ++lane) {
      const std::vector<int32_t>& tasks = lane_tasks_[a * kNumLanes + lane];
      const bool compute = lane == static_cast<int>(Lane::kCompute);
      if (tasks.empty() && !compute) continue;
      if (!compute) Text(left_ - 6, y_ + kLaneHeight, "lane", LaneName(static_cast<Lane>(lane)), "end");
      DrawLane(tasks, compute ? kComputeHeight : kLaneHeight);
      y_ += (compute ? kComputeHeight : kLaneHeight) + kLaneGap;
    }
    y_ += kActorGap;
  }

  // Small blocks of a kind are one path; large ones say what they are when the pointer rests on them.
  void DrawLane(const std::vector<int32_t>& tasks, int height) {
    absl::StrAppendFormat(&body_, "<rect class=\"idle\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/>\n", left_, y_, width_,
                          height);
    std::array<std::string, kNumTaskKinds> paths;
    for (const LaneBlock& block : BlocksOfLane(graph_, timeline_, tasks, width_)) {
      const double x = left_ + block.begin, wide = block.end - block.begin;
      if (block.task >= 0 && wide >= kNamedBlock) {
        DrawTask(block.task, x, wide, height);
      } else {
        absl::StrAppendFormat(&paths[static_cast<size_t>(block.kind)], "M%.2f %dh%.2fv%dh-%.2fz", x, y_, wide, height, wide);
      }
    }
    for (size_t k = 0; k < paths.size(); ++k) {
      if (!paths[k].empty()) absl::StrAppend(&body_, "<path class=\"k", k, "\" d=\"", paths[k], "\"/>\n");
    }
  }

  void DrawTask(int32_t index, double x, double wide, int height) {
    const Task& task = graph_.tasks[index];
    const TaskSpan& span = timeline_.spans[index];
    // A hair of the ground stays between neighbours.
    absl::StrAppendFormat(
        &body_, "<rect class=\"k%d\" x=\"%.2f\" y=\"%d\" width=\"%.2f\" height=\"%d\"><title>%s: %s at %s</title></rect>\n",
        static_cast<int>(task.kind), x, y_, wide - 0.6, height, TaskLabel(task), SecondsText(ToSeconds(span.end - span.begin)),
        SecondsText(ToSeconds(span.begin)));
    if (height < kComputeHeight || task.unit < 0) return;
    std::string label = absl::StrCat(task.unit);
    if (task.microbatch >= 0) absl::StrAppend(&label, ".", task.microbatch);
    if (wide > kDigit * static_cast<double>(label.size()) + 4) Text(x + wide / 2, y_ + height - 5, "in", label, "middle");
  }

  const StepGraph& graph_;
  const Timeline& timeline_;
  const PictureOptions& options_;
  const int left_, width_;
  const std::vector<size_t> actors_;
  std::vector<std::vector<int32_t>> lane_tasks_;
  std::array<bool, kNumTaskKinds> kinds_{};  // that occur
  bool stages_differ_ = false;
  int y_ = 0;
  std::string body_;
};

}  // namespace

std::string SvgTimeline(const StepGraph& graph, const Timeline& timeline, const PictureOptions& options) {
  return Drawing(graph, timeline, options).Draw();
}

}  // namespace motley::planner
