// Writes one tile kernel as LLVM IR on vectors.
//
// A tile becomes pieces: its leading axes are enumerated (rows), its innermost
// axis is cut into chunks of the ISA's lanes (of 32 bits; four times as many
// where a kernel has nothing but bytes); a chunk's width is a power of two, and
// the lanes of the last chunk past the extent hold anything. Pieces
// are written on demand, once per scope, from what has effects (stores, loops):
// so chains of elementwise operators run through registers piece by piece,
// whatever the tile's size, and only what a loop carries or captures lives as a
// whole.
#ifndef CHARONIA_CODEGEN_CPU_KERNELEMITTER_H
#define CHARONIA_CODEGEN_CPU_KERNELEMITTER_H

#include "codegen/cpu/CpuCodegen.h"
#include "codegen/tile/analysis/Access.h"
#include "codegen/tile/analysis/Values.h"
#include "codegen/tile/ir/TileDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"
#include "llvm/Target/TargetMachine.h"

namespace charonia::cpu {

using llvm::Value;

/// A tile's shape as rows of chunks.
struct Geometry {
  llvm::ArrayRef<int64_t> shape;
  int64_t rows = 1;  ///< Product of the leading extents.
  int64_t inner = 1; ///< Innermost extent.
  int64_t lanes;

  Geometry(mlir::Type tile, int64_t lanes);
  int64_t chunks() const { return llvm::divideCeil(inner, lanes); }
  int64_t pieces() const { return rows * chunks(); }
  /// Elements of a chunk, and the width of the vector that holds them.
  int64_t valid(int64_t chunk) const {
    return std::min(lanes, inner - chunk * lanes);
  }
  int64_t width(int64_t chunk) const {
    return llvm::PowerOf2Ceil(valid(chunk));
  }
  /// Coordinates of a row along the leading axes, and back.
  llvm::SmallVector<int64_t> coordinates(int64_t row) const;
  int64_t row(llvm::ArrayRef<int64_t> coordinates) const;
};

/// An integer for each lane: scalar + small[lane] + wide[lane].
struct LaneInt {
  llvm::Value *scalar = nullptr; ///< i64, never null.
  llvm::Value *small =
      nullptr; ///< Vector of i32 in [low, high], or null for zeros.
  llvm::Value *wide = nullptr; ///< Vector of i64, or null for zeros.
  int64_t low = 0, high = 0;
  /// Whether the first lane of `small` is 0: the scalar is that lane's value.
  bool fromZero = false;

  bool isScalar() const { return !small && !wide; }
};

/// Which lanes pass the checks of an access: all of `scalar` (null: true) and
/// `mask` (null: all lanes).
struct LaneGuard {
  llvm::Value *scalar = nullptr;
  llvm::Value *mask = nullptr;
  int64_t leading = 0; ///< First lanes that are known to fail.
  /// Where the mask is these lanes and nothing else: [first, end), i32 in [0,
  /// width]; null: 0 and the width. Both null: it is not.
  llvm::Value *first = nullptr, *end = nullptr;
  /// Where these may have lanes on both sides and none between: whether that is
  /// not so. Null: it never is.
  llvm::Value *some = nullptr;
};

/// Both of two conditions, of which null always holds.
llvm::Value *conjunction(llvm::IRBuilder<> &b, llvm::Value *a, llvm::Value *c);

/// What each of the first `valid` lanes adds to the scalar; nothing where that
/// is not known.
std::optional<llvm::SmallVector<int64_t>> constantLanes(const LaneInt &value,
                                                        int64_t valid);

/// Which elements of a run of memory are wanted, where the lanes of `mask` lie
/// at `offsets` from the run's start. Null where too many lanes share one.
llvm::Value *maskOfRun(llvm::IRBuilder<> &b, llvm::Value *mask,
                       llvm::ArrayRef<int64_t> offsets, int64_t run);

/// What the pieces of one load or store have in common.
struct AccessPlan {
  struct Check {
    mlir::AffineExpr coordinate, extent;
    /// Of the innermost dim in the coordinate, where it is a plain term.
    std::optional<int64_t> coefficient;
  };
  tile::AccessOp access;
  graph::Facts facts;
  llvm::SmallVector<unsigned>
      varyingSymbols;            ///< Those that vary along the innermost axis.
  graph::Sum offset;             ///< In elements.
  std::optional<int64_t> stride; ///< Along the innermost axis.
  std::vector<Check> checks;

