#include "codegen/emit/Streamed.h"
#include "codegen/emit/KernelShape.h"
#include "codegen/tile/ir/TileDialect.h"

using namespace mlir;
using namespace charonia;

static AffineExpr bytesOf(Value value) {
  return graph::numElements(graph::getShape(value), value.getContext()) *
         graph::elementBytes(getElementTypeOrSelf(value.getType()));
}

/// Instructions for a register of results from which on a kernel waits for
/// these, not for memory: Tanh (35) still takes 1.3 times as long where its
/// results go through the caches, Erf (40) does not. Sizes that tell where they
/// go choose among two bodies, which are short where they are worth it.
constexpr int64_t boundWork = 40;

void emit::markStreamed(func::FuncOp function, graph::KernelOp kernel,
                        const EmitTarget &target, const Schedule &schedule) {
  if (schedule.axes.size() != 1 ||
      schedule.groups[schedule.axes[0]].tile < 4 * target.vectorElements)
    return;
  KernelShape shape = inspect(kernel, target);
  if (shape.role != graph::OpRole::Pointwise)
    return;
  Builder b(kernel.getContext());
  AffineExpr touched = b.getAffineConstantExpr(-target.sharedCacheBytes);
  for (Value operand : kernel.getInputs())
    touched = touched + bytesOf(operand);
  for (Value result : kernel.getResults())
    touched = touched + bytesOf(result);
  graph::Facts known = graph::getFacts(kernel->getParentOfType<ModuleOp>());
  // What is small beside the rest, the next kernel may find.
  for (auto [i, result] : llvm::enumerate(kernel.getResults())) {
    graph::Exprs over{
        graph::simplify(touched, known),
        graph::simplify(bytesOf(result) * 4 - target.sharedCacheBytes, known)};
    if (llvm::any_of(over, [&](AffineExpr expr) {
          return graph::boundsOf(expr, known).high < 0;
        }))
      continue;
    bool always = llvm::all_of(over, [](AffineExpr expr) {
      return graph::constantOf(expr).has_value();
    });
    if (!always && shape.code >= boundWork)
      continue;
    Attribute when = b.getUnitAttr();
    if (!always)
      when = AffineMapAttr::get(
          AffineMap::get(0, known.symbols.size(), over, b.getContext()));
    function.setArgAttr(kernel.getInputs().size() + i, tile::kStreamedAttr,
                        when);
  }
}
