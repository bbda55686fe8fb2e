// From the simt dialect to code for one thread.
//
// Every tile becomes the values of its registers; loops carry them. Integer
// code is built as arith on index (IndexBuilder), memory and tensor core
// instructions in the llvm and nvvm dialects. What is left is scalar: the usual
// conversions finish it.
#ifndef CHARONIA_CODEGEN_GPU_LOWER_LOWERING_H
#define CHARONIA_CODEGEN_GPU_LOWER_LOWERING_H

#include "codegen/gpu/LayoutPlan.h"
#include "codegen/gpu/ir/SimtDialect.h"
#include "codegen/gpu/lower/IndexBuilder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"

namespace charonia::gpu {

struct LoweringOptions {
  unsigned warps = 4;
  /// Width of indices in the kernel: 32, or 64 where a buffer may have 2^31
  /// elements.
  unsigned indexBits = 32;
  int64_t sharedBytes = 0;
  /// Program instances for which a multiprocessor should have registers.
  unsigned residents = 1;
};

/// What one thread holds of a tile: element r in register r of the layout, or,
/// for operands of tensor core instructions, i32 with all elements of 32 bits.
struct ThreadTile {
  llvm::SmallVector<mlir::Value> values;
  bool packed = false;
};

/// The hardware's barrier for all warps but one that copies; those of each
/// warpgroup have the next ones.
constexpr int64_t kBarrierOfComputing = 1;

/// A tensor map that a kernel takes: of which argument, and what it says.
struct TensorMapArgument {
  unsigned argument;
  simt::TensorMapAttr tensor;
  bool operator==(const TensorMapArgument &) const = default;
};

class KernelLowering {
public:
  KernelLowering(mlir::func::FuncOp kernel, mlir::OpBuilder &builder,
                 const LoweringOptions &options);

  /// The kernel as an llvm.func at the builder's insertion point.
  mlir::FailureOr<mlir::LLVM::LLVMFuncOp> run();
  /// Behind the kernel's own arguments, in order.
  llvm::ArrayRef<TensorMapArgument> tensorMaps() const { return maps; }

private:
  using Value = mlir::Value;
  using Values = llvm::SmallVector<Value>;

  // --- Lowering.cpp: the function, what operators become ---
  void createFunction();
  /// Thread, lane and warp, at the start of the function.
  void findThread();
  /// Any operator: one of the families below, else scalar code.
  mlir::LogicalResult lower(mlir::Operation *op);
  /// The values that stand for `value`, and back.
  Values flatten(Value value);
  void bind(Value value, mlir::ValueRange values);
  mlir::Type scalarType(Value tile) const;
  /// What a register holds of an element: of floats of 8 bits their byte.
  static mlir::Type heldType(mlir::Type element);
  /// A scalar of the kernel; constants have no value.
  IndexSum sumOf(Value scalar);

  /// Of a program instance, those of a copy warp too.
  unsigned numThreads() const { return (options.warps + copyWarps) * kLanes; }

  // --- Lowering.cpp: thread coordinates ---
  /// What the lane and warp contribute to the coordinate of an axis (or an
  /// offset).
  IndexSum threadPart(const LinearLayout &layout, Dim out);
  /// Coordinate of a register.
  IndexSum coordinate(const LinearLayout &layout, unsigned reg, Dim out);
  llvm::SmallVector<IndexSum> coordinates(const LinearLayout &layout,
                                          unsigned reg);
  /// True (null) or whether this thread is the first of those that hold copies.
  Value firstHolder(const LinearLayout &layout);

  // --- Structure.cpp ---
  mlir::LogicalResult lowerBlock(mlir::Block &block);
  mlir::LogicalResult lowerOp(mlir::scf::ForOp op);
  mlir::LogicalResult lowerOp(mlir::scf::IfOp op);

  // --- Leaves.cpp: where values begin, scalar code ---
  void lowerOp(tile::ProgramIdOp op);
  void lowerOp(mlir::arith::ConstantOp op);
  void lowerOp(tile::SplatOp op);
  void lowerOp(tile::IndexOp op);
  void lowerOp(tile::InBoundsOp op);
  void bindSplat(Value tile, Value scalar);
  mlir::LogicalResult lowerScalar(mlir::Operation *op);
  /// What an operator on indices gives; nothing for one that is only copied.
  std::optional<IndexSum> indexArithmetic(mlir::Operation *op);

