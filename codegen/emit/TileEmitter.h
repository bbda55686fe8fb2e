// Demand-driven emission: a kernel is written from its results backward.
//
// A demand names a value of the graph, a tile shape and, for each coordinate of
// the value, an expression over the tile's axes (dims) and the kernel's
// symbols. Emitting it asks the defining operator, which demands tiles of its
// operands in turn: a view changes the expressions, an elementwise operator
// passes them on, a contraction opens its K loop and demands operand tiles
// inside, an input of the region becomes a load. Fusing prologues and epilogues
// is what this recursion does.
//
// Symbols are numbered once for a kernel: first the module's shape symbols,
// then tile numbers, loop counters and tiles of indices as they arise. A symbol
// lives in a scope: the kernel body, the body of a loop or a side of a branch.
// A demand is emitted in the outermost scope that has all its symbols,
// whichever loop asked for it, and is emitted once there: what does not depend
// on a loop never lands in it.
#ifndef CHARONIA_CODEGEN_EMIT_TILEEMITTER_H
#define CHARONIA_CODEGEN_EMIT_TILEEMITTER_H

#include "codegen/emit/Emit.h"
#include "codegen/emit/Schedule.h"
#include "codegen/tile/ir/TileDialect.h"
#include "graph/analysis/StoredParts.h"
#include "graph/ir/Dialect.h"
#include "llvm/ADT/FunctionExtras.h"
#include <map>

namespace charonia::emit {

using graph::Exprs;
using mlir::AffineExpr;
using mlir::FailureOr;
using mlir::Value;

/// Of a product of floats: rounded by itself, never part of a fused
/// multiply-add. What an operator gives is, so that a value is the same number
/// whichever operators read it: max(a·b) − a·b is 0 or more, and what that
/// feeds may need it.
inline constexpr llvm::StringLiteral kRoundedAttr = "emit.rounded";

/// An expression that must lie in [0, extent) for an element to count.
struct Guard {
  AffineExpr coordinate, extent;
  /// It leaves out what of the tile is not its own (see Schedule::Group::own):
  /// nobody wants those elements, whatever computes them.
  bool own = false;
  bool operator==(const Guard &) const = default;
};

/// A tile of a value. Elements for which a guard fails, or a coordinate lies
/// outside the value, may have any content, but reading them is safe; loads
/// give zero there (see isZeroOutside).
struct Demand {
  Value value;
  llvm::SmallVector<int64_t> tile;
  Exprs coordinates;
  llvm::SmallVector<Guard> guards;

  unsigned rank() const { return tile.size(); }
  /// The tile without what guards say is not its own.
  llvm::SmallVector<int64_t> ownTile() const;
};

class TileEmitter {
public:
  TileEmitter(graph::KernelOp kernel, const EmitTarget &target,
              const Schedule &schedule, mlir::OpBuilder &builder,
              mlir::func::FuncOp function);

  // --- What rules call -------------------------------------------------------

  /// A tile of the demanded value in its compute type.
  FailureOr<Value> emit(Demand demand);
  /// ... converted to `element`; a load of that type is passed on unconverted.
  FailureOr<Value> emitAs(Demand demand, mlir::Type element);
  /// emitAs with elements outside of the guards, and of the value, set to zero:
  /// what the K axis of a dot needs.
  FailureOr<Value> emitZeroOutside(Demand demand, mlir::Type element);

  /// A tile of `buffer`, which holds the demanded value, as it is now: for what
  /// this program instance stores there itself.
  FailureOr<Value> emitLoad(const Demand &demand, Value buffer);

  /// The type in which elements are computed: f32 for f16 and bf16, signless
  /// integers for integers.
  mlir::Type computeType(mlir::Type element) const;
  mlir::RankedTensorType tileType(llvm::ArrayRef<int64_t> tile,
                                  mlir::Type element) const {
    return mlir::RankedTensorType::get(tile, element);
  }

