// A program of the tarball (docs/use/packages.md). bin/NAME is this, without any library; it starts libexec/NAME with the C library
// in lib/, whatever the machine has.
//
// The loader, lib/ld-linux-x86-64.so.2, is mapped into this process instead of being executed: so /proc/self/exe stays bin/NAME,
// where the worker looks for its rank and for itself, and ps and nvidia-smi show the program's name. It gets the same words as if
// it had been called: ld-linux-x86-64.so.2 --library-path lib --argv0 NAME libexec/NAME ARGUMENT...
#include <asm/unistd.h>
#include <elf.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>

enum { kPage = 4096, kPath = 4096, kMostSegments = 32, kWordsBefore = 6, kStatus = 72 };  // EX_OSFILE

static long Call(long number, long a, long b, long c, long d, long e, long f) {
  register long r10 __asm__("r10") = d;
  register long r8 __asm__("r8") = e;
  register long r9 __asm__("r9") = f;
  long result;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
  return result;
}

static int Failed(long result) { return result < 0 && result > -kPage; }

static long Length(const char* text) {
  long length = 0;
  while (text[length] != '\0') ++length;
  return length;
}

static void Say(const char* text) { Call(__NR_write, 2, (long)text, Length(text), 0, 0, 0); }

__attribute__((noreturn)) static void Fail(const char* path, const char* why) {
  Say("motley: ");
  Say(path);
  Say(why);
  while (1) Call(__NR_exit_group, kStatus, 0, 0, 0, 0, 0);
}

static void Append(char* path, const char* text) {
  const long begin = Length(path), length = Length(text);
  if (begin + length >= kPath) Fail(path, " has too long a name; unpack the tarball elsewhere\n");
  for (long i = 0; i <= length; ++i) path[begin + i] = text[i];
}

// Cuts the last part; the part without its slash.
static char* CutName(char* path) {
  long slash = Length(path);
  while (slash > 0 && path[slash] != '/') --slash;
  path[slash] = '\0';
  return path + slash + 1;
}

struct Loader {
  uint64_t entry, headers, header_count;
};

static uint64_t Down(uint64_t address) { return address & ~(uint64_t)(kPage - 1); }
static uint64_t Up(uint64_t address) { return Down(address + kPage - 1); }

static void MapSegment(const char* path, int file, uint64_t base, const Elf64_Phdr* segment) {
  const int rights = (segment->p_flags & PF_R ? PROT_READ : 0) | (segment->p_flags & PF_W ? PROT_WRITE : 0) |
                     (segment->p_flags & PF_X ? PROT_EXEC : 0);
  const uint64_t begin = Down(base + segment->p_vaddr), end_of_file = base + segment->p_vaddr + segment->p_filesz;
  const uint64_t end = Up(base + segment->p_vaddr + segment->p_memsz);
  if (Failed(Call(__NR_mmap, (long)begin, (long)(end_of_file - begin), rights, MAP_PRIVATE | MAP_FIXED, file,
                  (long)Down(segment->p_offset)))) {
    Fail(path, " cannot be mapped; is its file system mounted noexec?\n");
  }
  if (segment->p_memsz == segment->p_filesz) return;
  for (uint64_t at = end_of_file; at < Up(end_of_file); ++at) *(volatile char*)at = 0;
  if (Up(end_of_file) < end && Failed(Call(__NR_mmap, (long)Up(end_of_file), (long)(end - Up(end_of_file)), rights,
                                           MAP_PRIVATE | MAP_FIXED | MAP_ANONYMOUS, -1, 0))) {
    Fail(path, " finds no memory\n");
  }
}

