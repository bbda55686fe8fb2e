#include "graph/analysis/Computing.h"
#include "graph/analysis/Widening.h"
#include "graph/passes/Expression.h"
#include "graph/passes/Passes.h"
#include "graph/passes/TermOrder.h"
#include "graph/passes/Views.h"

using namespace mlir;

namespace charonia::graph {
#define GEN_PASS_DEF_ORDERTERMS
#include "graph/passes/Passes.h.inc"

namespace {

/// A product whose terms lie in memory in another order than its weights'.
struct Product {
  GraphOpInterface op;
  unsigned weights; ///< The operand.
  OrderedTerms terms;
  /// The weights without the transposes that give them as the product takes
  /// them, from the outermost to the innermost, and the dimension of terms.
  Value base;
  unsigned baseDim;
  SmallVector<SmallVector<int64_t>> transposes;

  /// The same for all that share weights.
  unsigned group = 0;

  OpOperand &operand() { return op->getOpOperand(weights); }
  bool sharesWeights(const Product &other) const {
    return base == other.base && baseDim == other.baseDim &&
           terms.getOrder() == other.terms.getOrder();
  }
};

struct OrderTerms : impl::OrderTermsBase<OrderTerms> {
  using OrderTermsBase::OrderTermsBase;

  void runOnOperation() override {
    SmallVector<func::FuncOp> functions = getComputing(getOperation());
    for (func::FuncOp function : functions)
      for (auto op : function.getBody().front().getOps<GraphOpInterface>())
        if (std::optional<Product> product = find(op))
          products.push_back(std::move(*product));
    formGroups();
    getOperation().walk(
        [&](WeightOp op) { weightOps[op.getNameAttr()].push_back(op); });
    while (leaveOut())
      ;
    for (Product &product : products)
      rewrite(product);
    for (func::FuncOp function : functions)
      eraseDead(function);
  }

  std::optional<Product> find(GraphOpInterface op) {
    SmallVector<int64_t> dims = op.getTermDims();
    if (dims.size() != 2 || op->getNumOperands() != 2)
      return std::nullopt;
    for (unsigned weights : {1, 0}) {
      OpOperand &operand = op->getOpOperand(weights);
      Value other = op->getOperand(1 - weights);
      // Narrow weights have scales of their terms, and stay as they lie.
      if (!weightsOnly(operand.get()) || weightsOnly(other) ||
          !wideningOf(operand, weightsOnly).empty())
        continue;
      auto terms = OrderedTerms::find(other, dims[1 - weights], weightsOnly);
      if (!terms)
        continue;
      Product product{
          op, weights, *terms, operand.get(), unsigned(dims[weights]), {}};
      while (auto permutation = permutationOf(product.base)) {
        product.baseDim = (*permutation)[product.baseDim];
        product.base = product.base.getDefiningOp()->getOperand(0);
        product.transposes.push_back(*permutation);
      }
      return product;
    }
    return std::nullopt;
  }

  void formGroups() {
    llvm::DenseMap<Value, SmallVector<const Product *>> groups;
    unsigned count = 0;
    for (Product &product : products) {
      auto &known = groups[product.base];
      auto same = llvm::find_if(known, [&](const Product *other) {
        return other->sharesWeights(product);
      });
      product.group = same == known.end() ? count++ : (*same)->group;
      if (same == known.end())
        known.push_back(&product);
    }
  }

  /// Leaves products out that had better stay as they are, which keeps others
  /// as they are; false: there are none.
  bool leaveOut() {
    onWay.clear();
    groupOf.clear();
    readAlike.clear();
    for (Product &product : products) {
      groupOf[&product.operand()] = product.group;
      onWay.insert(product.op);
      ArrayRef<Operation *> moving = product.terms.getMoving();
      onWay.insert(moving.begin(), moving.end());
    }
    std::vector<Product> kept;
    for (Product &product : products)
      if (movesAlone(product) && isAlone(product))
        kept.push_back(product);
    std::swap(products, kept);
    return products.size() < kept.size();
  }

