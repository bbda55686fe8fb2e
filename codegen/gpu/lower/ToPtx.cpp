#include "codegen/gpu/lower/ToPtx.h"
#include "codegen/llvm/FunctionPasses.h"
#include "codegen/llvm/Guard.h"
#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/NVVMToLLVM/NVVMToLLVM.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "mlir/Transforms/DialectConversion.h"
#include "llvm/IR/DiagnosticHandler.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/DiagnosticPrinter.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/LICM.h"
#include "llvm/Transforms/Scalar/LoopPassManager.h"
#include "llvm/Transforms/Scalar/SimplifyCFG.h"
#include <mutex>

using namespace mlir;
using namespace charonia;
using namespace charonia::gpu;

void charonia::gpu::registerPtxTranslation(DialectRegistry &registry) {
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  registerNVVMDialectTranslation(registry);
}

/// Everything to the llvm dialect, in place.
static LogicalResult convert(ModuleOp module, unsigned indexBits) {
  MLIRContext *context = module.getContext();
  {
    RewritePatternSet patterns(context);
    populateSCFToControlFlowConversionPatterns(patterns);
    ConversionTarget target(*context);
    target.addIllegalDialect<scf::SCFDialect>();
    target.markUnknownOpDynamicallyLegal([](Operation *) { return true; });
    if (failed(applyPartialConversion(module, target, std::move(patterns))))
      return failure();
  }
  LowerToLLVMOptions options(context);
  options.overrideIndexBitwidth(indexBits);
  LLVMTypeConverter types(context, options);
  RewritePatternSet patterns(context);
  arith::populateCeilFloorDivExpandOpsPatterns(patterns);
  arith::populateArithToLLVMConversionPatterns(types, patterns);
  populateMathToLLVMConversionPatterns(types, patterns);
  populateNVVMToLLVMConversionPatterns(patterns);
  cf::populateControlFlowToLLVMConversionPatterns(types, patterns);
  ConversionTarget target(*context);
  target.addIllegalDialect<arith::ArithDialect, math::MathDialect,
                           cf::ControlFlowDialect>();
  target.addIllegalOp<NVVM::WgmmaMmaAsyncOp, NVVM::MBarrierTryWaitParityOp>();
  target.markUnknownOpDynamicallyLegal([](Operation *) { return true; });
  if (failed(applyPartialConversion(module, target, std::move(patterns))))
    return failure();
  module.walk([](LLVM::BrOp branch) {
    if (auto loop = dyn_cast_or_null<LLVM::LoopAnnotationAttr>(
            branch->removeDiscardableAttr(kLoopAnnotationAttr)))
      branch.setLoopAnnotationAttr(loop);
  });
  SmallVector<UnrealizedConversionCastOp> casts;
  module.walk([&](UnrealizedConversionCastOp cast) { casts.push_back(cast); });
  reconcileUnrealizedCasts(casts);
  return success();
}

/// The PTX version to write: high enough for what we use, low enough for old
/// drivers, which have to translate it.
static std::string ptxFeature(StringRef chip) {
  unsigned number = 0;
  chip.drop_front(chip.starts_with("sm_") ? 3 : 0)
      .take_while(llvm::isDigit)
      .getAsInteger(10, number);
  if (number >= 103)
    return "+ptx88";
  if (number >= 100)
    return "+ptx86";
  if (number >= 90)
    return "+ptx80";
  return number >= 89 ? "+ptx78" : "+ptx74";
}

static std::unique_ptr<llvm::TargetMachine> createTarget(StringRef chip,
                                                         std::string &error) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
    // 32-bit addresses of shared memory; LLVM has this as a command line option
    // only.
    auto &known = llvm::cl::getRegisteredOptions();
    if (auto it = known.find("nvptx-short-ptr"); it != known.end())
      static_cast<llvm::cl::opt<bool> *>(it->second)->setValue(true);
  });
  llvm::Triple triple("nvptx64-nvidia-cuda");
  const llvm::Target *target =
      llvm::TargetRegistry::lookupTarget(triple, error);
  if (!target)
    return nullptr;
  llvm::TargetOptions options;
  // Only what carries `contract`: elementary functions count on their
  // roundings. PTX says so with .rn, else ptxas would fuse what LLVM did not.
  options.AllowFPOpFusion = llvm::FPOpFusion::Standard;
  return std::unique_ptr<llvm::TargetMachine>(target->createTargetMachine(
      triple, chip, ptxFeature(chip), options, llvm::Reloc::PIC_, std::nullopt,
      llvm::CodeGenOptLevel::Aggressive));
}

namespace {
/// Keeps the first error instead of printing it and ending the process.
struct KeepErrors : llvm::DiagnosticHandler {
  explicit KeepErrors(std::string &text) : text(text) {}
  bool handleDiagnostics(const llvm::DiagnosticInfo &info) override {
    if (info.getSeverity() == llvm::DS_Error && text.empty()) {
      llvm::raw_string_ostream os(text);
      llvm::DiagnosticPrinterRawOStream printer(os);
      info.print(printer);
    }
    return true;
  }
  std::string &text;
};
} // namespace

FailureOr<PtxCode> charonia::gpu::translateToPtx(ModuleOp module,
                                                 StringRef chip,
                                                 unsigned indexBits) {
  if (failed(convert(module, indexBits)))
    return failure();
  std::string error;
  std::unique_ptr<llvm::TargetMachine> machine = createTarget(chip, error);
  if (!machine)
    return emitError(module.getLoc())
               << "this LLVM has no NVPTX target: " << error,
           failure();
  llvm::LLVMContext context;
  std::string complaint;
  context.setDiagnosticHandler(std::make_unique<KeepErrors>(complaint));
  std::unique_ptr<llvm::Module> code = translateModuleToLLVMIR(module, context);
  if (!code)
    return failure();
  code->setTargetTriple(machine->getTargetTriple());
  code->setDataLayout(machine->createDataLayout());

  // Common expressions and invariants; whatever would move casts and packed
  // values around is left out, it lengthens live ranges.
  llvm::FunctionPassManager passes;
  passes.addPass(llvm::EarlyCSEPass(/*UseMemorySSA=*/false));
  passes.addPass(llvm::SimplifyCFGPass());
  passes.addPass(
      llvm::createFunctionToLoopPassAdaptor(llvm::LICMPass(llvm::LICMOptions()),
                                            /*UseMemorySSA=*/true));
  passes.addPass(llvm::EarlyCSEPass(/*UseMemorySSA=*/false));
  runFunctionPasses(*code, *machine, std::move(passes));

  PtxCode result;
  llvm::raw_string_ostream(result.llvm) << *code;
  llvm::SmallString<0> text;
  bool supported = false;
  std::optional<std::string> problem = runGuarded([&] {
    llvm::raw_svector_ostream os(text);
    llvm::legacy::PassManager codegen;
    if (machine->addPassesToEmitFile(codegen, os, nullptr,
                                     llvm::CodeGenFileType::AssemblyFile))
      return;
    codegen.run(*code);
    supported = true;
  });
  if (!complaint.empty())
    problem = complaint;
  if (problem || !supported)
    return emitError(module.getLoc())
               << "LLVM cannot generate code for " << chip
               << " from this kernel: "
               << StringRef(problem.value_or("it has no assembly printer"))
                      .split('\n')
                      .first,
           failure();
  result.ptx = text.str().str();
  return result;
}
