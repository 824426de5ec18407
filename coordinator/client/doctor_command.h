// motley doctor [--data PATH] [--folder FOLDER] [--job FILE] [--rates].
#pragma once

#include "coordinator/client/command.h"

namespace motley::client {

Action AddDoctor(CLI::App& app);

}  // namespace motley::client