  // --- Addresses.cpp: where buffers are accessed ---
  struct Address {
    Value pointer;
    int64_t bytes; // to add
    auto operator<=>(const Address &o) const {
      return std::pair(pointer.getAsOpaquePointer(), bytes) <=>
             std::pair(o.pointer.getAsOpaquePointer(), o.bytes);
    }
  };
  /// One access: what is the same for all its registers.
  struct AddressPlan {
    tile::AccessOp access;
    graph::Facts facts;                        // of dims and symbols
    mlir::AffineExpr offset;                   // in elements
    llvm::SmallVector<mlir::AffineExpr> terms; // its summands
    llvm::SmallVector<mlir::AffineExpr> checks, extents;
    unsigned elementBytes;
  };
  AddressPlan planAddresses(const tile::AccessOp &access);
  llvm::SmallVector<IndexSum> symbolsOf(const tile::AccessOp &access,
                                        const LinearLayout &layout,
                                        unsigned reg);
  Address addressOf(const AddressPlan &plan, llvm::ArrayRef<IndexSum> dims,
                    llvm::ArrayRef<IndexSum> symbols);
  /// Whether the checks hold for a register; null: always, see isNever.
  Value predicateOf(const AddressPlan &plan, const LinearLayout &layout,
                    unsigned reg, llvm::ArrayRef<IndexSum> dims,
                    llvm::ArrayRef<IndexSum> symbols);
  unsigned depthOf(mlir::AffineExpr expr, mlir::ValueRange symbols) const;
  /// A predicate that is known to be false.
  bool isNever(Value predicate) const;
  Value pointerOf(const Address &address);

  // --- Vectors.cpp ---
  Values loadVector(const Address &address, Value predicate, mlir::Type element,
                    unsigned count, bool independent);
  void storeVector(const Address &address, Value predicate,
                   llvm::ArrayRef<Value> values);
  Value packBits(llvm::ArrayRef<Value> values);
  Values packWords(llvm::ArrayRef<Value> values);
  Values unpackWords(llvm::ArrayRef<Value> words, mlir::Type element,
                     unsigned count);
  Values unpackBits(Value bits, mlir::Type element, unsigned count);

  // --- Memory.cpp: buffers ---
  /// Of the elements of a vector: whether all are inside (null: they are), and
  /// whether only some are (null: never).
  struct Inside {
    Value all, some;
  };
  /// `registers`: of the vector. `mayEnd`: its elements do not agree.
  Inside insideOf(const AddressPlan &plan, const LinearLayout &layout,
                  llvm::ArrayRef<unsigned> registers, bool mayEnd);
  /// What a copy of `bytes` reads: null for all, 0 where it is not inside.
  Value bytesWhere(Value inside, unsigned bytes);
  /// The same for a vector whose first elements are inside: aligned parts of it
  /// agree.
  Value bytesInside(const AddressPlan &plan, const LinearLayout &layout,
                    llvm::ArrayRef<unsigned> registers, unsigned part,
                    unsigned bytes);
  /// Runs that begin anywhere: of each, two aligned vectors.
  void loadRuns(tile::LoadOp op, const AddressPlan &plan, unsigned axis);
  /// The elements of a vector of which some are inside, one by one.
  Values loadElements(const AddressPlan &plan, const LinearLayout &layout,
                      llvm::ArrayRef<unsigned> registers, bool independent);
  /// `values`, or what `by` gives where the condition holds.
  Values replaceWhere(Value condition, llvm::ArrayRef<Value> values,
                      llvm::function_ref<Values()> by);
  void doWhere(Value condition, llvm::function_ref<void()> what,
               llvm::function_ref<void()> otherwise = nullptr);
  void lowerOp(tile::LoadOp op);
  void lowerOp(tile::StoreOp op);
  /// What was loaded in a block since memory was last written: block, address,
  /// predicates, element, number of elements. Registers of one address, which
  /// broadcasting axes give, and neighbours of a window are loaded once.
  std::map<std::tuple<mlir::Block *, Address, const void *, const void *,
                      const void *, size_t>,
           Values>
      loaded;
  // --- Update.cpp ---
  void lowerUpdate(tile::StoreOp op);
  void updateElement(Value pointer, tile::Update update, Value value);
  // --- SplitSum.cpp ---
  struct SplitPlaces;
  void leavePart(const SplitPlaces &places, llvm::ArrayRef<Value> values);
  /// Counts this part at `counter`; only the last one goes on.
  void countPart(tile::SplitSumOp op, Value counter);
  /// The number that the share of this part has in a thread's registers, whose
  /// own bits of coordinates from `first` on are taken off.
  Value ownShare(tile::SplitSumOp op, unsigned first);
  /// That number among those which the bits `mask` tell apart; null: one.
  Value numberOf(Value share, unsigned mask);
  /// The sums of `count` values that all parts left behind `from`.
  Values addParts(const SplitPlaces &places, Value from, int64_t parts,
                  int64_t count);
  mlir::LogicalResult lowerOp(tile::SplitSumOp op);
  // --- Exchange.cpp ---
  /// The instances of the cluster meet: what each did before is done for all.
  void arriveAtCluster();
  void waitForCluster();
  /// The values that a part left in `slots` of the memory whose place of this
  /// thread is `own`.
  Values readPart(Value own, int64_t part, int64_t slots, int64_t slotBytes);
  /// Whether the kernel's clusters are of so many instances; 1: it has none.
  mlir::LogicalResult checkCluster(mlir::Operation *op, int64_t parts);
  mlir::LogicalResult lowerOp(simt::ExchangeOp op);