  const EmitTarget &getTarget() const { return target; }
  const Schedule &getSchedule() const { return schedule; }
  graph::KernelOp getKernel() const { return kernel; }
  mlir::OpBuilder &b() { return builder; }
  mlir::Location loc() const { return location; }
  mlir::MLIRContext *context() const { return builder.getContext(); }
  AffineExpr constant(int64_t value) {
    return mlir::getAffineConstantExpr(value, context());
  }
  AffineExpr axis(unsigned i) { return mlir::getAffineDimExpr(i, context()); }

  /// What is known of dims of these extents and of all symbols.
  graph::Facts facts(llvm::ArrayRef<int64_t> tile) const;
  /// The expression by what is known of those. It is kept: of what is joined
  /// from hundreds of parts most coordinates are those of the part before.
  AffineExpr simplify(AffineExpr expr, llvm::ArrayRef<int64_t> tile) const;

  /// A new symbol: an index value in [0, limit) (limit over symbols, or null)
  /// of the current scope, and a multiple of `divisor`.
  AffineExpr addSymbol(Value value, AffineExpr limit, int64_t divisor = 1);
  /// A new symbol that is a tile of integers; axis i of it lies along axis
  /// `axes[i]` of the demands that use the symbol. Its elements lie in [0,
  /// limit), or anywhere if `limit` is null.
  AffineExpr addTileSymbol(Value tile, llvm::ArrayRef<int64_t> axes,
                           AffineExpr limit);
  /// A symbol for an expression that may leave [0, limit) along axis `axis`,
  /// for elements that are then thrown away: what is demanded is simplified as
  /// if it never did. Accesses see the expression itself, with their checks.
  AffineExpr addBounded(AffineExpr expr, unsigned axis, AffineExpr limit);
  /// A tile without the axes that it merely repeats along, and the axes it has.
  static std::pair<Value, llvm::SmallVector<int64_t>>
  withoutBroadcast(Value tile);
  /// f(expr) for each element, as a symbol: `f` gets a tile of indices of just
  /// the axes that `expr` depends on and gives a tile of the same shape.
  AffineExpr mapIndex(AffineExpr expr, llvm::ArrayRef<int64_t> tile,
                      AffineExpr limit, llvm::function_ref<Value(Value)> f);
  /// The demand on a tile of other axes: axis i becomes axis `axes[i]` (-1: it
  /// is not used) of a tile of extents `tile`.
  Demand moveAxes(const Demand &demand, llvm::ArrayRef<int64_t> axes,
                  llvm::ArrayRef<int64_t> tile);
  /// The demand with one more axis at the end, which moves nothing yet.
  Demand addAxis(const Demand &demand, int64_t extent);
  /// Whether an expression depends on an axis, be it through a tile symbol.
  bool dependsOnAxis(AffineExpr expr, unsigned axis) const;

  /// The value of an expression over symbols, as an index; each part in the
  /// outermost scope that has its symbols. Right for negative operands.
  Value materialize(AffineExpr expr);
  /// A tile of the values of an expression over axes and symbols.
  Value emitIndex(AffineExpr expr, llvm::ArrayRef<int64_t> tile);
  /// Whether all guards hold, as a tile of i1; null where that is certain.
  Value emitInBounds(llvm::ArrayRef<Guard> guards,
                     llvm::ArrayRef<int64_t> tile);
  /// A tile of one constant.
  Value splat(mlir::TypedAttr value, llvm::ArrayRef<int64_t> tile);
  Value splat(double value, mlir::Type element, llvm::ArrayRef<int64_t> tile);
  Value splatLike(double value, Value tile);
  /// x / y where two units in the last place do no harm, as inside of a
  /// softmax.
  Value quotient(Value x, Value y);
  /// mask ? x : constant (x where mask is null).
  Value maskWith(Value mask, Value x, double otherwise);

