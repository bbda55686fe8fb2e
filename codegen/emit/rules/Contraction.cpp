// Matmul and convolution: operand coordinates for the K loop of Dot.h.
#include "codegen/emit/rules/Dot.h"
#include "graph/analysis/Pairs.h"
#include "graph/ir/FormedOps.h"

using namespace mlir;
using namespace charonia;
using namespace charonia::emit;
using graph::OpRole;

namespace {

/// Whether a float type has all values of another, which round to none.
bool isWider(Type to, Type from) {
  return isa<FloatType>(to) && isa<FloatType>(from) &&
         llvm::APFloat::isRepresentableBy(
             cast<FloatType>(from).getFloatSemantics(),
             cast<FloatType>(to).getFloatSemantics());
}

/// Where elements of an operand [`shape`] are computed, seen through views and
/// conversions to wider floats.
struct Computed {
  Value value;
  AffineMap map; ///< From the operand's coordinates.
};

Computed seenThrough(Computed x, ArrayRef<AffineExpr> shape) {
  while (auto op = x.value.getDefiningOp<graph::GraphOpInterface>()) {
    bool converts = isa<graph::CastOp>(op) &&
                    isWider(getElementTypeOrSelf(x.value),
                            getElementTypeOrSelf(op->getOperand(0)));
    if (!converts && op.getRole() != OpRole::View)
      break;
    x.map = graph::composeMaps(op.getOperandMap(0), x.map, shape);
    x.value = op->getOperand(0);
  }
  return x;
}

/// For how many neighbours along dimension `d`, whose extent is `extent`, a map
/// gives the same: 0: for all, 1: for none, or not known.
int64_t blockAlong(AffineMap map, unsigned d, ArrayRef<AffineExpr> shape) {
  if (!map.isFunctionOfDim(d))
    return 0;
  int64_t block = 1;
  auto isOf = [&](AffineExpr e) {
    auto divided = dyn_cast<AffineBinaryOpExpr>(e);
    auto by = divided ? graph::constantOf(divided.getRHS()) : std::nullopt;
    if (!by || divided.getKind() != AffineExprKind::FloorDiv ||
        divided.getLHS() != getAffineDimExpr(d, map.getContext()))
      return false;
    block = *by;
    return true;
  };
  map = graph::simplify(map, shape);
  for (AffineExpr e : map.getResults())
    if (e.isFunctionOfDim(d) && (block != 1 || !isOf(e)))
      return 1;
  return block;
}

/// rhs of a product of two operands [.., K, N] as one without a scale and the
/// scale, where that is the same for many neighbouring terms.
void splitScale(DotProblem &p, Value rhs) {
  Exprs shape = graph::getShape(rhs);
  unsigned term = shape.size() - 2;
  Computed x = seenThrough(
      {rhs, AffineMap::getMultiDimIdentityMap(shape.size(), rhs.getContext())},
      shape);
  auto op = x.value.getDefiningOp<graph::GraphOpInterface>();
  p.isComputed = op && op.getRole() == OpRole::Pointwise;
  if (!p.isComputed)
    return;
  for (OpOperand &operand : op->getOpOperands()) {
    std::optional<graph::Linear> linear =
        op.getLinear(operand.getOperandNumber());
    if (!linear || !linear->scale || linear->divisor || linear->shift ||
        linear->factor != 1)
      continue;
    auto mapOf = [&](unsigned i) {
      return graph::composeMaps(op.getOperandMap(i), x.map, shape);
    };
    AffineMap own = mapOf(operand.getOperandNumber());
    Computed scale = seenThrough(
        {op->getOperand(*linear->scale), mapOf(*linear->scale)}, shape);
    int64_t block = blockAlong(scale.map, term, shape);
    if (block == 1)
      continue;
    auto through = [rhsOf = p.rhs](Value value, AffineMap map) {
      return [=](const Demand &axes, ArrayRef<AffineExpr> k) {
        Demand d = rhsOf(axes, k);
        d.coordinates = graph::applyMap(map, d.coordinates);
        d.value = value;
        return d;
      };
    };
    p.unscaled = through(operand.get(), own);
    p.scale = through(scale.value, scale.map);
    p.scaleBlock = block;
    return;
  }
}

/// The terms of lhs [.., M, K] x rhs [.., K, N], of whose result `rank`
/// coordinates are demanded.
DotProblem matmulProblem(TileEmitter &e, Value lhs, Value rhs, unsigned rank) {
  Exprs lhsShape = graph::getShape(lhs), rhsShape = graph::getShape(rhs);
  // Leading coordinates broadcast from the right.
  auto batchOf = [&e, rank](const Demand &axes, ArrayRef<AffineExpr> shape) {
    Exprs c;
    unsigned leading = shape.size() - 2, skip = rank - shape.size();
    for (unsigned i = 0; i < leading; ++i)
      c.push_back(graph::constantOf(shape[i]) == 1
                      ? e.constant(0)
                      : axes.coordinates[skip + i]);
    return c;
  };
  DotProblem p;
  p.extents = {lhsShape.back()};
  p.lhsElement = getElementTypeOrSelf(lhs.getType());
  p.rhsElement = getElementTypeOrSelf(rhs.getType());
  p.lhs = [=](const Demand &axes, ArrayRef<AffineExpr> k) {
    Demand d{lhs, axes.tile, batchOf(axes, lhsShape), {}};
    d.coordinates.push_back(axes.coordinates[rank - 2]);
    d.coordinates.push_back(k[0]);
    return d;
  };
  p.rhs = [=](const Demand &axes, ArrayRef<AffineExpr> k) {
    Demand d{rhs, axes.tile, batchOf(axes, rhsShape), {}};
    d.coordinates.push_back(k[0]);
    d.coordinates.push_back(axes.coordinates[rank - 1]);
    return d;
  };
  return p;
}

FailureOr<Value> matmul(graph::MatmulOp op, TileEmitter &e,
                        const Demand &demand) {
  DotProblem p =
      matmulProblem(e, op.getLhs(), op.getRhs(), demand.coordinates.size());
  p.pairsFit = graph::pairsFit(op);
  if (e.getTarget().kind == EmitTarget::Kind::Cpu &&
      isa<FloatType>(p.lhsElement))
    splitScale(p, op.getRhs());
  return emitDot(e, demand, p);
}

/// Rows are scaled, and their means subtracted, behind the products.
FailureOr<Value> normalizedMatmul(graph::NormalizedMatmulOp op, TileEmitter &e,
                                  const Demand &demand) {
  DotProblem p =
      matmulProblem(e, op.getLhs(), op.getRhs(), demand.coordinates.size());
  FailureOr<Value> product = emitDot(e, demand, p);
  FailureOr<RowStatistics> rows =
      emitStatistics(e, demand, op.getLhs(), op.getSquares(), op.getTerms(),
                     op.getEpsilon().convertToDouble());
  if (failed(product) || failed(rows))
    return failure();
  if (op.getColumnSums()) {
    FailureOr<Value> columns = e.emit(
        {op.getColumnSums(), demand.tile, {demand.coordinates.back()}, {}});
    if (failed(columns))
      return failure();
    Value means = arith::MulFOp::create(e.b(), e.loc(), rows->mean, *columns);
    product = Value(arith::SubFOp::create(e.b(), e.loc(), *product, means));
  }
  return Value(arith::MulFOp::create(e.b(), e.loc(), *product, rows->inverse));
}

/// Of what multiplies its first operand by its second.
template <typename Op,
          FailureOr<Value> (*emitProduct)(Op, TileEmitter &, const Demand &)>
struct MatmulRule
    : EmitOpInterface::ExternalModel<MatmulRule<Op, emitProduct>, Op> {
  FailureOr<Value> emitTile(Operation *op, TileEmitter &emitter,
                            const Demand &demand) const {
    return emitProduct(cast<Op>(op), emitter, demand);
  }
  SmallVector<unsigned> getTermDims(Operation *op) const {
    unsigned lhs = graph::getShape(op->getOperand(0)).size(),
             rhs = graph::getShape(op->getOperand(1)).size();
    return {lhs - 1, rhs - 2};
  }
};

/// The columns of a window that are read, so that a row of it is a multiple of
/// what one access takes: of an image of few channels that lies with its zeros
/// around it, a row of the window is one run of memory.
std::optional<int64_t> widerRow(graph::ConvOp op, TileEmitter &e) {
  unsigned last = op.getSpatialRank() - 1, dim = op.spatialDim(last);
  Exprs input = graph::getShape(op.getInput()),
        filter = graph::getShape(op.getFilter());
  std::optional<int64_t> channels = graph::constantOf(filter[op.channelDim()]),
                         columns = graph::constantOf(filter[dim]),
                         width = graph::constantOf(input[dim]);
  constexpr int64_t accessBits = 128;
  int64_t aligned =
      accessBits /
      getElementTypeOrSelf(op.getInput().getType()).getIntOrFloatBitWidth();
  if (e.getTarget().kind != EmitTarget::Kind::Gpu || !op.getChannelsLast() ||
      op.getGroups() != 1 || !channels || !columns || !width)
    return std::nullopt;
  bool isRun = op.getDilations()[last] == 1 && op.getPads()[last] == 0 &&
               op.getPads()[op.getSpatialRank() + last] == 0;
  if (!isRun || aligned % *channels != 0 || *channels == aligned ||
      *columns == 1 || *columns * *channels % aligned == 0 ||
      *channels * op.getStrides()[last] % aligned != 0 ||
      *channels * *width % aligned != 0)
    return std::nullopt;
  return llvm::alignTo(*columns, aligned / *channels);
}

FailureOr<Value> conv(graph::ConvOp op, TileEmitter &e, const Demand &demand) {
  Exprs input = graph::getShape(op.getInput()),
        filter = graph::getShape(op.getFilter());
  unsigned spatial = op.getSpatialRank(), channel = op.channelDim();
  AffineExpr channels = filter[channel];                   // of one group
  AffineExpr outputs = filter[0].floorDiv(op.getGroups()); // of one group
  DotProblem p;
  p.lhsElement = getElementTypeOrSelf(op.getInput().getType());
  p.rhsElement = getElementTypeOrSelf(op.getFilter().getType());
  p.pairsFit = graph::pairsFit(op);
  // The window outside, channels inside: channels are contiguous in NHWC.
  for (unsigned i = 0; i < spatial; ++i)
    p.extents.push_back(filter[op.spatialDim(i)]);
  p.extents.push_back(channels);
  // Of one channel a group neighbours are side by side in all that is read.
  p.apart = op.getChannelsLast() && op.getGroups() > 1 &&
            graph::constantOf(channels) == 1;
  std::optional<int64_t> wider = widerRow(op, e);
  AffineExpr row = channels * filter[op.spatialDim(spatial - 1)];
  if (wider)
    p.extents[spatial - 1] = e.constant(*wider);
  // What the window has beyond its own columns counts as zero.
  auto guardRow = [&, wider, row](Demand &d, ArrayRef<AffineExpr> k) {
    if (wider)
      d.guards.push_back({k[spatial - 1] * channels + k.back(), row});
  };
  auto isPadded = [&](unsigned i) {
    return op.getPads()[i] != 0 || op.getPads()[spatial + i] != 0;
  };
  // Where windows begin, if that is known otherwise than by the axes.
  Exprs inside(spatial);
  auto startOf = [&](const Demand &axes, unsigned i) {
    return inside[i] ? inside[i]
                     : axes.coordinates[op.spatialDim(i)] * op.getStrides()[i] -
                           op.getPads()[i];
  };
  p.lhs = [&](const Demand &axes, ArrayRef<AffineExpr> k) {
    Demand d{op.getInput(), axes.tile, axes.coordinates, {}};
    // The same for a tile whose own columns are of one group.
    AffineExpr group =
        e.simplify(axes.coordinates[channel].floorDiv(outputs), axes.ownTile());
    d.coordinates[channel] =
        op.getGroups() == 1 ? k.back() : group * channels + k.back();
    for (unsigned i = 0; i < spatial; ++i) {
      unsigned dim = op.spatialDim(i);
      AffineExpr c = startOf(axes, i) + k[i] * op.getDilations()[i];
      d.coordinates[dim] = c;
      if (isPadded(i))
        d.guards.push_back({c, input[dim]});
    }
    guardRow(d, k);
    return d;
  };
  p.window = [&](const Demand &axes, unsigned i) -> WindowDim {
    if (i >= spatial || op.getDilations()[i] != 1)
      return {};
    unsigned dim = op.spatialDim(i);
    return {filter[dim], e.simplify(startOf(axes, i), axes.tile), input[dim]};
  };
  p.rhs = [&](const Demand &axes, ArrayRef<AffineExpr> k) {
    Demand d{op.getFilter(), axes.tile, Exprs(filter.size()), {}};
    d.coordinates[0] = axes.coordinates[channel];
    d.coordinates[channel] = k.back();
    for (unsigned i = 0; i < spatial; ++i)
      d.coordinates[op.spatialDim(i)] = k[i];
    guardRow(d, k);
    return d;
  };
  if (!p.apart)
    return emitDot(e, demand, p);
  SmallVector<Guard> starts(spatial);
  for (unsigned i = 0; i < spatial; ++i)
    if (unsigned dim = op.spatialDim(i);
        isPadded(i) && !graph::constantOf(input[dim]))
      starts[i] = {startOf(demand, i),
                   input[dim] - (filter[dim] - 1) * op.getDilations()[i]};
  return insideOrNot(e, demand.tile, e.tileType(demand.tile, sumType(e, p)),
                     starts, [&](ArrayRef<AffineExpr> known) {
                       inside.assign(known.begin(), known.end());
                       return emitDot(e, demand, p);
                     });
}

/// A grouped convolution multiplies the columns of a group by its own channels.
struct ConvRule : EmitOpInterface::ExternalModel<ConvRule, graph::ConvOp> {
  SmallVector<unsigned> getTermDims(Operation *op) const {
    auto convolution = cast<graph::ConvOp>(op);
    unsigned channel = convolution.channelDim();
    if (convolution.getGroups() != 1 ||
        !graph::constantOf(graph::getShape(convolution.getFilter())[channel]))
      return {};
    return {channel, channel};
  }
  FailureOr<Value> emitTile(Operation *op, TileEmitter &emitter,
                            const Demand &demand) const {
    return conv(cast<graph::ConvOp>(op), emitter, demand);
  }
  AffineExpr getColumnRun(Operation *op) const {
    auto convolution = cast<graph::ConvOp>(op);
    if (convolution.getGroups() == 1)
      return {};
    return graph::getShape(convolution.getFilter())[0].floorDiv(
        convolution.getGroups());
  }
};

} // namespace

void emit::registerContractionRules(MLIRContext *c) {
  graph::MatmulOp::attachInterface<MatmulRule<graph::MatmulOp, matmul>>(*c);
  graph::NormalizedMatmulOp::attachInterface<
      MatmulRule<graph::NormalizedMatmulOp, normalizedMatmul>>(*c);
  graph::ConvOp::attachInterface<ConvRule>(*c);
}