  void setForms(const graph::Facts &with, mlir::AffineExpr inner);
  std::optional<int64_t> coefficientOfInner(const graph::Sum &sum) const;
  /// Whether offset and checks are linear along the innermost axis.
  bool isRegular() const;
};

class KernelEmitter {
public:
  KernelEmitter(mlir::func::FuncOp function, CpuIsa isa, llvm::Module &module,
                llvm::TargetMachine &machine);

  /// Writes the function; on failure `getError` says why.
  bool run();
  uint64_t scratchBytes() const { return scratchSize; }
  mlir::Operation *errorOp() const { return failedOp; }
  llvm::StringRef errorMessage() const { return failure; }

private:
  // Types, constants, small helpers (KernelEmitter.cpp).
  llvm::Type *elementType(mlir::Type type);
  llvm::Type *memoryType(mlir::Type element);
  int64_t memoryBytes(mlir::Type element);
  llvm::Type *pieceType(llvm::Type *element, int64_t width);
  Geometry geometry(mlir::Value tile) const {
    return Geometry(tile.getType(), lanes);
  }
  /// Vector registers beside those that hold the operands of a step.
  int64_t accumulators() const { return hasAvx512(isa) ? 28 : 14; }
  /// Whether rows of a product's right side are loaded where they are
  /// multiplied. Of 16 registers sums take 12, a row two: where LLVM loads the
  /// next rows early, it sends sums to memory and back.
  bool staysInOrder() const { return !hasAvx512(isa); }
  Value *splat(Value *scalar, int64_t width);
  Value *lane(Value *piece, int64_t index);
  Value *stepVector(llvm::Type *element, int64_t width, int64_t scale = 1);
  Value *laneMask(int64_t valid, int64_t width);
  Value *i64(int64_t value) { return b.getInt64(value); }
  Value *allocateScratch(uint64_t bytes);
  Value *fail(mlir::Operation *op, const llvm::Twine &message,
              llvm::Type *type = nullptr);

  // Loops and branches (Regions.cpp).
  void emitFor(mlir::scf::ForOp loop);
  void emitIf(mlir::scf::IfOp op);
  llvm::SmallVector<Value *> allParts(mlir::Value value);
  void bindParts(mlir::Value value, llvm::ArrayRef<Value *> parts);
  void emitCaptured(mlir::Operation *regionOp);
  bool waitsForInner(mlir::scf::ForOp loop, mlir::BlockArgument carried);
  /// A tile that a loop carries in the scratch, each piece in its own place.
  struct Parked {
    Value *base;
    int64_t pieceBytes;
    llvm::SmallVector<llvm::Type *> types;
  };
  Parked park(llvm::ArrayRef<Value *> parts);
  void storeParked(const Parked &parked, llvm::ArrayRef<Value *> parts,
                   int64_t first = 0);
  std::optional<Parked> findParked(mlir::Value tile);
  bool addsInPlace(mlir::scf::ForOp loop, mlir::BlockArgument carried);
  Value *loadParked(const Parked &parked, int64_t index);
  struct Carried;
  void enter(Carried &carried, llvm::BasicBlock *before);
  void leave(Carried &carried, llvm::BasicBlock *before,
             llvm::BasicBlock *latch);

  // Blocks, scalars (KernelEmitter.cpp).
  void emitBlock(mlir::Block &block);
  /// The function for all instances: where sizes tell whether results go past
  /// the caches, once for each.
  void emitBodies();
  /// The last block for all instances, or each side of the branch that is all
  /// there is in it.
  void emitVersions(llvm::SmallVector<mlir::Block *> path);
  void emitInstances(llvm::ArrayRef<mlir::Block *> path);
  void emitStores(llvm::ArrayRef<tile::StoreOp> group);
  void emitScalarOp(mlir::Operation *op);
  Value *scalar(mlir::Value value);
  void emitWhole(mlir::Value tile);
  void emitEarlierLoads(llvm::ArrayRef<mlir::Operation *> roots);

  // Pieces (Pieces.cpp).
  Value *piece(mlir::Value tile, int64_t row, int64_t chunk);
  Value *computePiece(mlir::Value tile, int64_t row, int64_t chunk);
  llvm::ArrayRef<mlir::Value> arithmeticOf(mlir::Value tile);
  void computeTogether(mlir::Value tile, int64_t index);
  Value *findPiece(mlir::Value tile, int64_t index);
  void setPiece(mlir::Value tile, int64_t index, Value *value);
  Value *element(mlir::Value tile, llvm::ArrayRef<int64_t> coordinates);
  Value *broadcastPiece(tile::BroadcastOp op, int64_t row, int64_t chunk);
  void transposeBlock(tile::TransposeOp op, int64_t row, int64_t chunk);
  Value *constantPiece(mlir::DenseElementsAttr attr, mlir::Type type,
                       int64_t row, int64_t chunk);
  llvm::SmallVector<Value *> transposeVectors(llvm::ArrayRef<Value *> rows,
                                              int64_t width);