  /// for i in [0, count) carrying values; the body gets the counter as a
  /// symbol. A count of 1 without limits emits the body alone, 0 gives the
  /// initial values.
  using LoopBody = llvm::function_ref<FailureOr<llvm::SmallVector<Value>>(
      AffineExpr counter, llvm::ArrayRef<Value> carried)>;
  FailureOr<llvm::SmallVector<Value>>
  loop(AffineExpr count, llvm::ArrayRef<Value> initial, LoopBody body) {
    return loop(count, {}, initial, body);
  }
  /// Iterations outside of these may be left out, as long as all `isScalar`.
  struct Limits {
    llvm::SmallVector<AffineExpr, 2> firsts, ends;
  };
  FailureOr<llvm::SmallVector<Value>> loop(AffineExpr count,
                                           const Limits &limits,
                                           llvm::ArrayRef<Value> initial,
                                           LoopBody body);
  /// The tiles of `tile` elements that an open extent has, as a symbol for the
  /// first element of each and an expression for its number: those that lie
  /// inside as a whole, of which that is known, then the one that is left if
  /// any is, which begins inside.
  using TileBody = llvm::function_ref<FailureOr<llvm::SmallVector<Value>>(
      AffineExpr begin, AffineExpr number, llvm::ArrayRef<Value> carried)>;
  FailureOr<llvm::SmallVector<Value>>
  loopOverTiles(AffineExpr extent, int64_t tile, llvm::ArrayRef<Value> initial,
                TileBody body);
  /// One side or the other, each a scope of its own: what depends on symbols
  /// that are added there stays there.
  using Side = llvm::function_ref<llvm::LogicalResult()>;
  llvm::LogicalResult branch(Value condition, Side then, Side otherwise);
  /// The same of sides that give a tile of type `type`.
  using ValueSide = llvm::function_ref<FailureOr<Value>()>;
  FailureOr<Value> branch(Value condition, mlir::Type type, ValueSide then,
                          ValueSide otherwise);
  /// The same where `extent` is from 1 to `most`, which `then` may rely on
  /// (boundsOf), or not. Nothing of either side is emitted in front of both.
  llvm::LogicalResult branchOnExtent(AffineExpr extent, int64_t most, Side then,
                                     Side otherwise);
  /// What is known here of an extent over symbols.
  graph::Interval boundsOf(AffineExpr extent) const;
  /// Whether an extent fits into a tile of so many elements, and is not empty:
  /// what has a part that is empty takes no step.
  bool isOneTile(AffineExpr extent, int64_t tile) const;
  /// Whether an expression is the same for all elements of a tile.
  bool isScalar(AffineExpr expr) const;
  /// On a CPU: what is the same for a whole tile, and between the same
  /// multiples of `step` as the coordinate of each of its elements; null if
  /// nothing is.
  AffineExpr placeOfTile(AffineExpr coordinate, int64_t step,
                         llvm::ArrayRef<int64_t> tile) const;
  /// How many neighbours of the same dimension a tile has elements of, at most;
  /// nothing where that is not known.
  std::optional<int64_t> spanOf(AffineExpr coordinate,
                                llvm::ArrayRef<int64_t> tile) const;
  /// On a CPU: whether all of a tile lies in the guard's extent, as a scalar;
  /// null where that is not told by two comparisons.
  Value isInsideAsWhole(const Guard &guard, llvm::ArrayRef<int64_t> tile);
  /// Where that holds: the guard's coordinate, so that nothing looks at an
  /// element's place. Of the current scope, which is the branch.
  AffineExpr insideAsWhole(const Guard &guard, llvm::ArrayRef<int64_t> tile);
  /// What `side` emits stays in the current scope, also where its symbols are
  /// known outside.
  FailureOr<Value> staying(ValueSide side);
  /// Sides of branches around what is emitted that each give the same tile in
  /// another way, so that all they need is emitted once a side.
  unsigned &sides() { return sidesAround; }

  /// Emits tiles of `demand.tile` once for each (demand, part), in the
  /// outermost scope that has the demand's symbols. `emitter` gets the demand
  /// without the axes that move nothing and gives tiles of that shape; they are
  /// repeated along the others. Parts above 0 are for what an operator needs
  /// and is no value of the graph (the row maximum of a softmax: a demand
  /// without the row's axis).
  FailureOr<llvm::SmallVector<Value>> emitPart(
      Demand demand, unsigned part,
      llvm::function_ref<FailureOr<llvm::SmallVector<Value>>(const Demand &)>
          emitter);

  /// An error about the operator of the demand, at its location.
  mlir::InFlightDiagnostic error(const Demand &demand, const llvm::Twine &what);

