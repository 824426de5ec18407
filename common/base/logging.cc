#include "common/base/logging.h"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <cstdlib>
#include <memory>
#include <string>

#include "common/base/clean_text.h"

namespace motley {
namespace {

spdlog::level::level_enum ToSpdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
  }
  return spdlog::level::info;
}

// journald reads "<N>" at the start of a line as the syslog priority.
class SyslogPriority : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&, spdlog::memory_buf_t& out) override {
    const char digit = message.level >= spdlog::level::err    ? '3'
                       : message.level == spdlog::level::warn ? '4'
                       : message.level == spdlog::level::info ? '6'
                                                              : '7';
    const char prefix[] = {'<', digit, '>'};
    out.append(prefix, prefix + sizeof(prefix));
  }
  std::unique_ptr<custom_flag_formatter> clone() const override { return std::make_unique<SyslogPriority>(); }
};

}  // namespace

void InitLogging(std::string_view component, LogLevel level) {
  auto logger = std::make_shared<spdlog::logger>(std::string(component), std::make_shared<spdlog::sinks::stderr_sink_mt>());
  auto formatter = std::make_unique<spdlog::pattern_formatter>();
  if (std::getenv("JOURNAL_STREAM") != nullptr) {
    formatter->add_flag<SyslogPriority>('*').set_pattern("%*%n: %v");
  } else {
    formatter->set_pattern("%Y-%m-%d %H:%M:%S.%e %L %n: %v");
  }
  logger->set_formatter(std::move(formatter));
  logger->set_level(ToSpdlog(level));
  logger->flush_on(spdlog::level::debug);
  spdlog::set_default_logger(std::move(logger));
}

void Log(LogLevel level, std::string_view message) {
  // As an argument, not as the format: messages may hold braces. They may also hold line ends, which must not make lines.
  spdlog::log(ToSpdlog(level), "{}", CleanLine(message));
}

}  // namespace motley
