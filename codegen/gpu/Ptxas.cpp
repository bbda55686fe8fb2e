#include "codegen/gpu/Ptxas.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/Regex.h"
#include "llvm/Support/Signals.h"

using namespace charonia::gpu;
using llvm::StringRef;

std::string charonia::gpu::findPtxas() {
  if (auto found = llvm::sys::findProgramByName("ptxas"))
    return *found;
  if (auto found =
          llvm::sys::findProgramByName("ptxas", {"/usr/local/cuda/bin"}))
    return *found;
  return "";
}

/// The number before `what` in ptxas's report, -1 if it is not there.
static int numberBefore(StringRef report, StringRef what) {
  size_t at = report.find(what);
  if (at == StringRef::npos)
    return -1;
  StringRef before = report.take_front(at).rtrim();
  size_t start = before.find_last_not_of("0123456789");
  int value;
  if (before.drop_front(start + 1).getAsInteger(10, value))
    return -1;
  return value;
}

namespace {
/// Removes a file at the end of a scope, or of the process if that is earlier.
class Removal {
public:
  explicit Removal(StringRef path) : path(path) {
    llvm::sys::RemoveFileOnSignal(path);
  }
  ~Removal() {
    llvm::sys::fs::remove(path);
    llvm::sys::DontRemoveFileOnSignal(path);
  }
  Removal(const Removal &) = delete;

private:
  StringRef path;
};
} // namespace

llvm::Error charonia::gpu::assemble(GpuKernel &kernel, StringRef chip,
                                    StringRef ptxas) {
  llvm::SmallString<128> input, output, report;
  auto temporary = [](StringRef suffix, llvm::SmallString<128> &path) {
    return llvm::errorCodeToError(
        llvm::sys::fs::createTemporaryFile("charonia", suffix, path));
  };
  if (auto error = temporary("ptx", input))
    return error;
  Removal removeInput(input);
  if (auto error = temporary("cubin", output))
    return error;
  Removal removeOutput(output);
  if (auto error = temporary("txt", report))
    return error;
  Removal removeReport(report);
  {
    std::error_code code;
    llvm::raw_fd_ostream file(input, code);
    file << kernel.ptx;
    file.close();
    if (file.has_error())
      return llvm::createStringError("cannot write " + input.str() + ": " +
                                     file.error().message());
  }
  std::string archFlag = ("-arch=" + chip).str();
  StringRef arguments[] = {ptxas, archFlag, "-v", input, "-o", output};
  std::optional<StringRef> redirects[] = {StringRef(""), report.str(),
                                          report.str()};
  std::string message;
  int status = llvm::sys::ExecuteAndWait(ptxas, arguments, std::nullopt,
                                         redirects, 0, 0, &message);
  auto said = llvm::MemoryBuffer::getFile(report);
  StringRef text = said ? (*said)->getBuffer() : "";
  if (status != 0)
    return llvm::createStringError(
        "ptxas failed on kernel '" + kernel.entry + "' for " + chip + ": " +
        (message.empty() ? text : StringRef(message)));
  auto cubin = llvm::MemoryBuffer::getFile(output, /*IsText=*/false);
  if (!cubin)
    return llvm::errorCodeToError(cubin.getError());
  kernel.cubin = (*cubin)->getBuffer().str();
  kernel.registers = numberBefore(text, " registers");
  kernel.spillStores = numberBefore(text, " bytes spill stores");
  kernel.spillLoads = numberBefore(text, " bytes spill loads");
  llvm::SmallVector<StringRef> lines;
  text.split(lines, '\n');
  for (StringRef line : lines)
    if (line.contains("warning") || llvm::Regex("\\(C[0-9]+\\)").match(line))
      kernel.remarks.push_back(line.trim().str());
  return llvm::Error::success();
}
