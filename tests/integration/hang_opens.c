/* Preloaded into a daemon: whatever asks for a path with HANG_OPENS in it never comes back, as on a share whose server is gone. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

static void hang(const char* path) {
  const char* part = getenv("HANG_OPENS");
  if (path == NULL || part == NULL || strstr(path, part) == NULL) return;
  for (;;) pause();
}

static mode_t mode_of(int flags, va_list arguments) { return (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(arguments, mode_t) : 0; }

#define OPEN(NAME)                                                            \
  int NAME(const char* path, int flags, ...) {                                \
    va_list arguments;                                                        \
    va_start(arguments, flags);                                               \
    const mode_t mode = mode_of(flags, arguments);                            \
    va_end(arguments);                                                        \
    hang(path);                                                               \
    return ((int (*)(const char*, int, ...))dlsym(RTLD_NEXT, #NAME))(path, flags, mode); \
  }
#define OPENAT(NAME)                                                          \
  int NAME(int folder, const char* path, int flags, ...) {                    \
    va_list arguments;                                                        \
    va_start(arguments, flags);                                               \
    const mode_t mode = mode_of(flags, arguments);                            \
    va_end(arguments);                                                        \
    hang(path);                                                               \
    return ((int (*)(int, const char*, int, ...))dlsym(RTLD_NEXT, #NAME))(folder, path, flags, mode); \
  }
OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)

DIR* opendir(const char* path) {
  hang(path);
  return ((DIR * (*)(const char*)) dlsym(RTLD_NEXT, "opendir"))(path);
}

int stat(const char* path, struct stat* to) {
  hang(path);
  return ((int (*)(const char*, struct stat*))dlsym(RTLD_NEXT, "stat"))(path, to);
}
