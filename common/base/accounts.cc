#include "common/base/accounts.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <system_error>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/clean_text.h"

namespace motley {
namespace {

constexpr size_t kMostAnswerBytes = 1 << 20;
constexpr uint32_t kNoUid = ~uint32_t{0};  // what chown and its like take for "as it is"

// `ask(buffer, size)`: the error of one of getpwuid_r and its like, which ask for a larger buffer by ERANGE. The last error.
template <typename Ask>
int AskDatabase(Ask ask) {
  std::vector<char> buffer(1 << 12);
  int error = 0;
  while ((error = ask(buffer.data(), buffer.size())) == ERANGE && buffer.size() < kMostAnswerBytes) {
    buffer.resize(4 * buffer.size());
  }
  return error;
}

// All that systems answer where there is no such entry (getpwnam(3)).
bool SaysThereIsNone(int error) {
  return error == 0 || error == ENOENT || error == ESRCH || error == EBADF || error == EPERM || error == EWOULDBLOCK;
}

// `find(entry, buffer, size, found)` is getpwuid_r or getpwnam_r.
template <typename Find>
absl::StatusOr<Account> Ask(const std::string& what, Find find) {
  std::optional<Account> account;
  const int error = AskDatabase([&](char* buffer, size_t size) {
    passwd entry = {};
    passwd* found = nullptr;
    const int failed = find(&entry, buffer, size, &found);
    if (found != nullptr) account = Account{entry.pw_uid, entry.pw_gid, entry.pw_name};
    return failed;
  });
  if (account) return *std::move(account);
  if (SaysThereIsNone(error)) return absl::NotFoundError(absl::StrCat("there is no account ", what, " on this machine"));
  return absl::UnavailableError(
      absl::StrCat("the user database does not answer for ", what, ": ", std::generic_category().message(error)));
}

}  // namespace

absl::StatusOr<Account> AccountOf(uint32_t uid) {
  return Ask(absl::StrCat(uid), [uid](passwd* entry, char* buffer, size_t size, passwd** found) {
    return ::getpwuid_r(uid, entry, buffer, size, found);
  });
}

absl::StatusOr<Account> AccountNamed(const std::string& name) {
  if (name.find('\0') != std::string::npos) return absl::NotFoundError(absl::StrCat("no account is called ", Quoted(name)));
  return Ask(Quoted(name), [&name](passwd* entry, char* buffer, size_t size, passwd** found) {
    return ::getpwnam_r(name.c_str(), entry, buffer, size, found);
  });
}

absl::StatusOr<uint32_t> UidOfAccount(const std::string& name_or_number) {
  const bool digits = !name_or_number.empty() &&
                      std::all_of(name_or_number.begin(), name_or_number.end(), [](char c) { return absl::ascii_isdigit(c); });
  uint32_t number = 0;
  if (digits && absl::SimpleAtoi(name_or_number, &number) && number != kNoUid) return number;
  const absl::StatusOr<Account> account = AccountNamed(name_or_number);
  if (!account.ok()) return account.status();
  return account->uid;
}

bool IsInGroup(const Account& account, const char* group_name) {
  std::optional<gid_t> wanted;
  AskDatabase([&](char* buffer, size_t size) {
    group entry = {};
    group* found = nullptr;
    const int error = ::getgrnam_r(group_name, &entry, buffer, size, &found);
    if (found != nullptr) wanted = entry.gr_gid;
    return error;
  });
  if (!wanted) return false;
  int count = 64;
  std::vector<gid_t> groups(static_cast<size_t>(count));
  while (::getgrouplist(account.name.c_str(), account.group, groups.data(), &count) < 0 &&
         count > static_cast<int>(groups.size())) {
    groups.resize(static_cast<size_t>(count));
  }
  groups.resize(std::min(groups.size(), static_cast<size_t>(std::max(count, 0))));
  return std::find(groups.begin(), groups.end(), *wanted) != groups.end();
}

}  // namespace motley
