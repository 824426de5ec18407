// Logging for the daemons: spdlog behind one function, so that no header shows it (torch brings another fmt).
#pragma once

#include <string_view>

namespace motley {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

// Once in main. `component` stands in every line; under systemd (JOURNAL_STREAM) lines carry priority prefixes and no time. Lines
// go to stderr by a queue of 4 MiB, so that nobody waits for who reads them; when it is full the oldest are dropped and counted,
// "audit:" lines and errors last.
void InitLogging(std::string_view component, LogLevel level);
// One line, whatever the message holds (common/base/clean_text.h).
void Log(LogLevel level, std::string_view message);
// Until what was logged is written, at most a second: before _exit.
void FlushLog();
inline void LogInfo(std::string_view message) { Log(LogLevel::kInfo, message); }
inline void LogWarning(std::string_view message) { Log(LogLevel::kWarning, message); }
inline void LogError(std::string_view message) { Log(LogLevel::kError, message); }

}  // namespace motley
