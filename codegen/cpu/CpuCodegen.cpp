#include "codegen/cpu/CpuCodegen.h"
#include "codegen/cpu/Image.h"
#include "codegen/cpu/KernelEmitter.h"
#include "codegen/cpu/Target.h"
#include "codegen/math/ExpandMath.h"
#include "codegen/math/Float8.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include <atomic>
#include <thread>

using namespace charonia::cpu;

namespace {
/// What one kernel becomes.
struct Compiled {
  /// The kernel as it was compiled; diagnostics refer to it.
  mlir::OwningOpRef<mlir::func::FuncOp> function;
  FlatObject object;
  uint64_t scratchBytes = 0;
  mlir::Operation *errorOp = nullptr;
  std::string error;
};

class Compiler {
public:
  Compiler(CpuIsa isa, const CpuOptions &options)
      : isa(isa), options(options) {}

  /// With `stage`, the text of that stage goes to `text` and nothing else is
  /// done.
  void compile(mlir::func::FuncOp given, Compiled &out,
               std::optional<CpuStage> stage = {},
               std::string *text = nullptr) {
    out.function = given.clone();
    mlir::func::FuncOp function = *out.function;
    charonia::ExpandMathOptions math;
    // One instruction here, beside a product and two corrections.
    math.div = true;
    math.exp = hasAvx512(isa);
    charonia::expandMath(function, math);
    charonia::expandFloat8(function);
    auto fail = [&](llvm::Error error) {
      out.errorOp = function;
      out.error = llvm::toString(std::move(error));
    };
    auto machine = createTargetMachine(isa);
    if (!machine)
      return fail(machine.takeError());
    llvm::LLVMContext context;
    llvm::Module module(function.getSymName(), context);
    module.setTargetTriple((*machine)->getTargetTriple());
    module.setDataLayout((*machine)->createDataLayout());
    KernelEmitter emitter(function, isa, module, **machine);
    if (!emitter.run()) {
      out.errorOp = emitter.errorOp();
      out.error = emitter.errorMessage();
      return;
    }
    auto print = [&](llvm::Module &module) {
      llvm::raw_string_ostream os(*text);
      module.print(os, nullptr);
    };
    dump(module, ".ll");
    assert(!llvm::verifyModule(module, &llvm::errs()));
    if (stage == CpuStage::Ir)
      return print(module);
    optimize(module, **machine);
    dump(module, ".opt.ll");
    if (stage == CpuStage::OptimizedIr)
      return print(module);
    if (stage == CpuStage::Assembly) {
      auto bytes = emit(module, **machine, llvm::CodeGenFileType::AssemblyFile);
      text->assign(bytes.begin(), bytes.end());
      return;
    }
    if (!options.dumpDir.empty()) {
      auto copy = llvm::CloneModule(module);
      write(module.getName(), ".s", [&](llvm::raw_ostream &os) {
        auto bytes =
            emit(*copy, **machine, llvm::CodeGenFileType::AssemblyFile);
        os << llvm::StringRef(bytes.data(), bytes.size());
      });
    }
    auto bytes = emit(module, **machine, llvm::CodeGenFileType::ObjectFile);
    auto object = flattenObject({bytes.data(), bytes.size()});
    if (!object)
      return fail(object.takeError());
    out.object = std::move(*object);
    out.scratchBytes = emitter.scratchBytes();
  }

private:
  template <typename Print>
  void write(llvm::StringRef name, llvm::StringRef suffix, Print print) {
    llvm::SmallString<128> path(options.dumpDir);
    llvm::sys::path::append(path, name + "." + isaName(isa) + suffix);
    std::error_code error;
    llvm::raw_fd_ostream stream(path, error);
    if (!error)
      print(stream);
  }
  void dump(llvm::Module &module, llvm::StringRef suffix) {
    if (!options.dumpDir.empty())
      write(module.getName(), suffix,
            [&](llvm::raw_ostream &os) { module.print(os, nullptr); });
  }

  CpuIsa isa;
  const CpuOptions &options;
};
} // namespace

static void report(const Compiled &kernel, mlir::func::FuncOp function,
                   CpuIsa isa) {
  kernel.errorOp->emitError(kernel.error)
      << " (kernel '" << function.getSymName() << "', " << isaName(isa) << ")";
}

mlir::FailureOr<std::string>
charonia::cpu::printCpuKernel(mlir::func::FuncOp kernel, CpuIsa isa,
                              CpuStage stage) {
  CpuOptions options;
  Compiled compiled;
  std::string text;
  Compiler(isa, options).compile(kernel, compiled, stage, &text);
  if (!compiled.errorOp)
    return text;
  report(compiled, kernel, isa);
  return mlir::failure();
}

mlir::FailureOr<CpuImage>
charonia::cpu::compileCpuKernels(llvm::ArrayRef<mlir::func::FuncOp> kernels,
                                 CpuIsa isa, const CpuOptions &options) {
  if (!options.dumpDir.empty())
    llvm::sys::fs::create_directories(options.dumpDir);
  std::vector<Compiled> compiled(kernels.size());
  // Each kernel has an LLVM context of its own, so kernels compile
  // independently.
  std::atomic<size_t> next = 0;
  auto work = [&] {
    Compiler compiler(isa, options);
    for (size_t i; (i = next++) < kernels.size();)
      compiler.compile(kernels[i], compiled[i]);
  };
  size_t threads =
      options.threads ? options.threads : std::thread::hardware_concurrency();
  if (!kernels.empty() && !kernels[0]->getContext()->isMultithreadingEnabled())
    threads = 1;
  std::vector<std::thread> pool;
  for (size_t i = 1; i < std::min(threads, kernels.size()); ++i)
    pool.emplace_back(work);
  work();
  for (std::thread &thread : pool)
    thread.join();

  CpuImage image;
  bool failed = false;
  for (auto [function, kernel] : llvm::zip_equal(kernels, compiled)) {
    if (kernel.errorOp) {
      report(kernel, function, isa);
      failed = true;
      continue;
    }
    image.bytes.resize(llvm::alignTo(image.bytes.size(), kImageAlignment));
    uint64_t start = image.bytes.size();
    image.bytes.insert(image.bytes.end(), kernel.object.bytes.begin(),
                       kernel.object.bytes.end());
    image.kernels.push_back({mlir::func::FuncOp(function).getSymName().str(),
                             start + kernel.object.functions.front().second,
                             kernel.scratchBytes});
  }
  if (failed)
    return mlir::failure();
  return image;
}