  /// Where the instance stands in a grid of tiles: neighbours differ in `fast`
  /// (`fastCount` of them, at the symbols' opt values), and `slow` is the next
  /// tile number that moves when those are through. Symbols; null where there
  /// is none.
  struct GridPosition {
    AffineExpr fast, slow;
    int64_t fastCount = 1;
    /// Neighbours at the symbols' smallest values.
    int64_t fewest = 1;
  };
  const GridPosition &getGridPosition() const { return position; }
  /// Hints that the element at `coordinates` (over symbols alone) of `value`
  /// will be wanted. Nothing is emitted where that is more than a read of
  /// memory.
  void prefetch(Value value, llvm::ArrayRef<AffineExpr> coordinates);
  /// How program instances share the terms of one contraction: this one takes
  /// part `part` of `count`, and `sum` adds up what they all hold.
  struct Split {
    int64_t count = 1;
    AffineExpr part;
    Value partValue, tile, scratch, counters;
    /// The parts are a cluster, and each goes on with its share of this axis of
    /// the kernel's tile.
    std::optional<unsigned> sharedAxis;
  };
  const Split &getSplit() const { return split; }
  void setSplit(Split value) { split = std::move(value); }
  /// The instances of a cluster, of which this one is `part`, share the tiles
  /// of a row: tile `part`, and from there every `count`th.
  struct RowShare {
    int64_t count = 1;
    AffineExpr part;
  };
  const RowShare &getRowShare() const { return rowShare; }
  void setRowShare(RowShare value) { rowShare = value; }
  /// Whether a coordinate is the same in all instances that share a row.
  bool isOfWholeRow(AffineExpr coordinate) const;
  /// Says that each of the instances reduces something by itself.
  void noteUnshared() { hasUnshared = true; }
  bool isAnyUnshared() const { return hasUnshared; }
  /// What each instance of the cluster gives, instance by instance; tiles of
  /// one type.
  llvm::SmallVector<llvm::SmallVector<Value>>
  exchange(llvm::ArrayRef<Value> tiles);
  /// The sum over the parts of the split, in the one program instance that goes
  /// on, or each one's share of axis `sharedAxis` of the tile.
  Value sumParts(Value tile, std::optional<unsigned> sharedAxis = {});

  /// Writes a tile of a result; coordinates need not be simplified. With
  /// `update` several elements of the tile, and of other program instances, may
  /// have one place.
  void storeResult(Value tile, Value buffer, Demand demand,
                   tile::UpdateAttr update = {},
                   std::optional<graph::StoredPart> part = {});

  // --- What Kernel.cpp calls -------------------------------------------------

  /// The buffer that a block argument of the region, or a result, is.
  Value bufferOf(Value graphValue) { return buffers.lookup(graphValue); }
  void setBuffer(Value graphValue, Value buffer) {
    buffers[graphValue] = buffer;
  }
  void setGridPosition(const GridPosition &p) { position = p; }

private:
  struct SymbolInfo {
    Value value;
    graph::Interval range;
    int64_t divisor;
    AffineExpr limit;
    unsigned scope;
    /// A tile of indices: base axis i is tile axis `axes[i]` of the demands.
    bool isTile = false;
    llvm::SmallVector<int64_t> axes{};
    /// What a bounded symbol stands for, over its base axes; it has no value.
    AffineExpr bounded{};
  };
  struct Key {
    const void *value;
    unsigned part;
    llvm::SmallVector<int64_t> tile;
    llvm::SmallVector<const void *> exprs;
    auto operator<=>(const Key &o) const {
      return std::tie(value, part, tile, exprs) <=>
             std::tie(o.value, o.part, o.tile, o.exprs);
    }
  };
  struct Scope {
    mlir::Operation *loop = nullptr; ///< Or branch.
    std::map<Key, llvm::SmallVector<Value>> memo;
  };

  /// Gives a symbol another range, and returns the one it had.
  graph::Interval exchangeRange(unsigned symbol, graph::Interval range);
  /// [0, limit); a null limit is none.
  graph::Interval below(AffineExpr limit) const;
  struct IndexCode;