  // Elementwise operators and conversions (Elementwise.cpp).
  Value *emitElementwise(mlir::Operation *op, llvm::ArrayRef<Value *> operands,
                         int64_t width);
  Value *comparePositions(llvm::CmpInst::Predicate how, Value *a, Value *c);
  Value *emitCompare(mlir::Operation *op, Value *a, Value *c);
  Value *toF32(Value *value, mlir::Type element);
  Value *fromF32(Value *value, mlir::Type element);
  Value *f64ToF32RoundOdd(Value *value);
  Value *fpExtend(Value *value, mlir::Type from, mlir::Type to);
  Value *fpTruncate(Value *value, mlir::Type from, mlir::Type to);
  Value *emitMinMax(Value *a, Value *c, bool maximum, bool propagateNaN);
  Value *emitExp(Value *x);

  // Affine expressions over lanes (AffineEmission.cpp).
  struct SymbolValues {
    llvm::SmallVector<LaneInt> values;
    llvm::SmallVector<unsigned> depth; ///< Loops around the definition.
    llvm::SmallVector<graph::Interval> ranges;

    /// Of the deepest symbol of an expression; 0: of sizes alone.
    unsigned depthOf(mlir::AffineExpr expr) const;
    /// Whether it is made of sizes alone, and of many.
    bool isOfManySizes(mlir::AffineExpr expr) const;
  };
  SymbolValues symbolValues(mlir::ValueRange symbols,
                            llvm::ArrayRef<int64_t> row, int64_t chunk,
                            const Geometry &geometry);
  LaneInt constantInt(int64_t value);
  /// `facts` are laneFacts of the same dims and symbols.
  LaneInt evaluate(mlir::AffineExpr expr, llvm::ArrayRef<LaneInt> dims,
                   const SymbolValues &symbols, const graph::Facts &facts);
  struct LaneCode;
  /// An expression over a tile's axes and the symbols of `op`, simplified.
  mlir::AffineExpr simplified(mlir::Operation *op, mlir::AffineExpr expr,
                              llvm::ArrayRef<int64_t> tile,
                              mlir::ValueRange symbols);
  /// What is known of all lanes of all instances.
  static graph::Facts laneFacts(llvm::ArrayRef<LaneInt> dims,
                                const SymbolValues &symbols);
  LaneInt add(LaneInt a, LaneInt c);
  LaneInt multiply(LaneInt a, LaneInt c);
  LaneInt atLeastOne(LaneInt a);
  LaneInt divideFloor(LaneInt a, LaneInt c, bool nonNegative, bool remainder);
  Value *widen(LaneInt value, int64_t width);
  LaneInt stepInt(int64_t start, int64_t width);

