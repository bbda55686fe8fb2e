// A GPU without a GPU: runs a lowered kernel thread by thread on the CPU and
// tells what a GPU would not: races, reads of what nobody wrote, accesses out
// of bounds, divergent barriers, copies that nobody waited for, bank conflicts.
//
// What is run is the last IR before its translation to PTX (the stage "thread"
// of a dump), so everything that decides addresses, layouts, barriers and the
// pipeline takes part. Warps go in lockstep under a mask, one instruction for
// 32 lanes; between barriers they run in any seeded order, and so do the
// blocks.
//
// Where hardware is free or keeps its ways to itself, the rules here are: mma
// adds products to the accumulator in fp32 by ascending k, each sum rounded to
// nearest; ex2, rsqrt and full division are rounded correctly; what carries
// `contract` is not contracted.
#ifndef CHARONIA_CODEGEN_GPU_INTERPRETER_INTERPRETER_H
#define CHARONIA_CODEGEN_GPU_INTERPRETER_INTERPRETER_H

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace charonia::interpreter {

enum class FindingKind {
  /// Two threads, one location, no order, not both reads. Layouts may give an
  /// element to several threads: one operation may write the same value of all
  /// of them, and all may read what one store overwrites that all take part in.
  Race,
  UnwrittenRead,    ///< Shared memory that nothing was written to; products
                    ///< may read it, as NaN.
  OutOfBounds,      ///< Outside a buffer or the kernel's shared memory.
  Misaligned,       ///< An address that is no multiple of the access.
  DivergentBarrier, ///< A barrier that not all threads of the block reach.
  UnfinishedCopy,   ///< Touches what an asynchronous copy is still to write.
  UnfinishedDot,    ///< Ends before a product that nobody waited for.
  MissingFence,     ///< A product reads what threads wrote, or takes registers,
                    ///< without the fence that orders the two.
  ChangedSource,    ///< The source of an asynchronous copy changed under way.
  ConstantWrite,    ///< Writes a buffer that may only be read.
  NonCoherentRead,  ///< Read as constant, but written in the same launch.
  EarlyAccess,      ///< Of what a kernel before this one may still use.
  NeverWaited,      ///< A thread ends before the kernels before this one.
  EarlyStart,       ///< Of the next kernel, which may read what those write.
  InactiveLane,     ///< Takes part in a shuffle or matrix operation alone.
  UnexpectedBytes,  ///< A copy brings more than its mbarrier was told of.
  BarrierMisuse,
  EndedBlock,  ///< An mbarrier's memory touched, or one that is not ready.
  Deadlock,    ///< Warps wait for what can't come; ends the launch.
  NotModelled, ///< Legal, perhaps, but not known here; ends the launch.
  StepLimit,   ///< More instructions than allowed; ends the launch.
};
llvm::StringRef findingName(FindingKind kind);

/// What went wrong at one operation (and the other one of a race); later ones
/// of the same kind there are counted.
struct Finding {
  FindingKind kind;
  std::string kernel;
  std::string operation; ///< "llvm.load at kernel.mlir:12:5"
  std::string other;     ///< The same; empty where only one takes part.
  std::string details;   ///< Block, thread, address of the first.
  uint64_t count = 1;
};

/// How often the lanes of one access to shared memory want different words of
/// the same bank: 1 is without conflict. A request is what hardware serves at
/// once: 32 lanes of up to 4 bytes, 16 of 8, 8 of 16, one matrix of ldmatrix.
struct BankStatistic {
  std::string kernel, operation;
  uint64_t requests = 0, wavefronts = 0;
  unsigned maximum = 0;
  double mean() const { return requests ? double(wavefronts) / requests : 0; }
};

struct Report {
  std::vector<Finding> findings;
  std::vector<BankStatistic> banks;
  uint64_t instructions = 0; ///< Of warps: 32 lanes each.
};

/// Memory of a pointer argument. Arguments may overlap.
struct Buffer {
  void *data = nullptr;
  uint64_t bytes = 0;
  /// Where the first byte is taken to lie, modulo 4096: what accesses may
  /// assume of its alignment.
  uint64_t phase = 0;
  bool isConstant = false; ///< An input or a weight: may only be read.
  bool isWeight = false;   ///< No kernel ever writes it.
};

/// What the copy engine is told of a buffer (engine::TensorMap at the launch's
/// sizes). The innermost dimension comes first.
struct TensorMap {
  unsigned buffer = 0; ///< Where the tensor begins.
  unsigned elementBytes = 2, swizzle = 0;
  /// In elements, and in bytes of all dimensions but the innermost.
  llvm::SmallVector<int64_t> extents, strides;
  /// Tiled: elements that the box spans along each dimension, of which it has
  /// every `steps`-th. im2col: channels, then pixels.
  llvm::SmallVector<int64_t> box, steps;
  /// im2col: corners of the base pixels' box; empty: tiled.
  llvm::SmallVector<int64_t> lower, upper;
};

enum class CopyTiming {
  Late,   ///< Asynchronous copies land when they are waited for; those of the
          ///< copy engine when no warp can go on without.
  Early,  ///< They land at once.
  Seeded, ///< At any time between.
};

struct Launch {
  int64_t grid = 1;
  uint64_t sharedBytes = 0;
  std::vector<Buffer> buffers;
  std::vector<int64_t> symbols;
  std::vector<TensorMap> maps;
  /// 0: warps and blocks in their order, a warp up to its next barrier;
  /// otherwise in an order of this seed, warps interrupted anywhere.
  uint64_t seed = 0;
  CopyTiming copies = CopyTiming::Late;
  /// Begins while the kernels before it run: until a thread has waited for them
  /// (griddepcontrol.wait) it may read weights and nothing else.
  bool overlapsPrevious = false;
  /// Those may be only what it needs nothing of, nor they of it: it may read
  /// and write before it has waited.
  bool waitsAtEnd = false;
  uint64_t instructionLimit = uint64_t(1) << 36;
};

struct Program;

/// A decoded kernel. Immutable; may be launched from several threads.
class Kernel {
public:
  /// Decodes a function of the stage "thread": pointers, then 64-bit symbols,
  /// then tensor maps by value.
  /// Indices have tile.index_bits bits. An operation that is not known here is
  /// an error at its location.
  static mlir::FailureOr<Kernel> decode(mlir::LLVM::LLVMFuncOp function);
  Kernel(Kernel &&);
  Kernel &operator=(Kernel &&);
  ~Kernel();

  const std::string &name() const;
  unsigned blockThreads() const;
  unsigned clusterBlocks() const;
  size_t numBuffers() const;
  size_t numSymbols() const;
  size_t numMaps() const;

  /// Runs the grid and adds to `report`. The numbers of buffers, symbols and
  /// maps must be the kernel's.
  void launch(const Launch &launch, Report &report) const;

private:
  explicit Kernel(std::unique_ptr<Program> program);
  std::unique_ptr<Program> program;
};

} // namespace charonia::interpreter

#endif
