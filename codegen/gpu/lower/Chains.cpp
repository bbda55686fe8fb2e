// Chains of arithmetic take some registers of a tile at a time. A tile has up
// to 128 of them, and an operator after the other would keep what the next one
// needs beside what it makes, of all: ptxas does not order them anew, and
// spills.
#include "codegen/gpu/lower/Lowering.h"

using namespace mlir;
using namespace charonia;
using namespace charonia::gpu;

/// What shorter chains keep, and those of fewer registers, has room.
static constexpr unsigned kFewestOperators = 8, kFewestRegisters = 64;
/// Enough for one to work while another waits.
static constexpr unsigned kTogether = 8;

void KernelLowering::noteInChain(unsigned reg, Operation *before) {
  Block *block = b.getInsertionBlock();
  auto from = before ? std::next(before->getIterator()) : block->begin();
  for (Operation &op : llvm::make_range(from, b.getInsertionPoint()))
    chain.made.push_back({reg, &op});
}

void KernelLowering::endChain() {
  Chain ended = std::exchange(chain, {});
  if (ended.operators < kFewestOperators ||
      llvm::none_of(
          ended.made,
          [](const auto &made) { return made.first + 1 >= kFewestRegisters; }))
    return;
  // What a register needs of the chain is of the same one, or was made of an
  // earlier one that holds the same.
  llvm::stable_sort(ended.made, [](const auto &a, const auto &b) {
    return a.first / kTogether < b.first / kTogether;
  });
  for (auto [reg, op] : ended.made)
    op->moveBefore(b.getInsertionBlock(), b.getInsertionPoint());
}
