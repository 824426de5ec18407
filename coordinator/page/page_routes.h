// What browsers are answered: the page for anybody, its data for those with the key.
#pragma once

#include <string>

#include "common/metrics/text_server.h"
#include "coordinator/page/page_board.h"

namespace motley::coordinator {

// For the server of metrics. `board` must outlive it.
TextRoute PageRoutes(PageBoard& board, std::string key);

}  // namespace motley::coordinator
