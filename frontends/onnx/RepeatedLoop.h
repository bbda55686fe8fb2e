// A Loop of which one step is built and repeated.
#ifndef CHARONIA_FRONTENDS_ONNX_REPEATEDLOOP_H
#define CHARONIA_FRONTENDS_ONNX_REPEATEDLOOP_H

#include "frontends/common/OpenLoops.h"
#include "frontends/onnx/GraphImporter.h"

namespace charonia::frontend::onnx {

constexpr const char *const loopDataRemedy =
    "export the model without the loop, or with a number of steps that follows "
    "from sizes and without outputs of each step";

std::vector<std::string> outputsOf(const ::onnx::GraphProto &body);
/// What stands for a tensor.
Binding bindingOf(mlir::Value value);
/// The outputs' values: no sequences.
llvm::LogicalResult tensorsOf(llvm::ArrayRef<Binding> outputs,
                              std::vector<mlir::Value> &values, Emitter &e);
/// Whether the body computes its condition, which then may end the loop.
bool computesCondition(const ::onnx::GraphProto &body);

/// A Loop: states are given from step to step, other outputs of the body are
/// stacked.
struct GraphImporter::Loop {
  ::onnx::GraphProto *body = nullptr;
  mlir::Value trips, condition;
  std::vector<Binding> carried;
  size_t outputs = 0;

  std::vector<Binding> argumentsOf(mlir::Value number, Emitter &e) const {
    std::vector<Binding> arguments = {
        bindingOf(number),
        bindingOf(e.scalar(int64_t(1), e.getBuilder().getI1Type()))};
    llvm::append_range(arguments, carried);
    return arguments;
  }
};

class GraphImporter::RepeatedLoop {
public:
  RepeatedLoop(GraphImporter &importer, const Loop &loop, Scope &around,
               const Frame &frame)
      : importer(importer), e(importer.emitter), loop(loop), around(around),
        frame(frame), added(loop.carried.size()) {}

  /// Whether the steps can be repeated: how many there are follows from sizes,
  /// and is open or too many to be written out.
  bool prepare();

  std::optional<StepCount> known() const;

  /// Whether nothing ends a loop that has begun, or but a number of steps that
  /// is more than can run. Once it is prepared.
  bool isEndless() const { return builder && builder->isEndless(); }

  /// Nothing where steps cannot be repeated and can be written out.
  std::optional<llvm::LogicalResult> build(std::vector<Binding> &results);

private:
  /// Which states are lists that a step leaves as long as they are, as it shows
  /// in the first one: their tensors are states of their own.
  void findLists();

  /// Gives a state of the body what it is of all states.
  void setState(Binding &state, size_t i, llvm::ArrayRef<mlir::Value> states);
  /// Adds what a state of the body is behind a step.
  llvm::LogicalResult getState(const Binding &state, size_t i,
                               llvm::MutableArrayRef<mlir::Value> states);

  std::vector<Binding> argumentsOf(mlir::AffineExpr number,
                                   llvm::ArrayRef<mlir::Value> states);

  /// What counts and the condition, of a copy of the body.
  std::optional<OpenLoop::Step> look(mlir::AffineExpr number,
                                     llvm::ArrayRef<mlir::Value> states,
                                     const OpenLoop::Wanted &wanted);

  std::optional<OpenLoop::Step> take(mlir::AffineExpr number,
                                     llvm::ArrayRef<mlir::Value> states);

  /// Adds what the step does to the outputs.
  llvm::LogicalResult readSequence(size_t i, const Binding &after,
                                   Values &outputs);

  GraphImporter &importer;
  Emitter &e;
  const Loop &loop;
  Scope &around;
  const Frame &frame;
  OpenLoop open;
  std::optional<LoopBuilder> builder;
  /// By state of the body: tensors that each step adds to a sequence.
  std::vector<size_t> added;
  /// The same: whether it is a list whose length stays, and where its tensors,
  /// or the one that it is, begin among all states; at the end their number.
  std::vector<bool> isList;
  std::vector<size_t> places;
};

} // namespace charonia::frontend::onnx

#endif