static struct Loader Map(const char* path) {
  Elf64_Ehdr header;
  Elf64_Phdr segments[kMostSegments];
  const int file = (int)Call(__NR_open, (long)path, O_RDONLY | O_CLOEXEC, 0, 0, 0, 0);
  if (file < 0) Fail(path, " cannot be opened; unpack the tarball whole and keep its folders together\n");
  const long size = Call(__NR_pread64, file, (long)&header, sizeof(header), 0, 0, 0);
  if (size != sizeof(header) || header.e_type != ET_DYN || header.e_phnum > kMostSegments ||
      Call(__NR_pread64, file, (long)segments, (long)(header.e_phnum * sizeof(Elf64_Phdr)), (long)header.e_phoff, 0, 0) !=
          (long)(header.e_phnum * sizeof(Elf64_Phdr))) {
    Fail(path, " is damaged; unpack the tarball anew\n");
  }
  uint64_t end = 0;
  for (int i = 0; i < header.e_phnum; ++i) {
    const uint64_t its = segments[i].p_vaddr + segments[i].p_memsz;
    if (segments[i].p_type == PT_LOAD && its > end) end = its;
  }
  // The whole range first, so that nothing else comes to lie in it.
  const long base = Call(__NR_mmap, 0, (long)Up(end), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (Failed(base)) Fail(path, " finds no memory\n");
  for (int i = 0; i < header.e_phnum; ++i) {
    if (segments[i].p_type == PT_LOAD) MapSegment(path, file, (uint64_t)base, &segments[i]);
  }
  Call(__NR_close, file, 0, 0, 0, 0, 0);
  return (struct Loader){base + header.e_entry, base + header.e_phoff, header.e_phnum};
}

// What the kernel would have told the loader, had it started that.
static void Introduce(const struct Loader* loader, Elf64_auxv_t* facts) {
  for (; facts->a_type != AT_NULL; ++facts) {
    if (facts->a_type == AT_PHDR) facts->a_un.a_val = loader->headers;
    if (facts->a_type == AT_PHNUM) facts->a_un.a_val = loader->header_count;
    if (facts->a_type == AT_PHENT) facts->a_un.a_val = sizeof(Elf64_Phdr);
    if (facts->a_type == AT_ENTRY) facts->a_un.a_val = loader->entry;
    if (facts->a_type == AT_BASE) facts->a_un.a_val = 0;
  }
}

// `stack` is as the kernel left it: the number of arguments, they and a null, the environment and a null, facts and a null.
__attribute__((noreturn, used)) void Launch(uint64_t* stack) {
  char folder[kPath], program[kPath], libraries[kPath], path[kPath];
  program[0] = libraries[0] = path[0] = '\0';
  const long length = Call(__NR_readlink, (long)"/proc/self/exe", (long)folder, kPath - 1, 0, 0, 0);
  if (length <= 0) Fail("/proc/self/exe", " cannot be read; is /proc mounted?\n");
  folder[length] = '\0';
  const char* const name = CutName(folder);
  CutName(folder);  // bin
  Append(program, folder);
  Append(program, "/libexec/");
  Append(program, name);
  Append(libraries, folder);
  Append(libraries, "/lib");
  Append(path, libraries);
  Append(path, "/ld-linux-x86-64.so.2");
  const struct Loader loader = Map(path);

  const uint64_t count = stack[0];
  uint64_t* facts = stack + 1 + count + 1;
  while (*facts != 0) ++facts;
  ++facts;
  Introduce(&loader, (Elf64_auxv_t*)facts);
  uint64_t end = 0;
  while (facts[end] != AT_NULL) end += 2;
  const uint64_t words = (uint64_t)(facts - stack) + end + 2, own = count > 0 ? 1 : 0;  // argv[0], which may be missing
  const uint64_t total = words + kWordsBefore - own;
  __attribute__((aligned(16))) uint64_t made[total + total % 2];
  made[0] = count + kWordsBefore - own;
  made[1] = (uint64_t)path;
  made[2] = (uint64_t)"--library-path";
  made[3] = (uint64_t)libraries;
  made[4] = (uint64_t)"--argv0";
  made[5] = own ? stack[1] : (uint64_t)name;
  made[6] = (uint64_t)program;
  for (uint64_t i = 1 + own; i < words; ++i) made[i + kWordsBefore - own] = stack[i];
  __asm__ volatile("mov %0, %%rsp\n xor %%edx, %%edx\n jmp *%1" : : "D"(made), "S"(loader.entry) : "memory", "rdx");
  __builtin_unreachable();
}

__asm__(
    ".globl _start\n"
    "_start:\n"
    "  xor %ebp, %ebp\n"
    "  mov %rsp, %rdi\n"
    "  and $-16, %rsp\n"
    "  call Launch\n");
