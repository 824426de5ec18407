#include "coordinator/client/connect_reason.h"

#include <errno.h>

#include <system_error>

namespace motley::client {
namespace {

enum class Of { kBoth, kSocket };

struct Reason {
  int error;
  Of of;
};

// What connect(2), tcp(7), ip(7) and unix(7) name, and what the making of a socket does.
constexpr Reason kReasons[] = {
    {ECONNREFUSED, Of::kBoth}, {ECONNRESET, Of::kBoth},      {ECONNABORTED, Of::kBoth},   {ETIMEDOUT, Of::kBoth},
    {EHOSTUNREACH, Of::kBoth}, {EHOSTDOWN, Of::kBoth},       {ENETUNREACH, Of::kBoth},    {ENETDOWN, Of::kBoth},
    {ENETRESET, Of::kBoth},    {ENONET, Of::kBoth},          {EADDRNOTAVAIL, Of::kBoth},  {EADDRINUSE, Of::kBoth},
    {EAFNOSUPPORT, Of::kBoth}, {EPROTONOSUPPORT, Of::kBoth}, {ENOPROTOOPT, Of::kBoth},    {EPROTO, Of::kBoth},
    {EOPNOTSUPP, Of::kBoth},   {EINVAL, Of::kBoth},          {EACCES, Of::kBoth},         {EPERM, Of::kBoth},
    {EPIPE, Of::kBoth},        {EAGAIN, Of::kBoth},          {EMFILE, Of::kBoth},         {ENFILE, Of::kBoth},
    {ENOBUFS, Of::kBoth},      {ENOMEM, Of::kBoth},          {ENOENT, Of::kSocket},       {ENOTDIR, Of::kSocket},
    {EPROTOTYPE, Of::kSocket}, {ELOOP, Of::kSocket},         {ENAMETOOLONG, Of::kSocket},
};

constexpr int kLastErrno = EHWPOISON;

// As gRPC writes it.
bool IsTextOf(int error, std::string_view why) { return why == std::generic_category().message(error); }

bool IsErrnoText(std::string_view why) {
  for (int error = 1; error <= kLastErrno; ++error) {
    if (IsTextOf(error, why)) return true;
  }
  return false;
}

}  // namespace

bool IsOfTheAddress(bool by_socket, std::string_view why) {
  for (const Reason& reason : kReasons) {
    if (IsTextOf(reason.error, why)) return by_socket || reason.of == Of::kBoth;
  }
  return !IsErrnoText(why);
}

}  // namespace motley::client
