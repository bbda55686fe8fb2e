// Chips as data: what the cost model, layouts, the pipeline and lowering need
// to know of the GPU that they write for.
#ifndef CHARONIA_CODEGEN_TARGET_GPUTARGET_H
#define CHARONIA_CODEGEN_TARGET_GPUTARGET_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <vector>

namespace charonia {

/// How a chip multiplies tiles.
struct DotInstruction {
  enum class Form {
    /// A thread's own multiply-adds; every type.
    MultiplyAdd,
    /// mma.sync m16n8: a warp's, fragments of both operands in registers.
    Mma,
    /// wgmma m64: four warps', operands in shared memory (128-byte swizzle,
    /// either axis contiguous), the left one also in registers; done when it is
    /// waited for.
    WarpgroupMma,
  };
  Form form;
  /// Bits of an operand's element: 16 (f16, bf16), 32 (f32 as tf32) or 8 (e4m3,
  /// e5m2); 0: all.
  unsigned elementBits;
  /// The least tile that it computes.
  int64_t rows, columns, depth;
  /// Warps that compute one together, one behind another along the rows.
  unsigned warps;
  /// Operations a microsecond of one multiprocessor, as kernels reach them.
  double rate;
  /// The terms of both operands have to be neighbours in memory.
  bool alongTerms = false;
  /// Its sums keep few bits (13 or so): those of a step alone, which threads
  /// add to the others in f32.
  bool shortSums = false;
};

struct GpuTarget {
  llvm::StringRef chip; ///< "sm_80", "sm_90a", ...
  int64_t multiprocessors;
  /// Shared memory that a program instance may have, in bytes.
  int64_t sharedBytes;
  int64_t cacheBytes; ///< Of the L2 cache.
  double memoryRate;  ///< Bytes a microsecond, as kernels reach them.
  /// A kernel may begin while the one before it ends, and waits by itself.
  bool dependentLaunch;
  /// Program instances that may be a cluster, which runs as a whole; 1: there
  /// are none.
  int64_t mostInCluster;
  /// It copies boxes of tensors to shared memory by itself, and threads wait
  /// for them by mbarriers.
  bool copiesBoxes;
  /// The best first, multiply-adds last.
  llvm::ArrayRef<DotInstruction> dots;

  /// The best instruction for an m x n x k tile of a program instance with so
  /// many warps. `elementBits`: of what tensor cores may multiply; 0: of what
  /// they may not. `alongTerms`: the terms of both operands are neighbours in
  /// memory.
  const DotInstruction &dotFor(unsigned elementBits, int64_t m, int64_t n,
                               int64_t k, unsigned warps,
                               bool alongTerms) const;

  /// The row of a chip; null for one that is not known.
  static const GpuTarget *get(llvm::StringRef chip);
  /// The chips that have what kernels need (sm_80 and later) and that LLVM
  /// knows, in order.
  static std::vector<llvm::StringRef> known();
};

} // namespace charonia

#endif
