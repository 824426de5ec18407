#include "common/base/logging.h"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/clean_text.h"
#include "common/base/count.h"
#include "common/base/line_queue.h"

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

constexpr size_t kMostWaitingBytes = 4 << 20;
constexpr std::string_view kAudit = "audit: ";

// To stderr by a queue: a log that nobody reads holds up nobody. What people did and what went wrong is dropped last.
class QueueSink : public spdlog::sinks::base_sink<std::mutex> {
 public:
  QueueSink(std::string component, std::unique_ptr<spdlog::formatter> formatter)
      : base_sink(formatter->clone()),
        queue_(STDERR_FILENO, kMostWaitingBytes,
               [component = std::move(component),
                formatter = std::shared_ptr<spdlog::formatter>(std::move(formatter))](int64_t dropped) {
                 const std::string text = absl::StrCat("nobody read the log for a while: ", Count(dropped, "line"),
                                                       " before this one ", dropped == 1 ? "is" : "are", " missing");
                 return Formatted(*formatter, {component, spdlog::level::warn, text});
               }) {}

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    const std::string_view text(message.payload.data(), message.payload.size());
    queue_.Add(Formatted(*formatter_, message), message.level >= spdlog::level::err || text.starts_with(kAudit));
  }
  // At the process's end, and before another sink takes its place.
  void flush_() override { queue_.Flush(absl::Seconds(1)); }

 private:
  static std::string Formatted(spdlog::formatter& formatter, const spdlog::details::log_msg& message) {
    spdlog::memory_buf_t buffer;
    formatter.format(message, buffer);
    return std::string(buffer.data(), buffer.size());
  }
  LineQueue queue_;
};

}  // namespace

void InitLogging(std::string_view component, LogLevel level) {
  auto formatter = std::make_unique<spdlog::pattern_formatter>();
  if (std::getenv("JOURNAL_STREAM") != nullptr) {
    formatter->add_flag<SyslogPriority>('*').set_pattern("%*%n: %v");
  } else {
    formatter->set_pattern("%Y-%m-%d %H:%M:%S.%e %L %n: %v");
  }
  auto logger = std::make_shared<spdlog::logger>(std::string(component),
                                                 std::make_shared<QueueSink>(std::string(component), std::move(formatter)));
  logger->set_level(ToSpdlog(level));
  spdlog::set_default_logger(std::move(logger));
}

void Log(LogLevel level, std::string_view message) {
  // As an argument, not as the format: messages may hold braces. They may also hold line ends, which must not make lines.
  spdlog::log(ToSpdlog(level), "{}", CleanLine(message));
}

void FlushLog() { spdlog::default_logger()->flush(); }

}  // namespace motley
