// What rows of lists share.
#ifndef CHARONIA_FRONTENDS_TENSORFLOW_OPS_LIST_H
#define CHARONIA_FRONTENDS_TENSORFLOW_OPS_LIST_H

#include "frontends/tensorflow/Node.h"

namespace charonia::frontend::tensorflow {

/// More elements than steps that are written out.
constexpr int64_t maxElements = maxSteps;

llvm::LogicalResult yieldList(Node &n, TensorList list);
/// The number of elements, operand `i`, where it has to be known.
llvm::FailureOr<int64_t> countOf(Node &n, Emitter &e, unsigned i);

// Lists of open length (OpenList.cpp).
/// The number of elements, operand `i`, if it is an open size; else null.
mlir::AffineExpr openCountOf(Node &n, Emitter &e, unsigned i);
/// All elements of a list one behind the other, and how many rows each has.
llvm::LogicalResult concatOpen(Node &n, const OpenList &list, Emitter &e);
llvm::LogicalResult yieldOpenList(Node &n, OpenList list);
/// The open list that operand `i` is; null where it is none.
const OpenList *openListOf(Node &n, unsigned i);
/// The element at operand 1.
llvm::LogicalResult getOpenItem(Node &n, const OpenList &list, Emitter &e);
/// The list that operand `i` is with operand 2 at operand 1.
llvm::LogicalResult setOpenItem(Node &n, unsigned i, Emitter &e);
/// All elements, of which none may be set: then they are zeros of shape `dims`.
llvm::LogicalResult stackOpen(Node &n, const OpenList &list,
                              std::optional<Exprs> dims, Emitter &e);
llvm::LogicalResult yieldLength(Node &n, const OpenList &list, Emitter &e);
/// The list with rows of operand `tensor` at the positions that operand
/// `places` lists: at all of them, in order.
llvm::LogicalResult scatterOpen(Node &n, const OpenList &list, unsigned tensor,
                                unsigned places, Emitter &e);
/// The elements that operand 1 lists, as one tensor; see stackOpen.
llvm::LogicalResult gatherOpen(Node &n, const OpenList &list,
                               std::optional<Exprs> dims, Emitter &e);
/// The position of an element, operand 1.
llvm::FailureOr<int64_t> positionOf(Node &n, Emitter &e,
                                    const TensorList &list);
/// The list with rows of operand `tensor` at the positions that operand
/// `places` lists.
llvm::LogicalResult scatterRows(Node &n, Emitter &e, TensorList elements,
                                unsigned tensor, unsigned places);
/// The elements that operand 1 lists, as one tensor.
llvm::LogicalResult gatherElements(Node &n, Emitter &e, const TensorList &list);

} // namespace charonia::frontend::tensorflow

#endif
