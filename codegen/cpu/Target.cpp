#include "codegen/cpu/Target.h"
#include "codegen/cpu/Contract.h"
#include "codegen/llvm/FunctionPasses.h"
#include "llvm/CodeGen/MachineModuleInfo.h"
#include "llvm/CodeGen/Passes.h"
#include "llvm/CodeGen/TargetPassConfig.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/OptBisect.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetOptions.h"
#include "llvm/Transforms/InstCombine/InstCombine.h"
#include "llvm/Transforms/Scalar.h"
#include "llvm/Transforms/Scalar/ADCE.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/LICM.h"
#include "llvm/Transforms/Scalar/LoopPassManager.h"
#include "llvm/Transforms/Scalar/SimplifyCFG.h"
#include <mutex>

using namespace llvm;
using namespace charonia::cpu;

static constexpr std::pair<CpuIsa, const char *> isaNames[] = {
    {CpuIsa::V3, "x86-64-v3"},
    {CpuIsa::V4, "x86-64-v4"},
    {CpuIsa::V4Vnni, "x86-64-v4-vnni"}};

StringRef charonia::cpu::isaName(CpuIsa isa) {
  return llvm::find_if(isaNames,
                       [&](auto &entry) { return entry.first == isa; })
      ->second;
}

std::optional<CpuIsa> charonia::cpu::isaOf(StringRef name) {
  for (auto [isa, known] : isaNames)
    if (name == known)
      return isa;
  return std::nullopt;
}

Expected<std::unique_ptr<TargetMachine>>
charonia::cpu::createTargetMachine(CpuIsa isa) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
  });
  Triple triple("x86_64-unknown-linux-gnu");
  std::string error;
  const llvm::Target *target = TargetRegistry::lookupTarget(triple, error);
  if (!target)
    return createStringError(error);
  TargetOptions options;
  options.AllowFPOpFusion =
      FPOpFusion::Standard; // only what carries `contract`
  options.DataSections = options.FunctionSections = false;
  // The emitter chooses the width of every vector itself.
  StringRef features = isa == CpuIsa::V3   ? ""
                       : isa == CpuIsa::V4 ? "-prefer-256-bit"
                                           : "-prefer-256-bit,+avx512vnni";
  StringRef level = isaName(isa == CpuIsa::V3 ? CpuIsa::V3 : CpuIsa::V4);
  std::unique_ptr<TargetMachine> machine(
      target->createTargetMachine(triple, level, features, options, Reloc::PIC_,
                                  CodeModel::Small, CodeGenOptLevel::Default));
  if (!machine)
    return createStringError("LLVM was built without its X86 target");
  return machine;
}

void charonia::cpu::setFunctionAttributes(Function &function,
                                          const TargetMachine &machine) {
  function.addFnAttr(Attribute::NoUnwind);
  function.addFnAttr("no-builtins");
  function.addFnAttr("target-cpu", machine.getTargetCPU());
  function.addFnAttr("target-features", machine.getTargetFeatureString());
  function.addFnAttr("prefer-vector-width", "512");
  function.addFnAttr("min-legal-vector-width", "512");
}

void charonia::cpu::optimize(Module &module, TargetMachine &machine) {
  FunctionPassManager passes;
  passes.addPass(EarlyCSEPass(/*UseMemorySSA=*/true));
  passes.addPass(ContractProducts());
  passes.addPass(InstCombinePass());
  passes.addPass(SimplifyCFGPass());
  passes.addPass(createFunctionToLoopPassAdaptor(LICMPass(LICMOptions()),
                                                 /*UseMemorySSA=*/true));
  passes.addPass(EarlyCSEPass(/*UseMemorySSA=*/true));
  passes.addPass(ADCEPass());
  runFunctionPasses(module, machine, std::move(passes));
}

namespace {
/// Lets all passes run but loop strength reduction. Beside each access of a
/// loop it weighs the ways to form the address of every other one: it takes
/// seconds for the hundreds of accesses of a tile that is written out, whose
/// addresses are constants beside few bases anyway, and its choice holds so
/// many bases that accumulators are spilled.
class NoStrengthReduction : public OptPassGate {
public:
  bool isEnabled() const override { return true; }
  bool shouldRunPass(StringRef pass, StringRef) const override {
    return pass != name;
  }

private:
  const std::string name = [] {
    std::unique_ptr<Pass> pass(createLoopStrengthReducePass());
    return pass->getPassName().str();
  }();
};
} // namespace

/// Accesses to memory of the block that has most of them.
static unsigned mostAccesses(const Module &module) {
  unsigned most = 0;
  for (const Function &function : module)
    for (const BasicBlock &block : function)
      most = std::max<unsigned>(
          most, llvm::count_if(block, [](const Instruction &instruction) {
            return instruction.mayReadOrWriteMemory();
          }));
  return most;
}

SmallVector<char, 0> charonia::cpu::emit(Module &module, TargetMachine &machine,
                                         CodeGenFileType type) {
  SmallVector<char, 0> bytes;
  raw_svector_ostream stream(bytes);
  legacy::PassManager passes;
  // What TargetMachine::addPassesToEmitFile does, without the machine
  // scheduler: the emitter's order is meant, and the scheduler turns products
  // of more accumulators than registers into one chain of dependent operations
  // after the other. Nor the combiner, which takes sums of integers apart into
  // more than there are registers for.
  TargetPassConfig *config = machine.createPassConfig(passes);
  config->setDisableVerify(true);
  config->disablePass(&MachineSchedulerID);
  config->disablePass(&MachineCombinerID);
  passes.add(config);
  auto *info = new MachineModuleInfoWrapperPass(&machine);
  passes.add(info);
  bool unsupported = config->addISelPasses();
  config->addMachinePasses();
  config->setInitialized();
  unsupported |= machine.addAsmPrinter(passes, stream, nullptr, type,
                                       info->getMMI().getContext());
  passes.add(createFreeMachineFunctionPass());
  assert(!unsupported && "the X86 target emits objects and assembly");
  (void)unsupported;
  static NoStrengthReduction gate;
  constexpr unsigned manyAccesses = 64;
  if (mostAccesses(module) > manyAccesses)
    module.getContext().setOptPassGate(gate);
  passes.run(module);
  return bytes;
}
