// The rings in shared memory that the streams of a loop fill. Private to
// LoopPipeline.h.
#ifndef CHARONIA_CODEGEN_GPU_LOOPSTREAMS_H
#define CHARONIA_CODEGEN_GPU_LOOPSTREAMS_H

#include "codegen/gpu/LoopSchedule.h"
#include "mlir/IR/IRMapping.h"

namespace charonia::gpu {

/// The rings of a loop's streams, and what fills and reads them.
class LoopStreams {
protected:
  LoopStreams(mlir::scf::ForOp loop, llvm::SmallVector<Stream> streams,
              const PipelineDepth &depth)
      : loop(loop), streams(std::move(streams)), stages(depth.stages),
        schedule(planLoop(loop, this->streams, depth)), b(loop) {}

  mlir::Location loc() { return loop.getLoc(); }
  mlir::Value constant(int64_t value) {
    return mlir::arith::ConstantIndexOp::create(b, loc(), value);
  }

  // --- Tiles
  /// The loop over tiles, if the instance has several: what is the same for all
  /// of them is copied in front of it, the rest for the first tile there, and
  /// for each next one behind the last product of a tile.
  void findTileLoop();
  /// The copies of the next tile, if there is one: all warps are done with the
  /// slots.
  void issueNextTile();

  // --- Rings
  void createRings();
  mlir::Value slotOf(mlir::Value ring, mlir::Value index) {
    return simt::SlotOp::create(b, loc(), ring.getType(), ring, index);
  }
  /// The slot after `slot` in a ring of `count`.
  mlir::Value wrap(mlir::Value slot, int64_t count);
  /// Iteration `first + ahead`, counted in steps.
  mlir::Value iteration(mlir::Value first, int64_t ahead);
  /// What an iteration reads is there, be it for the next one's operands: at
  /// most the copies of later ones are still under way.
  void synchronize();
  /// Iterations whose copies are under way before the loop: a slot is filled
  /// when the dots that read it are done, in all warps.
  unsigned ahead() const {
    return schedule.whole ? stages : stages - (schedule.dotsInFlight ? 2 : 1);
  }

  // --- Streams
  /// Copies for the iteration at `index`, if there is one.
  void issueCopies(mlir::Value index, mlir::Value slot);
  /// What passes through registers: its loads and what they need.
  llvm::SmallVector<mlir::IRMapping> issueLoads(mlir::Value index);
  /// The rest of its computation, to shared memory; `copies`: the slot of what
  /// other streams have copied for it.
  void storeLoads(llvm::SmallVector<mlir::IRMapping> &mappings,
                  mlir::Value slot, mlir::Value copies);
  void startStreams();
  llvm::SmallVector<mlir::Value>
  loadEarly(llvm::function_ref<mlir::Value(const Stream &)> slot);

  mlir::scf::ForOp loop;
  llvm::SmallVector<Stream> streams;
  unsigned stages;
  LoopSchedule schedule;
  mlir::OpBuilder b;
  /// The shared memory of each stream.
  llvm::SmallVector<mlir::Value> rings;
  /// The loop over tiles around, if there is one.
  mlir::scf::ForOp tiles;

private:
  /// Copies of all iterations for `tile`, or of what is the same for each tile.
  void issueTile(mlir::Value tile, bool ofAll);
  /// The copy of a stream where `mapping` says; `end`: only in front of it.
  void copyStream(const Stream &stream, mlir::Value ring,
                  mlir::IRMapping &mapping, mlir::Value slot,
                  mlir::Value end = {});

  /// With such a loop, of each stream: whether it is the same for all tiles,
  /// and what says where it is of each.
  llvm::SmallVector<bool> resident;
  llvm::SmallVector<llvm::SetVector<mlir::Operation *>> places;
};

} // namespace charonia::gpu

#endif
