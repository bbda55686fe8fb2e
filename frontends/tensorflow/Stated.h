// What a SavedModel says of tensors beside what computes them.
#ifndef CHARONIA_FRONTENDS_TENSORFLOW_STATED_H
#define CHARONIA_FRONTENDS_TENSORFLOW_STATED_H

#include "frontends/common/Emitter.h"
#include "frontends/tensorflow/Model.h"

namespace charonia::frontend::tensorflow {

/// The number of the result that functions call `index` of `output`, by what
/// the definition says; none where the node has no such result.
std::optional<int> resultNumber(const proto::Node &node,
                                const proto::FunctionSignature &definition,
                                llvm::StringRef output, int index);

/// The types of a node's operands by what the definition says, as far as that
/// is known: numbers of DataType, above 100 of variables of TF1 themselves.
std::vector<int> operandTypes(const proto::Node &node,
                              const proto::FunctionSignature &definition);

/// The number of a DataType, 0 where nothing is said of it; a shape, null
/// where nothing is.
struct Stated {
  int dtype = 0;
  const proto::Shape *shape = nullptr;
};

/// Of a node's first `count` results: types follow from the definitions of
/// operators that a SavedModel has, shapes are written beside nodes. Of a
/// frozen graph nothing: what it says may be of the graph that it was made
/// from, and TensorFlow does not look at it.
std::vector<Stated> statedResults(const proto::Node &node, size_t count,
                                  const Model &model);

/// "int32[?, 4], but TEXT says float32[?, 5]" where a value is not what is said
/// of it; empty where it is, or may be.
std::string contradiction(mlir::Value value, Stated stated, const char *text,
                          Emitter &emitter);
/// What to do about such.
extern const char *const contradictionRemedy;

} // namespace charonia::frontend::tensorflow

#endif
