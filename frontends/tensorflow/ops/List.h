// What rows of lists share.
#ifndef CHARONIA_FRONTENDS_TENSORFLOW_OPS_LIST_H
#define CHARONIA_FRONTENDS_TENSORFLOW_OPS_LIST_H

#include "frontends/tensorflow/Node.h"

namespace charonia::frontend::tensorflow {

/// More elements than steps that are written out.
constexpr int64_t maxElements = maxSteps;

llvm::LogicalResult yieldList(Node &n, TensorList list);
/// The number of elements, operand `i`; where it is open, what to do about it.
llvm::FailureOr<int64_t> countOf(Node &n, Emitter &e, unsigned i);
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
