#include "graph/analysis/Computing.h"
#include "graph/analysis/FusionPlan.h"
#include "graph/analysis/Walked.h"
#include "graph/analysis/Weights.h"
#include "graph/passes/OpenParts.h"
#include "graph/passes/Passes.h"
#include "mlir/IR/IRMapping.h"
#include <map>

using namespace mlir;

namespace charonia::graph {
#define GEN_PASS_DEF_FORMKERNELS
#include "graph/passes/Passes.h.inc"

namespace {

/// Rewrites a block by a plan: kernels are built in front of the terminator, in
/// order; the old operators go afterwards.
class Rewriter {
public:
  Rewriter(Block &block, const FusionPlan &plan, const Facts &facts,
           bool denseRows, bool walksProducts)
      : plan(plan), facts(facts), denseRows(denseRows),
        walksProducts(walksProducts), builder(block.getTerminator()),
        terminator(block.getTerminator()) {}

  void run() {
    Block &block = *terminator->getBlock();
    SmallVector<Operation *> old;
    for (Operation &op : block.without_terminator())
      if (!isWeight(&op) && isa<GraphOpInterface>(op))
        old.push_back(&op);
    for (FusionPlan::Group *group : plan.order())
      build(*group);
    for (OpOperand &operand : terminator->getOpOperands())
      operand.set(stored(operand.get()));
    for (Operation *op : llvm::reverse(old))
      op->erase();
  }

  /// Of each group's kernel.
  llvm::DenseMap<const FusionPlan::Group *, std::string> names;

private:
  /// The tensor in memory that holds `value`: a result of a kernel, an
  /// argument, a weight or an alias of one. Null where no memory holds it.
  Value stored(Value value) {
    if (Value known = memory.lookup(value))
      return known;
    Operation *op = value.getDefiningOp();
    if (!op || isWeight(op))
      return value;
    if (plan.groupOf(op) || !isSameBytes(op))
      return {};
    Value source = stored(op->getOperand(0));
    if (!source)
      return {};
    IRMapping mapping;
    mapping.map(op->getOperand(0), source);
    return memory[value] = builder.clone(*op, mapping)->getResult(0);
  }

  void build(const FusionPlan::Group &group) {
    Block *body = new Block();
    SmallVector<Value> inputs;
    IRMapping inside;
    OpBuilder inner(builder.getContext());
    inner.setInsertionPointToEnd(body);

    // The value inside of the kernel: copies what is inlined, passes in what is
    // stored.
    auto resolve = [&](auto &&self, Value value) -> Value {
      if (Value known = inside.lookupOrNull(value))
        return known;
      if (Value buffer = stored(value)) {
        if (Value known = inside.lookupOrNull(buffer))
          return known;
        inputs.push_back(buffer);
        Value argument = body->addArgument(buffer.getType(), value.getLoc());
        inside.map(buffer, argument);
        if (buffer != value)
          inside.map(value, argument);
        return argument;
      }
      Operation *op = value.getDefiningOp();
      assert(plan.isInlined(op) &&
             "a kernel reads a value that no kernel stores");
      for (Value operand : op->getOperands())
        self(self, operand);
      inner.clone(*op, inside);
      return inside.lookup(value);
    };
    for (Operation *op : group.ops) {
      for (Value operand : op->getOperands())
        resolve(resolve, operand);
      inner.clone(*op, inside);
    }
    SmallVector<Value> yielded;
    for (Value output : group.results)
      yielded.push_back(inRows(inside.lookup(output), output, group, inner));
    if (denseRows && !group.anchor && yielded.size() == 1)
      yielded[0] = inOpenParts(yielded[0], facts, inner);
    SmallVector<Location> locations;
    for (Operation *op : group.ops)
      locations.push_back(op->getLoc());
    Location location = builder.getFusedLoc(locations);
    YieldOp::create(inner, location, yielded);
    names[&group] = nameOf(group);
    auto kernel = KernelOp::create(
        builder, location, ValueRange(yielded).getTypes(), inputs,
        builder.getStringAttr(names[&group]), DictionaryAttr());
    kernel.getBody().push_back(body);
    if (walksProducts && shouldWalkProduct(kernel))
      kernel->setAttr(kWalksProductAttr, builder.getUnitAttr());
    for (auto [value, result] : llvm::zip(group.results, kernel.getResults()))
      memory[value] = value.getType() == result.getType()
                          ? Value(result)
                          : ReshapeOp::create(builder, value.getLoc(),
                                              value.getType(), result);
  }

