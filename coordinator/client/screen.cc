#include "coordinator/client/screen.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "absl/strings/str_cat.h"

namespace motley::client {
namespace {

constexpr size_t kUsualWidth = 80;
constexpr size_t kNarrowest = 40;  // less is no terminal that a person reads

// Well, being prepared, not in use, gone wrong.
constexpr char kGreen[] = "\x1b[32m", kCyan[] = "\x1b[36m", kYellow[] = "\x1b[33m", kRed[] = "\x1b[31m", kPlain[] = "\x1b[0m";

struct StateColour {
  std::string_view state;
  const char* colour;
};
constexpr StateColour kColours[] = {
    {"running", kGreen},  {"succeeded", kGreen}, {"ready", kGreen},   {"training", kGreen},  {"queued", kCyan},
    {"profiling", kCyan}, {"planning", kCyan},   {"starting", kCyan}, {"probing", kCyan},    {"replanning", kYellow},
    {"waiting", kYellow}, {"stopped", kYellow},  {"held", kYellow},   {"draining", kYellow}, {"drained", kYellow},
    {"leaving", kYellow}, {"failed", kRed},      {"lost", kRed},      {"refused", kRed},     {"ok", kGreen},
    {"warning", kYellow}, {"wrong", kRed},       {"left", kYellow},
};

bool IsContinuation(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

// One line without its end.
void FoldLine(std::string_view line, size_t width, size_t indent, std::string* out) {
  const size_t own = std::min(line.find_first_not_of(' '), line.size());
  std::string margin;
  while (Columns(line) + margin.size() > width) {
    const size_t room = width - std::min(width, margin.size());
    // The last space that fits; else the first one behind.
    size_t columns = 0, cut = std::string_view::npos;
    for (size_t i = 0; i < line.size(); ++i) {
      if (line[i] == ' ' && i > own * margin.empty() && (columns <= room || cut == std::string_view::npos)) cut = i;
      columns += !IsContinuation(line[i]);
      if (columns > room && cut != std::string_view::npos) break;
    }
    if (cut == std::string_view::npos) break;
    absl::StrAppend(out, margin, std::string(line.substr(0, line.find_last_not_of(' ', cut) + 1)), "\n");
    const size_t next = line.find_first_not_of(' ', cut);
    if (next == std::string_view::npos) return;
    line = line.substr(next);
    margin.assign(own + indent, ' ');
  }
  absl::StrAppend(out, margin, std::string(line));
}

}  // namespace

Screen FindScreen(int descriptor) {
  Screen screen;
  if (isatty(descriptor) == 0) return screen;
  winsize size{};
  screen.width = ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kUsualWidth;
  screen.width = std::max(screen.width, kNarrowest);
  const char* term = std::getenv("TERM");
  screen.live = term != nullptr && *term != '\0' && std::string_view(term) != "dumb";
  const char* no_colour = std::getenv("NO_COLOR");
  screen.colour = screen.live && (no_colour == nullptr || *no_colour == '\0');
  return screen;
}

size_t Columns(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) { return !IsContinuation(c); }));
}

std::string Cut(std::string_view text, size_t columns) {
  if (Columns(text) <= columns) return std::string(text);
  const size_t dots = std::min<size_t>(columns, 3);
  size_t kept = 0, end = 0;
  while (end < text.size() && (kept < columns - dots || IsContinuation(text[end]))) kept += !IsContinuation(text[end++]);
  return std::string(text.substr(0, end)) + std::string(dots, '.');
}

std::string Fold(std::string_view text, size_t width, size_t indent) {
  if (width == 0) return std::string(text);
  std::string out;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    FoldLine(text.substr(begin, end - begin), width, indent, &out);
    if (end < text.size()) out += '\n';
    begin = end + 1;
  }
  return out;
}

std::string Painted(const Screen& screen, std::string_view state, std::string text) {
  if (!screen.colour) return text;
  for (const StateColour& c : kColours) {
    if (c.state == state) return absl::StrCat(c.colour, text, kPlain);
  }
  return text;
}

}  // namespace motley::client
