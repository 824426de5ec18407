// The files of coordinator/page/web, which CMake embeds (deploy/cmake/MotleyPage.cmake).
#pragma once

#include "absl/strings/string_view.h"

namespace motley::coordinator {

struct PageParts {
  absl::string_view html, style, script, charts_style, charts_script;  // charts: uPlot's files as published
};
const PageParts& EmbeddedPage();

}  // namespace motley::coordinator