  /// A result whose dimensions mix rows, under the shape of the group's space,
  /// whose bytes are the same: rows are dimensions there.
  static Value inRows(Value copy, Value value, const FusionPlan::Group &group,
                      OpBuilder &inner) {
    auto place = group.space.lookup(value);
    if (!place || place->extent != IterationSpace::Extent::Full ||
        !group.space.mixesRows(*place) ||
        !group.space.isReshape(*place, getShape(value)))
      return copy;
    return ReshapeOp::create(
        inner, value.getLoc(),
        makeType(group.space.getShape(), getElementTypeOrSelf(value)), copy);
  }

  /// A result that is computed element by element, under a shape of the same
  /// bytes in which rows of an open size that it is made of are dimensions.
  static Value inOpenParts(Value copy, const Facts &facts, OpBuilder &inner) {
    Exprs parts = shapeInOpenParts(copy, facts);
    if (parts == getShape(copy))
      return copy;
    return ReshapeOp::create(inner, copy.getLoc(),
                             makeType(parts, getElementTypeOrSelf(copy)), copy);
  }

  /// A label for people: the anchor, or what the kernel computes first, and how
  /// many operators are with it.
  std::string nameOf(const FusionPlan::Group &group) {
    Operation *first = group.anchor ? static_cast<Operation *>(group.anchor)
                                    : group.ops.front();
    std::string name = first->getName().stripDialect().str();
    for (Operation *op : group.ops)
      if (op != first && name.size() < 64)
        if (cast<GraphOpInterface>(op).getRole() != OpRole::View)
          name += "_" + op->getName().stripDialect().str();
    unsigned count = counts[name]++;
    return count ? name + "." + std::to_string(count) : name;
  }

  const FusionPlan &plan;
  Facts facts;
  bool denseRows;
  /// Whether tiles of products are theirs where rows move behind them: on a
  /// GPU, where what is copied ahead should lie as it is multiplied.
  bool walksProducts;
  OpBuilder builder;
  Operation *terminator;
  llvm::DenseMap<Value, Value> memory;
  llvm::StringMap<unsigned> counts;
};

struct FormKernels : impl::FormKernelsBase<FormKernels> {
  using FormKernelsBase::FormKernelsBase;

  void runOnOperation() override {
    if (callsOthers(getOperation()))
      return;
    auto module = getOperation()->getParentOfType<ModuleOp>();
    Block &block = getOperation().getBody().front();
    FusionLimits limits;
    limits.denseRows = denseRows;
    limits.widenedRows = widenedRows;
    limits.instances = instances;
    FusionPlan plan(block, getSymbols(module), limits);
    std::vector<FusionPlan::Decision> decisions = plan.decisions();
    Rewriter rewriter(block, plan, getFacts(module), denseRows,
                      /*walksProducts=*/instances > 0);
    rewriter.run();
    describe(decisions, rewriter);
  }

  /// For `inspect`: of what is alike one line, "from, to, how often, bytes,
  /// why", with tabs between; `to` is empty where both are one kernel.
  void describe(ArrayRef<FusionPlan::Decision> decisions,
                const Rewriter &rewriter) {
    struct Line {
      std::string from, to;
      const char *why;
      int64_t count = 0, bytes = 0;
    };
    std::vector<Line> lines;
    std::map<std::string, size_t> known;
    auto nameOf = [&](const FusionPlan::Group *group) {
      StringRef name = rewriter.names.find(group)->second;
      return name.take_until([](char c) { return c == '.'; }).str();
    };
    for (const FusionPlan::Decision &d : decisions) {
      Line line{nameOf(d.from), d.from == d.to ? "" : nameOf(d.to),
                d.why ? d.why : ""};
      auto [at, isNew] = known.try_emplace(
          line.from + "\t" + line.to + "\t" + line.why, lines.size());
      if (isNew)
        lines.push_back(line);
      ++lines[at->second].count;
      lines[at->second].bytes += d.bytes;
    }
    Builder b(&getContext());
    SmallVector<Attribute> texts;
    for (const Line &line : lines)
      texts.push_back(b.getStringAttr(
          line.from + "\t" + line.to + "\t" + std::to_string(line.count) +
          "\t" + std::to_string(line.bytes) + "\t" + line.why));
    if (!texts.empty())
      getOperation()->setAttr("graph.fusion", b.getArrayAttr(texts));
  }
};

} // namespace
} // namespace charonia::graph
