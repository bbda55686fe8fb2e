//===- Memory.cpp - Pages for arenas, scratch and code --------------------===//

#include "runtime/device/cpu/Memory.h"

#include <cerrno>
#include <cstring>
#include <system_error>

#include <sys/mman.h>

namespace charonia::cpu {

namespace {
constexpr uint64_t hugePage = uint64_t(1) << 21;
} // namespace

Pages::~Pages() {
  if (mapping)
    munmap(mapping, mapped);
}

Result<Pages> Pages::allocate(uint64_t size, const char *what) {
  Pages pages;
  if (size == 0)
    return pages;
  bool huge = size >= hugePage;
  uint64_t mapped = huge ? size + hugePage : size;
  void *mapping = MAP_FAILED;
  if (mapped >= size)
    mapping = mmap(nullptr, mapped, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED)
    return Status(StatusCode::OutOfMemory, "out of memory: cannot get " +
                                               std::to_string(size) +
                                               " bytes for " + what);
  pages.mapping = mapping;
  pages.mapped = mapped;
  pages.bytes = size;
  auto address = reinterpret_cast<uintptr_t>(mapping);
  if (huge) {
    address = (address + hugePage - 1) & ~(hugePage - 1);
    // A hint; without it all works, only slower.
    (void)madvise(reinterpret_cast<void *>(address), size, MADV_HUGEPAGE);
  }
  pages.start = reinterpret_cast<std::byte *>(address);
  return pages;
}

Result<Pages> Pages::executable(std::span<const std::byte> code,
                                const Check &check) {
  CHARONIA_ASSIGN_OR_RETURN(Pages pages, allocate(code.size(), "machine code"));
  if (code.empty())
    return pages;
  std::memcpy(pages.start, code.data(), code.size());
  CHARONIA_RETURN_IF_ERROR(check({pages.start, code.size()}));
  if (mprotect(pages.mapping, pages.mapped, PROT_READ | PROT_EXEC) != 0)
    return Status(StatusCode::Unsupported,
                  "this system does not let the engine's machine code run: " +
                      std::generic_category().message(errno));
  return pages;
}

} // namespace charonia::cpu