  // Memory (AccessPlan.cpp, Access.cpp, Transposed.cpp).
  struct PiecePlace {
    int64_t width, valid;
    Value *base; ///< Address of the first element.
    std::optional<int64_t>
        stride; ///< Between lanes, in elements; 0 if all share the address.
    LaneInt offsets; ///< Of the lanes from the base, where the stride is not 0
                     ///< or 1.
    LaneGuard guard;
  };
  // Everywhere, `innermost` names the axis that takes the innermost one's place
  // (the two are exchanged); -1: none.
  const AccessPlan &plan(const tile::AccessOp &access, int64_t innermost = -1);
  PiecePlace place(const tile::AccessOp &access, int64_t innermost, int64_t row,
                   int64_t chunk, bool load = false);
  /// Address for the scalar part of the offset; what lanes add goes to
  /// `lanesOffset`. Where the guard's scalar fails, the address of `zeroBytes`
  /// zeros.
  Value *pointer(const AccessPlan &plan, llvm::ArrayRef<LaneInt> dims,
                 const SymbolValues &symbols, LaneInt *lanesOffset,
                 const LaneGuard *guard = nullptr, int64_t zeroBytes = 0);
  LaneGuard guard(const AccessPlan &plan, llvm::ArrayRef<LaneInt> dims,
                  const SymbolValues &symbols, int64_t width);
  /// A plan, and the lanes of one piece in it.
  struct PlanOfPiece {
    const AccessPlan *plan;
    llvm::SmallVector<LaneInt> dims;
    SymbolValues symbols;
    int64_t start, width, valid;
  };
  PlanOfPiece planOfPiece(const tile::AccessOp &access, int64_t innermost,
                          int64_t row, int64_t chunk);
  Value *inBoundsPiece(tile::InBoundsOp op, int64_t row, int64_t chunk);
  Value *lanesOf(Value *vector, int64_t start, int64_t count);
  Value *concatenate(llvm::ArrayRef<Value *> parts);
  llvm::SmallVector<Value *> registerParts(Value *mask, int64_t leading,
                                           int64_t bytes);
  Value *laneOffsets(const LaneInt &offsets, int64_t width);
  Value *laneOffset(const LaneInt &offsets, int64_t index);
  Value *zeros(int64_t bytes);
  Value *dump();
  Value *fromMemory(Value *value, mlir::Type element);
  Value *toMemory(Value *value, mlir::Type element);
  Value *loadPiece(tile::LoadOp op, int64_t row, int64_t chunk,
                   int64_t innermost = -1);
  void prefetchRow(const tile::AccessOp &access, const PiecePlace &at,
                   const PlanOfPiece &piece, int64_t bytes);
  void prefetchLines(Value *base, Value *lines);
  Value *loadSpread(tile::LoadOp op, const PiecePlace &at, Value *mask);
  /// Of each lane the known part of its distance from the base, and the numbers
  /// of all lanes by which what sizes make is multiplied.
  struct LaneDistances {
    llvm::SmallVector<int64_t> known;
    llvm::SmallVector<std::pair<Value *, llvm::SmallVector<int64_t>>> planes;
  };
  std::optional<LaneDistances> laneDistances(const PlanOfPiece &piece);
  Value *loadPlanes(tile::LoadOp op, const PiecePlace &at,
                    const PlanOfPiece &piece, Value *mask);
  Value *loadRun(tile::LoadOp op, const PiecePlace &at, Value *offset,
                 llvm::ArrayRef<int64_t> own, llvm::ArrayRef<int64_t> known,
                 int64_t most, Value *mask);
  Value *boundsOfRun(const LaneGuard &guard, llvm::ArrayRef<int64_t> offsets,
                     int64_t run);
  int64_t denseAxis(const tile::AccessOp &access);
  void loadTransposed(tile::LoadOp op, int64_t axis, int64_t row,
                      int64_t chunk);
  void storeTransposed(tile::StoreOp op, int64_t axis);
  /// Address of one element, or of `zeroBytes` zeros if its checks fail. The
  /// access must have scalar symbols alone.
  Value *elementPointer(tile::LoadOp op, llvm::ArrayRef<int64_t> coordinates,
                        int64_t zeroBytes);
  static bool hasScalarSymbols(tile::LoadOp op);
  Value *loadScalar(tile::LoadOp op, Value *address);
  Value *loadNarrow(llvm::FixedVectorType *type, Value *address,
                    const LaneGuard &guard, llvm::MDNode *apart);
  void storePiece(tile::StoreOp op, int64_t row, int64_t chunk, Value *value,
                  int64_t innermost = -1);
  void storeLanes(Value *value, Value *address, llvm::Align align, Value *mask,
                  Value *whole, llvm::MDNode *own);
  Value *findCached();
  bool isStreamed(tile::StoreOp op, Value *value);
  void storeStreamed(Value *value, Value *address, llvm::Align align,
                     llvm::MDNode *own, Value *cached);
  void emitPrefetch(tile::PrefetchOp op);

  // Scans (Scan.cpp).
  Value *scanPiece(tile::ScanOp op, unsigned result, int64_t row,
                   int64_t chunk);
  Value *scanInnermost(tile::ScanOp op, int64_t row, int64_t chunk);
  Value *totalPiece(tile::ScanOp op, int64_t row, int64_t chunk);

  // Sorts (Sort.cpp).
  void emitSort(tile::SortOp op);
  struct Heap;

