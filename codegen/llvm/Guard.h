// LLVM's code generators end the process on what they cannot do. Here that
// becomes an error of the kernel that asked for it.
#ifndef CHARONIA_CODEGEN_LLVM_GUARD_H
#define CHARONIA_CODEGEN_LLVM_GUARD_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include <optional>
#include <string>

namespace charonia {

/// Runs `work`. The reason if LLVM gave up on it, nothing if it came to its
/// end. What `work` had built when it gave up is leaked. Thread-safe; the first
/// call installs LLVM's crash recovery and fatal error handler for the process.
std::optional<std::string> runGuarded(llvm::function_ref<void()> work);

} // namespace charonia

#endif
