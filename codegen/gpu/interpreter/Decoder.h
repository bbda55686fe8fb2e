// From operations to instructions. Each family of operations is a file that
// adds its names to the table; to add an operation is to add an entry there.
#ifndef CHARONIA_CODEGEN_GPU_INTERPRETER_DECODER_H
#define CHARONIA_CODEGEN_GPU_INTERPRETER_DECODER_H

#include "codegen/gpu/interpreter/Machine.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"

namespace charonia::interpreter {

class Decoder;
using DecodeFunction = llvm::LogicalResult (*)(Decoder &, mlir::Operation *);
using OperationTable = llvm::StringMap<DecodeFunction>;

void addControl(OperationTable &table);
void addIntegers(OperationTable &table);
void addFloats(OperationTable &table);
void addCasts(OperationTable &table);
void addMemory(OperationTable &table);
void addWarpOperations(OperationTable &table);
void addMatrices(OperationTable &table);
void addAsyncCopies(OperationTable &table);
void addDots(OperationTable &table);
void addInlinePtx(OperationTable &table);
void addBarriers(OperationTable &table);
void addTensorCopies(OperationTable &table);
void addClusters(OperationTable &table);

/// A product of a warpgroup whose left operand is in registers.
struct RegisterDot {
  /// Without totals it starts at zero.
  llvm::SmallVector<Slot, 4> results, words, totals;
  Slot rhs;
  bool isBfloat, isRhsKMajor;
};

/// Handlers that several families use.
namespace handlers {
void setConstant(Warp &, const Instruction &);
void barrier(Warp &, const Instruction &);
void load(Warp &, const Instruction &);
void store(Warp &, const Instruction &);
void roundToTf32(Warp &, const Instruction &);
void waitForDots(Warp &, const Instruction &);
/// At an mbarrier. `a`: address; `b`: predicate; `c`: bytes that are expected;
/// the latter two may be absent.
void arrive(Warp &, const Instruction &);
void startRegisterDot(Decoder &, mlir::Operation *, const RegisterDot &);
/// Flags of accesses to memory. `a` is the address, `b` a predicate or absent,
/// `constant` is added, `bits` the bytes of an element; the list: alignment,
/// then the elements' slots.
enum : uint32_t {
  kShared = 1,
  kNonCoherent = 2,
  kAtomic = 4,
  kCluster = 8 ///< Shared memory of any block of the cluster.
};
} // namespace handlers

class Decoder {
public:
  Decoder(Program &program, mlir::LLVM::LLVMFuncOp function)
      : program(program), function(function) {}
  llvm::LogicalResult run();
  llvm::LogicalResult decodeBlock(mlir::Block &block);

  /// The slots of a value's elements.
  llvm::ArrayRef<Slot> slots(mlir::Value value) { return values[value]; }
  Slot slot(mlir::Value value) { return values[value].front(); }
  /// New slots for a value.
  llvm::SmallVector<Slot, 4> define(mlir::Value value);
  /// The value is held where others are.
  void alias(mlir::Value value, llvm::ArrayRef<Slot> slots) {
    values[value].assign(slots.begin(), slots.end());
  }
  Slot newSlot(unsigned bits) {
    Slot slot = program.slots;
    program.slots += bits > 32 ? 2 : 1;
    return slot;
  }
  /// A slot that holds the constant in all lanes.
  Slot constant(mlir::Operation *op, uint64_t value, unsigned bits);

  /// Width of an element: 32 or 64 for an index, 64 for a pointer to a buffer
  /// or a map, 32 for one to shared memory.
  unsigned bitsOf(mlir::Type type) const;
  static mlir::Type elementOf(mlir::Type type);

  Instruction &emit(mlir::Operation *op, Handler run);
  uint32_t position() const { return program.code.size(); }
  uint32_t addList(std::vector<uint32_t> list) {
    program.lists.push_back(std::move(list));
    return program.lists.size() - 1;
  }
  /// Copies between registers of active lanes, as if all at once.
  void emitCopies(mlir::Operation *op, llvm::ArrayRef<Slot> to,
                  llvm::ArrayRef<Slot> from, llvm::ArrayRef<unsigned> bits);
  void emitCopies(mlir::Operation *op, mlir::ValueRange to,
                  mlir::ValueRange from);

  /// Whether a block's argument is a tensor map that the kernel gets.
  bool isMap(mlir::BlockArgument argument);
  /// An access of `bytes` through `pointer`, for the shadow memory.
  void noteAccess(mlir::Value pointer, unsigned bytes, bool writes);

  Program &program;

private:
  int rootOf(mlir::Value pointer);

  mlir::LLVM::LLVMFuncOp function;
  llvm::DenseMap<mlir::Value, llvm::SmallVector<Slot, 4>> values;
  llvm::DenseMap<mlir::Operation *, uint32_t> operationNumbers;
};

} // namespace charonia::interpreter

#endif