  /// Whether nobody else reads what is moved: that may be stored for them, or
  /// by the kernel that computes it, at no cost.
  bool movesAlone(const Product &product) {
    return llvm::all_of(product.terms.getMoving(), [&](Operation *op) {
      return llvm::all_of(op->getUsers(), [&](Operation *user) {
        return onWay.contains(user);
      });
    });
  }

  /// Whether nothing reads the large ones of the weights in another order: they
  /// would be stored twice.
  bool isAlone(const Product &product) {
    llvm::SetVector<Value> below;
    below.insert(product.base);
    for (size_t i = 0; i < below.size(); ++i) {
      Operation *op = below[i].getDefiningOp();
      auto type = cast<RankedTensorType>(below[i].getType());
      if (op->getNumOperands() == 0 && byteSize(type) > mostTwice &&
          !llvm::all_of(sameSources(op), [&](Operation *source) {
            return isReadAlike(source->getResult(0), product);
          }))
        return false;
      below.insert(op->operand_begin(), op->operand_end());
    }
    return true;
  }

  /// The operators that stand for the weight that `source` does.
  ArrayRef<Operation *> sameSources(Operation *&source) {
    return isWeight(source)
               ? ArrayRef<Operation *>(
                     weightOps[cast<WeightOp>(source).getNameAttr()])
               : ArrayRef<Operation *>(source);
  }

  /// Whether all that read what is made of `weight` alone are products that
  /// take it as `product` does.
  bool isReadAlike(Value weight, const Product &product) {
    auto [it, isNew] = readAlike.try_emplace({weight, product.group}, true);
    if (!isNew)
      return it->second;
    llvm::SetVector<Value> made;
    made.insert(weight);
    for (size_t i = 0; i < made.size(); ++i)
      for (OpOperand &use : made[i].getUses()) {
        Operation *reader = use.getOwner();
        if (reader->getNumResults() == 1 && weightsOnly(reader->getResult(0)))
          made.insert(reader->getResult(0));
        else if (auto group = groupOf.find(&use);
                 group == groupOf.end() || group->second != product.group)
          return readAlike[{weight, product.group}] = false;
      }
    return true;
  }

  void rewrite(Product &product) {
    unsigned other = 1 - product.weights;
    int64_t dim = product.op.getTermDims()[other];
    Value &terms = ordered[{product.op->getOperand(other), dim}];
    if (!terms)
      terms = product.terms.build();
    if (!terms)
      return;
    OpBuilder builder(product.op);
    Value weights = inOrder(product);
    for (ArrayRef<int64_t> permutation : llvm::reverse(product.transposes))
      weights = transposedBy(builder, weights, permutation);
    product.op->setOperand(other, terms);
    product.op->setOperand(product.weights, weights);
  }

  /// The weights in the product's order, the same for all that have it.
  Value inOrder(const Product &product) {
    Value &weights = stored[product.group];
    if (!weights) {
      OpBuilder builder(product.op);
      builder.setInsertionPointAfterValue(product.base);
      weights = storedInOrder(builder, product.base, product.baseDim,
                              product.terms.getOrder());
    }
    return weights;
  }

  WeightsOnly weightsOnly;
  std::vector<Product> products;
  /// Of the products' weights.
  llvm::DenseMap<OpOperand *, unsigned> groupOf;
  /// By a weight and who takes it; see isReadAlike.
  llvm::DenseMap<std::pair<Value, unsigned>, bool> readAlike;
  llvm::DenseMap<StringAttr, SmallVector<Operation *>> weightOps;
  /// The products, and what moves their terms.
  llvm::DenseSet<Operation *> onWay;
  /// Values with a dimension in order.
  llvm::DenseMap<std::pair<Value, int64_t>, Value> ordered;
  /// The weights of each group.
  llvm::DenseMap<unsigned, Value> stored;
};

} // namespace
} // namespace charonia::graph
