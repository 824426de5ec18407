#include "coordinator/page/page_board.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "coordinator/page/web/page_document.h"

namespace motley::coordinator {
namespace {

// Names of rows that are gone, which pages with an older cursor still have to be told.
constexpr size_t kMostGone = 1000;
// Pages have the newest cursor or the one before it; others who ask are printed for one by one.
constexpr size_t kMostPrinted = 8;

}  // namespace

void PageBoard::ForgetUnread() {
  const absl::Duration now = clock_.Now();
  std::erase_if(topics_, [now](const auto& topic) { return now - topic.second.read > kLookedAt; });
}

absl::StatusOr<std::shared_ptr<const std::string>> PageBoard::Read(const std::string& name, int64_t after,
                                                                   absl::string_view life) {
  absl::MutexLock lock(&mutex_);
  if (!topics_.contains(name) && topics_.size() >= kMostTopics) {
    ForgetUnread();
    if (topics_.size() >= kMostTopics) {
      return absl::ResourceExhaustedError(absl::StrCat(kMostTopics, " other jobs are looked at; close a page"));
    }
  }
  Topic& topic = topics_[name];
  if (topic.number == 0) topic.number = ++newest_;
  topic.read = clock_.Now();
  if (topic.cursor == 0) return nullptr;
  if (life != life_ || after < topic.complete || after > topic.cursor) after = 0;
  if (const auto printed = topic.printed.find(after); printed != topic.printed.end()) return printed->second;
  if (topic.printed.size() >= kMostPrinted) topic.printed.clear();
  return topic.printed[after] = Print(topic, after);
}

std::shared_ptr<const std::string> PageBoard::Print(const Topic& topic, int64_t after) const {
  PageDocument document;
  document.from = after;
  document.cursor = topic.cursor;
  for (const auto& [name, row] : topic.rows) {
    if (row.cursor <= after) continue;
    if (!row.json.empty()) {
      document.rows.emplace(name, row.json);
    } else if (after > 0) {
      document.gone.push_back(name);
    }
  }
  if (after == 0) document.history = topic.history;
  for (const auto& [name, list] : topic.lists) {
    for (const Entry& entry : list) {
      if (entry.cursor > after) document.lists[name].push_back(entry.json);
    }
  }
  return std::make_shared<const std::string>(PrintPage(document, life_, page_));
}

std::vector<PageTopic> PageBoard::LookedAt() {
  absl::MutexLock lock(&mutex_);
  ForgetUnread();
  std::vector<PageTopic> topics;
  for (const auto& [name, topic] : topics_) topics.push_back({name, topic.number});
  return topics;
}

bool PageBoard::TakeRows(PageNews& news, int64_t cursor, Topic& topic) {
  bool changed = false;
  for (auto& [key, row] : topic.rows) {
    if (row.json.empty() || news.rows.contains(key) || news.same.contains(key)) continue;
    row = {cursor, ""};
    changed = true;
  }
  for (auto& [key, json] : news.rows) {
    Row& row = topic.rows[key];
    if (row.json == json) continue;
    row = {cursor, std::move(json)};
    changed = true;
  }
  return changed;
}

void PageBoard::Append(std::vector<std::string> news, std::deque<Entry>* to, Topic& topic) {
  for (std::string& json : news) to->push_back({topic.cursor, std::move(json)});
  while (to->size() > kMostEntries) {
    topic.complete = std::max(topic.complete, to->front().cursor);
    to->pop_front();
  }
}

void PageBoard::ForgetGone(Topic& topic) {
  const auto is_gone = [](const auto& row) { return row.second.json.empty(); };
  if (std::count_if(topic.rows.begin(), topic.rows.end(), is_gone) <= static_cast<std::ptrdiff_t>(kMostGone)) return;
  std::erase_if(topic.rows, is_gone);
  topic.complete = topic.cursor;
}

void PageBoard::Publish(const PageTopic& which, PageNews news) {
  absl::MutexLock lock(&mutex_);
  const auto found = topics_.find(which.name);
  if (found == topics_.end() || found->second.number != which.number) return;  // nobody looks any more
  Topic& topic = found->second;
  const int64_t next = newest_ + 1;
  const bool begins = topic.cursor == 0 || news.anew;
  if (begins) {
    topic.rows.clear();
    topic.lists.clear();
    topic.history.clear();
  }
  bool changed = TakeRows(news, next, topic) || begins;
  for (const auto& [name, entries] : news.lists) changed |= !entries.empty();
  if (!news.history.empty()) {
    topic.history = std::move(news.history);
    topic.printed.erase(0);
  }
  if (!changed) return;
  topic.cursor = newest_ = next;
  if (begins) topic.complete = next;
  topic.printed.clear();
  for (auto& [name, entries] : news.lists) Append(std::move(entries), &topic.lists[name], topic);
  ForgetGone(topic);
}

}  // namespace motley::coordinator