  // Reductions and products (Reduce.cpp, Dot.cpp).
  Value *reducePiece(tile::ReduceOp op, unsigned result, int64_t row,
                     int64_t chunk);
  void reduceInnermost(tile::ReduceOp op, int64_t row, int64_t chunk);
  llvm::SmallVector<Value *> reduceRow(tile::ReduceOp op, int64_t row);
  llvm::SmallVector<Value *> combine(mlir::Block &combiner,
                                     llvm::ArrayRef<Value *> left,
                                     llvm::ArrayRef<Value *> right);
  llvm::SmallVector<Value *> combine(tile::ReduceOp op,
                                     llvm::ArrayRef<Value *> left,
                                     llvm::ArrayRef<Value *> right) {
    return combine(op.getCombiner().front(), left, right);
  }
  struct LeftSide;
  /// A tile in the scratch, row by row.
  struct Staged {
    Value *base;
    int64_t rowBytes;
  };
  /// `inPlace`: the sums stay where a loop has parked them.
  void emitDot(tile::DotOp op, bool inPlace = false);
  LeftSide leftSide(mlir::Value tile);
  Value *leftElement(const LeftSide &left, int64_t m, int64_t k);
  struct Product;
  Product productOf(tile::DotOp op);
  Value *leftTerms(const Product &p, int64_t m, int64_t k);
  Value *rightTerms(const Product &p, int64_t k, int64_t chunk);
  Value *packedQuads(mlir::Value right, int64_t k, int64_t chunk);
  /// Terms of a round of a loop over a right side in the scratch.
  static constexpr int64_t stagedTerms = 8;
  bool isStaged(tile::DotOp op);
  bool stageCaptured(mlir::Value tile, mlir::Operation *region);
  Staged stageRight(mlir::Value tile, mlir::Type sum);
  void addTermsOf(const Product &p, const LeftSide &left, const Staged &right,
                  int64_t firstRow, int64_t count,
                  llvm::MutableArrayRef<Value *> sums);
  void addRows(const Product &p, const Staged &right, int64_t firstRow,
               llvm::MutableArrayRef<Value *> sums);
  Parked parkSums(mlir::Value sums);
  Parked addStaged(tile::DotOp op, Product p);
  Value *interleave(llvm::ArrayRef<Value *> rows);
  Value *addTerms(const Product &p, Value *sum, Value *left, Value *right);
  std::optional<unsigned> axisInPlace(tile::LoadOp load);
  bool isWidened(mlir::Value left);
  Value *widen(Value *bytes, bool isSigned, int64_t rest);
  void prepareLeft(mlir::Value tile, bool memoryMayChange);
  Value *toAccumulator(Value *value, mlir::Type from, mlir::Type to);

  mlir::func::FuncOp function;
  CpuIsa isa;
  int64_t lanes;
  llvm::Module &module;
  llvm::TargetMachine &machine;
  llvm::LLVMContext &context;
  llvm::IRBuilder<> b;
  llvm::Function *kernel = nullptr;
  Value *programId = nullptr, *scratch = nullptr;
  llvm::DenseMap<mlir::Value, Value *>
      scalars; ///< Scalars, and pointers of buffers.

  struct Scope {
    llvm::DenseMap<mlir::Value, llvm::SmallVector<Value *>> pieces;
    llvm::DenseMap<mlir::Value, Staged> staged; ///< Left sides of products.
    llvm::DenseMap<mlir::Value, Staged> rights; ///< And right ones.
    llvm::DenseMap<mlir::Value, Parked> parked;
  };
  llvm::SmallVector<Scope> scopes;

  /// What is computed element by element for a tile (arithmeticOf).
  llvm::DenseMap<mlir::Value, llvm::SmallVector<mlir::Value>> chains;
  bool inChain = false; ///< Pieces are computed together.
  bool inOrder = false; ///< Loads stay where they are (volatile).

  llvm::DenseMap<std::pair<mlir::Operation *, int64_t>,
                 std::unique_ptr<AccessPlan>>
      plans;
  /// Of accesses that are not regular: by operator, axis in the innermost one's
  /// place, chunk.
  std::map<std::tuple<mlir::Operation *, int64_t, int64_t>,
           std::unique_ptr<AccessPlan>>
      chunkPlans;
  /// Expressions of operators by what they were. Nothing erases or changes an
  /// operator while its kernel is emitted.
  llvm::DenseMap<std::pair<mlir::Operation *, mlir::AffineExpr>,
                 mlir::AffineExpr>
      simpleForms;
  llvm::DenseSet<mlir::Operation *>
      assumedInside; ///< Accesses whose checks are known to hold.
  llvm::DenseMap<mlir::Operation *, llvm::MDNode *> storeScopes, noalias;
  llvm::GlobalVariable *zeroBlock = nullptr;
  int64_t zeroBytes = 0;
  Value *dumpArea = nullptr;
  bool streams = false; ///< Whether stores go past the caches.
  /// In the body that is written those do that always do.
  bool isCached = false;
  /// Of results that go past the caches at some sizes 1 where they don't at
  /// these; of an only one the body tells.
  llvm::DenseMap<mlir::Value, Value *> cachedAt;
  uint64_t scratchSize = 0;
  mlir::Operation *failedOp = nullptr;
  std::string failure;
};

} // namespace charonia::cpu

#endif
