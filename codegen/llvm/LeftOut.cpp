// Functions of LLVM that our programs name and never call. LLVM chooses at run
// time what it runs, so a linker keeps all that it might choose. What is
// defined here is not taken from LLVM's archives, nor what only that would
// need: 1.4 MB.
//
// A function may be here if no target of ours and no option that we set leads
// to a call of it. If something does, LLVM's fatal error says what is missing.
// What is left out in part is an error of the linker, since a file of the
// archive that is needed all the same defines the symbol again.
#include "llvm/CodeGen/Passes.h"
#include "llvm/InitializePasses.h"
#include "llvm/MC/MCParser/MCAsmParser.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/VirtualFileSystem.h"
#include "llvm/Target/TargetMachine.h"

using namespace llvm;

[[noreturn]] static void leftOut(const char *what) {
  reportFatalInternalError(Twine(what) + " is not in this program");
}

// Assembly in the middle of a function is read where the output is an object.
// NVPTX writes it as text, and X86 could not read it: that takes a parser of
// the target, which is not linked either.
MCAsmParser *llvm::createMCAsmParser(SourceMgr &, MCContext &, MCStreamer &,
                                     const MCAsmInfo &, unsigned) {
  leftOut("the parser of assembly");
}

// Profiles of machine code, which only an option of LLVM's command line names.
FunctionPass *
llvm::createMIRProfileLoaderPass(std::string, std::string,
                                 sampleprof::FSDiscriminatorPass,
                                 IntrusiveRefCntPtr<vfs::FileSystem>) {
  leftOut("the loader of profiles");
}

// X86's two other ways to select instructions. Null stands for a target that
// has none; at every level but -O0 they are selected from the DAG anyway. X86's
// own headers, which declare these, are not installed.
namespace llvm {
class FastISel;
class FunctionLoweringInfo;
class InstructionSelector;
class TargetLibraryInfo;
class X86RegisterBankInfo;
class X86Subtarget;
class X86TargetMachine;

namespace X86 {
FastISel *createFastISel(FunctionLoweringInfo &, const TargetLibraryInfo *) {
  return nullptr;
}
} // namespace X86

InstructionSelector *createX86InstructionSelector(const X86TargetMachine &,
                                                  const X86Subtarget &,
                                                  const X86RegisterBankInfo &) {
  return nullptr;
}
} // namespace llvm

// Passes that neither target runs. LLVM makes them known to its registry. No
// pipeline names them, or the archive would define these functions again.
#define LEFT_OUT(name)                                                         \
  void llvm::initialize##name(PassRegistry &) {}
LEFT_OUT(BranchRelaxationLegacyPass)
LEFT_OUT(HardwareLoopsLegacyPass)
LEFT_OUT(IfConverterPass)
LEFT_OUT(InterleavedLoadCombinePass)
LEFT_OUT(MIRCanonicalizerPass)
LEFT_OUT(MIRProfileLoaderPassPass)
LEFT_OUT(MachinePipelinerPass)
LEFT_OUT(MachineRegionInfoPassPass)
LEFT_OUT(TypePromotionLegacyPass)
#undef LEFT_OUT
