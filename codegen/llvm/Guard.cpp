#include "codegen/llvm/Guard.h"
#include "llvm/Support/CrashRecoveryContext.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/raw_ostream.h"
#include <cstdlib>
#include <mutex>

static thread_local std::string reason;

static void onFatalError(void *, const char *message, bool) {
  reason = message;
  if (auto *context = llvm::CrashRecoveryContext::GetCurrent())
    context->HandleExit(1); // does not return
  llvm::errs() << "LLVM ERROR: " << message << '\n';
  std::abort();
}

std::optional<std::string>
charonia::runGuarded(llvm::function_ref<void()> work) {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::CrashRecoveryContext::Enable();
    llvm::install_fatal_error_handler(onFatalError);
  });
  reason.clear();
  llvm::CrashRecoveryContext recovery;
  if (recovery.RunSafely(work))
    return std::nullopt;
  return reason.empty() ? "the code generator crashed" : reason;
}
