// What the terminal shows: how wide it is, and whether it takes colours and a line that is written again.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace motley::client {

// What is not a terminal gets whole values, line after line, and no colours.
struct Screen {
  size_t width = 0;        // columns; 0 = no limit
  size_t error_width = 0;  // of standard error, which may be another thing
  bool live = false;       // the last line may be written again
  bool colour = false;
};

// Of a file descriptor. NO_COLOR (no-color.org) and TERM=dumb are respected; nothing makes colours where there is no terminal.
Screen FindScreen(int descriptor);

// Columns that clean text takes: its code points.
size_t Columns(std::string_view text);
// At most so many columns, the last of them "..." where something is cut.
std::string Cut(std::string_view text, size_t columns);
// Lines longer than the width are broken at spaces; what follows is indented by `indent` beyond the line's own indentation.
// A word that is longer than a line stays whole. Width 0: nothing changes.
std::string Fold(std::string_view text, size_t width, size_t indent);

// The text in the colour of this state of a job, node or device; as it is where there are no colours or the state has none.
std::string Painted(const Screen& screen, std::string_view state, std::string text);

}  // namespace motley::client