  // --- Shared.cpp: shared memory ---
  /// Start of a memory value, in bytes from the start of shared memory.
  IndexSum sharedStart(Value memory);
  /// Pointers into a memory value by a linear map to its element offsets.
  Value sharedPointer(Value memory, const LinearLayout &offsets, unsigned reg,
                      uint64_t startOffset = 0);
  void lowerOp(simt::AllocOp op);
  void lowerOp(simt::SlotOp op);
  void lowerOp(simt::StoreSharedOp op);
  void lowerOp(simt::LoadSharedOp op);
  bool lowerMatrixLoad(simt::LoadSharedOp op);
  void lowerOp(simt::CopyAsyncOp op);
  void lowerOp(simt::CommitAsyncOp op);
  void lowerOp(simt::WaitAsyncOp op);
  void lowerOp(simt::BarrierOp op);
  void lowerOp(simt::WaitDependenciesOp op);
  void lowerOp(simt::LaunchDependentsOp op);
  void lowerOp(simt::FenceDeviceOp op);

  // --- Boxes.cpp: the copy engine ---
  void findTensorMaps();
  void annotateTensorMaps();
  void prefetchTensorMaps();
  /// `bytes` behind the start of a memory value.
  Value sharedPointer(Value memory, int64_t bytes = 0);
  /// A condition that holds in this thread of the program instance alone.
  Value isThread(unsigned number);
  void lowerOp(simt::InitBarriersOp op);
  void lowerOp(simt::ExpectBytesOp op);
  void lowerOp(simt::ArriveOp op);
  void lowerOp(simt::WaitBarrierOp op);
  mlir::LogicalResult lowerOp(simt::CopyWarpOp op);
  void lowerOp(simt::CoordinatesOp op);
  /// Indices as integers of `bits`.
  Values integersOf(mlir::ValueRange indices, unsigned bits);
  void lowerOp(simt::CopyBoxOp op);

  // --- Chains.cpp ---
  /// Elementwise operators one behind the other, and what was made of them, of
  /// which registers.
  struct Chain {
    unsigned operators = 0;
    llvm::SmallVector<std::pair<unsigned, mlir::Operation *>> made;
  };
  /// What was emitted behind `before` (null: in the block) is of a register.
  void noteInChain(unsigned reg, mlir::Operation *before);
  /// Nothing more is of the chain. Orders what was made by registers.
  void endChain();

