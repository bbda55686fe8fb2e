// charonia-ptx: the tile kernels of a textual module as PTX and machine code.
#include "codegen/gpu/GpuCodegen.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Support/FileUtilities.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;
using namespace charonia;

static bool writeFile(const std::string &path, llvm::StringRef text) {
  std::error_code code;
  llvm::raw_fd_ostream file(path, code);
  file << text;
  file.close();
  if (!file.has_error())
    return true;
  llvm::errs() << "error: cannot write " << path << ": "
               << file.error().message() << '\n';
  file.clear_error();
  return false;
}

int main(int argc, char **argv) {
  llvm::cl::OptionCategory category("Options");
  llvm::cl::opt<std::string> input(
      llvm::cl::Positional, llvm::cl::desc("<file.mlir>"), llvm::cl::init("-"),
      llvm::cl::cat(category));
  llvm::cl::opt<std::string> chip("arch", llvm::cl::desc("Chip, as sm_80"),
                                  llvm::cl::init("sm_80"),
                                  llvm::cl::cat(category));
  llvm::cl::opt<std::string> out(
      "o",
      llvm::cl::desc(
          "Folder for <kernel>.ptx, <kernel>.cubin and kernels.json"),
      llvm::cl::cat(category));
  llvm::cl::opt<std::string> dumps("dump-dir",
                                   llvm::cl::desc("Folder for every stage"),
                                   llvm::cl::cat(category));
  llvm::cl::opt<bool> print("ptx", llvm::cl::desc("Print the PTX"),
                            llvm::cl::cat(category));
  llvm::cl::opt<bool> assemble("assemble", llvm::cl::desc("Run ptxas"),
                               llvm::cl::init(true), llvm::cl::cat(category));
  llvm::cl::opt<bool> boxes("boxes",
                            llvm::cl::desc("Use the chip's copy engine"),
                            llvm::cl::init(true), llvm::cl::cat(category));
  llvm::cl::HideUnrelatedOptions(category);
  llvm::cl::ParseCommandLineOptions(argc, argv,
                                    "Tile kernels to PTX and machine code\n");

  DialectRegistry registry;
  charonia::gpu::registerGpuCodegen(registry);
  MLIRContext context(registry);
  context.allowUnregisteredDialects();
  llvm::SourceMgr sources;
  std::string error;
  std::unique_ptr<llvm::MemoryBuffer> file = openInputFile(input, &error);
  if (!file) {
    llvm::errs() << "error: " << error << '\n';
    return 1;
  }
  sources.AddNewSourceBuffer(std::move(file), llvm::SMLoc());
  SourceMgrDiagnosticHandler handler(sources, &context);
  OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(sources, &context);
  if (!module)
    return 1;
  charonia::gpu::GpuOptions options;
  if (!dumps.empty())
    options.dumpPrefix = dumps + "/";
  options.assemble = assemble;
  options.boxes = boxes;
  const GpuTarget *target = GpuTarget::get(chip);
  if (!target) {
    llvm::errs() << "error: --arch " << chip << " is not known; there are "
                 << llvm::join(GpuTarget::known(), ", ") << '\n';
    return 1;
  }
  auto kernels = charonia::gpu::compileGpuKernels(*module, *target, options);
  if (failed(kernels))
    return 1;
  llvm::json::Array list;
  for (const charonia::gpu::GpuKernel &kernel : *kernels) {
    llvm::errs() << kernel.entry << ": " << kernel.blockThreads << " threads, "
                 << kernel.sharedBytes << " bytes shared";
    if (kernel.registers >= 0)
      llvm::errs() << ", " << kernel.registers << " registers, "
                   << kernel.spillStores << "+" << kernel.spillLoads
                   << " bytes spilled";
    llvm::errs() << '\n';
    for (const std::string &remark : kernel.remarks)
      llvm::errs() << "  " << remark << '\n';
    if (print)
      llvm::outs() << kernel.ptx;
    if (!out.empty()) {
      std::string base = out + "/" + kernel.entry;
      if (!writeFile(base + ".ptx", kernel.ptx) ||
          (!kernel.cubin.empty() && !writeFile(base + ".cubin", kernel.cubin)))
        return 1;
    }
    list.push_back(
        llvm::json::Object{{"entry", kernel.entry},
                           {"threads", kernel.blockThreads},
                           {"shared", kernel.sharedBytes},
                           {"registers", kernel.registers},
                           {"spills", kernel.spillStores + kernel.spillLoads}});
  }
  if (!out.empty()) {
    std::string text;
    llvm::raw_string_ostream(text) << llvm::json::Value(std::move(list));
    if (!writeFile(out + "/kernels.json", text))
      return 1;
  }
  return 0;
}
