//===- Guard.h - Nothing is thrown across the boundary ----------*- C++ -*-===//
#ifndef CHARONIA_RUNTIME_ENGINE_GUARD_H
#define CHARONIA_RUNTIME_ENGINE_GUARD_H

#include "charonia/status.h"

#include <exception>
#include <new>

namespace charonia {

/// Calls `fn`, which returns a Status or a Result; what the standard library
/// throws becomes a Status. The message of the first fits into a string without
/// memory of its own.
template <typename Fn> auto guarded(Fn fn) noexcept -> decltype(fn()) {
  try {
    return fn();
  } catch (const std::bad_alloc &) {
    return Status(StatusCode::OutOfMemory, "out of memory");
  } catch (const std::exception &error) {
    try {
      return Status(StatusCode::Internal, error.what());
    } catch (const std::bad_alloc &) {
      return Status(StatusCode::OutOfMemory, "out of memory");
    }
  }
}

} // namespace charonia

#endif // CHARONIA_RUNTIME_ENGINE_GUARD_H