  // --- Compute.cpp ---
  mlir::LogicalResult lowerElementwise(mlir::Operation *op);
  Value scalarOp(mlir::Operation *op, mlir::ValueRange operands,
                 mlir::Type type);
  void lowerRounding(mlir::Operation *op);
  void lowerToFloat8(mlir::Operation *op);
  void lowerFromFloat8(mlir::Operation *op);
  void lowerReduce(mlir::Operation *op, unsigned axis, mlir::Region &combiner,
                   const LinearLayout &result);
  Values combine(mlir::Region &combiner, mlir::ValueRange left,
                 mlir::ValueRange right);
  void lowerOp(tile::ReduceOp op);
  void lowerOp(simt::WarpReduceOp op);
  // Scan.cpp
  void lowerOp(tile::ScanOp op);
  void lowerOneByOne(tile::ScanOp op);
  // Sort.cpp
  void lowerOp(tile::SortOp op);
  void lowerOp(simt::ConvertOp op);
  void lowerOp(tile::BroadcastOp op);
  void lowerOp(tile::TransposeOp op);
  void lowerOp(tile::SplitAxisOp op);
  void lowerOp(tile::JoinAxesOp op);
  void lowerOp(tile::CellPartOp op);
  void lowerOp(tile::SwapHalvesOp op);
  void lowerOp(simt::SliceOp op);
  void lowerOp(simt::JoinOp op);
  Value shuffle(Value value, mlir::StringRef kind, Value laneOrMask);
  void lowerOp(simt::DotOp op);
  void lowerMma(simt::DotOp op);
  void lowerMultiplyAdd(simt::DotOp op);

  // --- Dots.cpp: dots of warpgroups ---
  struct GroupOperand;
  void findGroup();
  Value descriptorOf(IndexSum start, uint64_t bits);
  IndexSum operandStart(const GroupOperand &operand, int64_t parts,
                        int64_t shift);
  Value structure(llvm::ArrayRef<Value> values);
  Value dotOfShared(const GroupOperand &lhs, const GroupOperand &rhs,
                    Value left, Value right, Value total, bool isFirst);
  Value dotOfRegisters(const GroupOperand &rhs, mlir::ValueRange words,
                       Value right, Value total, bool isFirst);
  void lowerOp(simt::WarpgroupDotOp op);
  void lowerOp(simt::WaitDotsOp op);
  void lowerOp(simt::FenceSharedOp op);
  /// Elements one by one, or packed in i32.
  Values elements(Value tile);
  Values packed(Value tile);

  // --- Math.cpp ---
  /// A conversion of integers that are known to have few bits; null otherwise.
  Value floatOfFewBits(mlir::Operation *op, Value integer);
  /// Such a float and a small whole number that is known; null otherwise.
  Value shiftedFewBits(mlir::Operation *op, mlir::ValueRange operands);
  /// That, or approximations of elementary functions; null where the operator
  /// is no such one.
  Value mathOp(mlir::Operation *op, mlir::ValueRange operands);

  Value i32(int64_t value);
  Value toInteger(Value index, mlir::Type type);
  Value toIndex(Value integer);
  mlir::Type indexInteger() { return b.getIntegerType(options.indexBits); }

  mlir::func::FuncOp kernel;
  mlir::OpBuilder &b;
  LoweringOptions options;
  mlir::Location loc;
  mlir::LLVM::LLVMFuncOp function;
  std::unique_ptr<IndexBuilder> index;
  mlir::IRMapping scalars;
  llvm::DenseMap<Value, ThreadTile> tiles;
  llvm::DenseMap<Value, IndexSum> memories;
  llvm::DenseMap<int64_t, Value> i32Constants;
  /// Of floats of few bits what they are less than another number, and that.
  llvm::DenseMap<Value, std::pair<Value, float>> fewBits;
  Value threadId, laneId, warpId, sharedBase;
  llvm::SmallVector<TensorMapArgument> maps;
  unsigned copyWarps = 0;
  Chain chain;
  /// Behind an arrival at the cluster's barrier that nobody has waited for.
  bool hasArrived = false;
  /// Of four warps, known to be the same in all lanes; where dots ask for it.
  Value groupId;
};

/// What is known of `check` < `extent` for a register, whichever the thread: of
/// a coordinate of the tile alone.
std::optional<bool> decide(mlir::AffineExpr check, mlir::AffineExpr extent,
                           const LinearLayout &layout, unsigned reg);

} // namespace charonia::gpu

#endif