  Key makeKey(const Demand &demand, unsigned part) const;
  unsigned scopeOf(const Demand &demand) const;
  unsigned scopeOf(AffineExpr expr) const;
  FailureOr<llvm::SmallVector<Value>>
  once(const Demand &demand, unsigned part,
       llvm::function_ref<FailureOr<llvm::SmallVector<Value>>(const Demand &)>
           emitter);
  FailureOr<Value> emitHere(const Demand &demand);
  struct Access {
    mlir::AffineMap map, shape;
    llvm::SmallVector<Value> symbols;
    llvm::SmallVector<int64_t> checks;
    int64_t rank;
  };
  /// `part`: of what is stored as a part of a larger value.
  Access makeAccess(const Demand &demand,
                    std::optional<graph::StoredPart> part = {});
  /// A coordinate as what is the same for a whole tile, and the range of the
  /// rest.
  std::pair<AffineExpr, graph::Interval>
  startAndRest(AffineExpr coordinate, const graph::Facts &known) const;
  /// The same of what is demanded of a tile, whatever bounds it.
  std::pair<AffineExpr, graph::Interval>
  startAndRest(AffineExpr coordinate, llvm::ArrayRef<int64_t> tile) const;
  /// On a CPU, where all elements of a tile lie in [0, extent) or none does:
  /// what tells it, the same for all of them. Else the coordinate itself.
  AffineExpr ofWholeTile(AffineExpr coordinate, AffineExpr extent,
                         const graph::Facts &known) const;
  /// The condition (without bounded symbols), on a CPU without the division
  /// that makes it another one for each element, where that can be:
  /// e floordiv 3 + x lies in [0, n) where e + 3 x lies in [0, 3 n).
  Guard withoutDivision(Guard guard, llvm::ArrayRef<int64_t> tile) const;
  /// The expression with what bounded symbols stand for.
  AffineExpr unbounded(AffineExpr expr, llvm::ArrayRef<int64_t> tile) const;
  /// Renumbers the symbols that the expressions use and gives their values,
  /// tiles of indices in the rank of `tile`.
  llvm::SmallVector<Value> compress(llvm::MutableArrayRef<AffineExpr> exprs,
                                    llvm::ArrayRef<int64_t> tile);
  void forEachSymbol(AffineExpr expr,
                     llvm::function_ref<void(unsigned)> f) const;
  /// Runs `f` with the builder and the scope stack at `scope`.
  template <typename F> auto atScope(unsigned scope, F f);

  graph::KernelOp kernel;
  const EmitTarget &target;
  const Schedule &schedule;
  mlir::OpBuilder &builder;
  mlir::Location location;
  llvm::SmallVector<SymbolInfo> symbols;
  /// What expressions of a tile are simplified to.
  mutable std::map<llvm::SmallVector<int64_t>,
                   llvm::DenseMap<AffineExpr, AffineExpr>>
      simplified;
  llvm::SmallVector<Scope> scopes;
  llvm::DenseMap<Value, Value> buffers;
  GridPosition position;
  Split split;
  RowShare rowShare;
  bool hasUnshared = false;
  unsigned sidesAround = 0;
  /// The outermost scope in which demands are emitted, and what is assumed of
  /// an extent there (null: nothing).
  unsigned outermost = 0;
  AffineExpr assumed;
  int64_t assumedMost = 0;
};

template <typename F> auto TileEmitter::atScope(unsigned scope, F f) {
  mlir::OpBuilder::InsertionGuard guard(builder);
  llvm::SmallVector<Scope> inner;
  for (unsigned i = scope + 1; i < scopes.size(); ++i)
    inner.push_back(std::move(scopes[i]));
  scopes.truncate(scope + 1);
  if (!inner.empty())
    builder.setInsertionPoint(inner.front().loop);
  auto result = f();
  for (Scope &s : inner)
    scopes.push_back(std::move(s));
  return result;
}

/// Whether elements outside of the access's checks are certainly zero: a load,
/// or conversions and broadcasts of one.
bool isZeroOutside(Value tile);

} // namespace charonia::emit

#include "codegen/emit/EmitInterface.h.inc"

#endif
