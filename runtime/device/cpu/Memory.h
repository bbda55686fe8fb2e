//===- Memory.h - Pages for arenas, scratch and code ------------*- C++ -*-===//
#ifndef CHARONIA_RUNTIME_DEVICE_CPU_MEMORY_H
#define CHARONIA_RUNTIME_DEVICE_CPU_MEMORY_H

#include "charonia/status.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>

namespace charonia::cpu {

/// Zeroed pages that start at a multiple of 4096 (of 2 MiB, and backed by huge
/// pages where the system grants them, if there are that many bytes).
class Pages {
public:
  Pages() = default;
  Pages(Pages &&other) noexcept { swap(other); }
  Pages &operator=(Pages &&other) noexcept {
    swap(other);
    return *this;
  }
  ~Pages();

  static Result<Pages> allocate(uint64_t size, const char *what);
  using Check = std::function<Status(std::span<const std::byte>)>;
  /// Pages that hold `code` and can be executed, but no longer written. `check`
  /// sees the copy before that.
  static Result<Pages> executable(std::span<const std::byte> code,
                                  const Check &check);

  std::byte *data() const { return start; }
  uint64_t size() const { return bytes; }

private:
  void swap(Pages &other) {
    std::swap(mapping, other.mapping);
    std::swap(mapped, other.mapped);
    std::swap(start, other.start);
    std::swap(bytes, other.bytes);
  }
  void *mapping = nullptr;
  uint64_t mapped = 0;
  std::byte *start = nullptr;
  uint64_t bytes = 0;
};

} // namespace charonia::cpu

#endif // CHARONIA_RUNTIME_DEVICE_CPU_MEMORY_H
