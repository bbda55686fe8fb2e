#include "codegen/driver/PrintKernels.h"
#include "graph/analysis/Weights.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include <set>

using namespace mlir;

namespace charonia::driver {

static std::string describeResources(const Backend &backend,
                                     const KernelBinary &binary) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << "// " << backend.arch() << ": ";
  if (backend.device() == DeviceKind::Cpu)
    stream << binary.image.size() << " bytes of code, " << binary.scratchBytes
           << " of scratch memory a thread\n";
  else if (binary.cubin.empty())
    stream << "no ptxas, so only the driver will know its registers; "
           << binary.blockThreads << " threads a block, " << binary.sharedBytes
           << " bytes of shared memory\n";
  else
    stream << binary.blockThreads << " threads a block, " << binary.registers
           << " registers a thread, " << binary.spillBytes << " bytes spilled, "
           << binary.sharedBytes << " bytes of shared memory\n";
  return text;
}

/// Graph, tile programs and target code; not what lies between.
static void printFiles(StringRef folder, llvm::raw_ostream &output) {
  std::error_code failed;
  std::set<std::string> paths;
  for (llvm::sys::fs::directory_iterator it(folder, failed), end;
       it != end && !failed; it.increment(failed))
    paths.insert(it->path());
  for (StringRef suffix : {"/graph.mlir", ".tile.mlir", ".s", ".ptx"})
    for (const std::string &path : paths)
      if (auto file = llvm::MemoryBuffer::getFile(path);
          file && StringRef(path).ends_with(suffix))
        output << "// " << llvm::sys::path::filename(path) << "\n"
               << (*file)->getBuffer() << "\n";
}

LogicalResult printTiles(const KernelSet &kernels, const Backend &backend,
                         llvm::raw_ostream &output) {
  for (unsigned i = 0; i < kernels.size(); ++i) {
    FailureOr<TileProgram> program = makeTileProgram(kernels.get(i), backend);
    if (failed(program))
      return failure();
    program->module->print(output);
    output << "\n";
  }
  return success();
}

LogicalResult printKernel(const KernelSet &kernels, StringRef name,
                          ArrayRef<std::unique_ptr<Backend>> variants,
                          Location location, llvm::raw_ostream &output) {
  SmallString<128> folder;
  if (llvm::sys::fs::createUniqueDirectory("charonia-kernel", folder))
    return emitError(location) << "no folder for temporary files";
  auto remove =
      llvm::scope_exit([&] { llvm::sys::fs::remove_directories(folder); });
  bool found = false;
  for (unsigned i = 0; i < kernels.size(); ++i) {
    if (kernels.get(i).getSymName() != name)
      continue;
    found = true;
    KernelSet one;
    one.add(kernels.get(i),
            [](Value input) { return graph::isWeight(input.getDefiningOp()); });
    KernelOptions dumped;
    dumped.dumpDir = std::string(folder);
    std::string resources;
    for (auto &backend : variants) {
      FailureOr<std::vector<CompiledKernel>> compiled =
          compileKernels(one, *backend, dumped);
      if (failed(compiled))
        return failure();
      resources += describeResources(*backend, compiled->front().binary);
    }
    printFiles(dumpFolder(folder, 0, one.get(0)), output);
    output << resources;
  }
  if (!found) {
    std::set<std::string> names;
    for (unsigned i = 0; i < kernels.size(); ++i)
      names.insert(kernels.get(i).getSymName().str());
    return emitError(location)
           << "no kernel is named '" << name << "'; the kernels are "
           << llvm::join(names, ", ");
  }
  return success();
}

} // namespace charonia::driver
