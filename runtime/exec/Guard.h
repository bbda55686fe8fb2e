//===- Guard.h - Nothing is thrown across the boundary ----------*- C++ -*-===//
#ifndef CHARONIA_RUNTIME_EXEC_GUARD_H
#define CHARONIA_RUNTIME_EXEC_GUARD_H

#include "charonia/status.h"

#include <exception>
#include <new>

namespace charonia {

/// Calls `fn`, which returns a Status or a Result; what the standard library
/// throws becomes a Status.
template <typename Fn> auto guarded(Fn fn) -> decltype(fn()) {
  try {
    return fn();
  } catch (const std::bad_alloc &) {
    return Status(StatusCode::OutOfMemory, "out of memory");
  } catch (const std::exception &error) {
    return Status(StatusCode::Internal, error.what());
  }
}

} // namespace charonia

#endif // CHARONIA_RUNTIME_EXEC_GUARD_H
