// Lists of as many tensors as an open size says: one tensor, or what steps that
// are repeated set of them.
#include "frontends/common/builders/Gather.h"
#include "frontends/common/builders/Sequence.h"
#include "frontends/tensorflow/Remedy.h"
#include "frontends/tensorflow/ops/List.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::tensorflow;
using llvm::LogicalResult;
using mlir::AffineExpr;
using mlir::Value;

namespace tf = charonia::frontend::tensorflow;

AffineExpr tf::openCountOf(Node &n, Emitter &e, unsigned i) {
  graph::SymbolicTensor known =
      n.has(i) ? e.evaluateSizes(n.input(i)) : graph::SymbolicTensor();
  bool isOpen =
      known.isComplete() && known.elements->size() == 1 && !known.constants() &&
      e.getSymbols().assumeAtLeast(known.elements->front(), e.number(0),
                                   "so that a list has a size");
  return isOpen ? known.elements->front() : AffineExpr();
}

LogicalResult tf::yieldOpenList(Node &n, OpenList list) {
  Item item;
  item.openList = std::make_shared<OpenList>(std::move(list));
  return n.yieldItem(std::move(item));
}

const OpenList *tf::openListOf(Node &n, unsigned i) {
  return i < n.numInputs() ? n.item(i).openList.get() : nullptr;
}

LogicalResult tf::getOpenItem(Node &n, const OpenList &list, Emitter &e) {
  if (!list.stacked || list.element)
    return e.fail("reads an element of a list of size " +
                      e.getSymbols().toString(list.count) +
                      ", which is open, that steps of the same loop set",
                  fixSize(n.getModel(), e.getSymbols().toString(list.count)));
  Value place = e.reshape(n.input(1), {});
  if (failed(checkPositions(list.stacked, place, 0, e)))
    return llvm::failure();
  return n.yield(
      e.op<graph::GatherOp>({list.stacked, place}, e.attr("axis", int64_t(0))));
}

LogicalResult tf::setOpenItem(Node &n, unsigned i, Emitter &e) {
  const OpenList &list = *n.item(i).openList;
  graph::SymbolicTensor place = e.evaluate(n.input(1));
  if (list.stacked || list.element || !place.isComplete() ||
      place.elements->size() != 1)
    return e.fail("sets elements of a list of size " +
                      e.getSymbols().toString(list.count) +
                      ", which is open, other than one each step of a loop",
                  fixSize(n.getModel(), e.getSymbols().toString(list.count)));
  OpenList changed = list;
  changed.element = n.input(2);
  changed.place = place.elements->front();
  changed.from = n.item(i).openList;
  return yieldOpenList(n, std::move(changed));
}

LogicalResult tf::stackOpen(Node &n, const OpenList &list,
                            std::optional<Exprs> dims, Emitter &e) {
  if (list.element)
    return e.fail("stacks a list whose elements steps of the same loop set",
                  "export the model without that");
  if (list.stacked)
    return n.yield(list.stacked);
  mlir::Type element = dims ? n.type("element_dtype", 1) : mlir::Type();
  if (!element)
    return e.fail("stacks a list of which no element is set, and whose shape "
                  "is not known",
                  "give the list its element_shape");
  dims->insert(dims->begin(), list.count);
  return n.yield(e.broadcast(e.scalar(int64_t(0), element), *dims));
}

LogicalResult tf::concatOpen(Node &n, const OpenList &list, Emitter &e) {
  if (!list.stacked || rankOf(list.stacked) < 2)
    return e.fail("joins the elements of a list of size " +
                      e.getSymbols().toString(list.count) +
                      ", which is open, and whose elements are not set behind "
                      "a loop, or have no rows",
                  "stack them, or give each a first dimension");
  Exprs dims = graph::getShape(list.stacked);
  Value lengths =
      e.broadcast(e.size(dims[1], e.getBuilder().getI64Type()), {dims[0]});
  dims[1] = graph::simplify(dims[0] * dims[1]);
  dims.erase(dims.begin());
  return n.yield({e.reshape(list.stacked, dims), lengths});
}

LogicalResult tf::yieldLength(Node &n, const OpenList &list, Emitter &e) {
  return n.yield(e.size(list.count, e.getBuilder().getI32Type()));
}

/// Whether operand `i` lists all places of the list, in order. It may list the
/// first ones alone: nothing is assumed of how many it has.
static bool listsAll(Node &n, unsigned i, const OpenList &list, Emitter &e) {
  if (!n.has(i) || !countsFromZero(n.input(i), e))
    return false;
  const Symbols &symbols = e.getSymbols();
  AffineExpr count = symbols.resolve(graph::getShape(n.input(i))[0]),
             all = symbols.resolve(list.count);
  return symbols.isAtLeast(count, all) && symbols.isAtLeast(all, count);
}

LogicalResult tf::scatterOpen(Node &n, const OpenList &list, unsigned tensor,
                              unsigned places, Emitter &e) {
  std::string size = e.getSymbols().toString(list.count);
  if (failed(n.needsRank(tensor, 1, 32)))
    return llvm::failure();
  if (list.stacked || list.element || !listsAll(n, places, list, e) ||
      !e.agree(graph::getShape(n.input(tensor))[0], list.count,
               "sets all of its elements"))
    return e.fail("sets elements of a list of size " + size +
                      ", which is open, other than all of them at once, in "
                      "order",
                  fixSize(n.getModel(), size));
  return yieldOpenList(n, {list.count, n.input(tensor), {}, {}, {}});
}

LogicalResult tf::gatherOpen(Node &n, const OpenList &list,
                             std::optional<Exprs> dims, Emitter &e) {
  std::string size = e.getSymbols().toString(list.count);
  if (failed(n.needsRank(1, 1, 1)))
    return llvm::failure();
  if (listsAll(n, 1, list, e))
    return stackOpen(n, list, std::move(dims), e);
  if (!list.stacked || list.element)
    return e.fail("takes some elements of a list of size " + size +
                      ", which is open, that are not set behind a loop",
                  fixSize(n.getModel(), size));
  if (failed(checkPositions(list.stacked, n.input(1), 0, e)))
    return llvm::failure();
  return n.yield(e.op<graph::GatherOp>({list.stacked, n.input(1)},
                                       e.attr("axis", int64_t(0))));
}
