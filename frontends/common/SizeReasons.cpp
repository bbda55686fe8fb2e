#include "frontends/common/SizeReasons.h"
#include "frontends/common/SizeAlgebra.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>

using namespace charonia;
using namespace charonia::frontend;
using graph::NumberRange;
using graph::SizeStep;
using mlir::AffineExpr;
using StepOp = SizeStep::Op;

static std::optional<NumberRange> rangeOf(llvm::ArrayRef<SizeStep> program,
                                          const Symbols &symbols) {
  return graph::rangeOf(program, [&](AffineExpr size) {
    return symbols.bounds(symbols.resolve(size));
  });
}

bool charonia::frontend::haveRanges(llvm::ArrayRef<SizeElement> elements,
                                    const Symbols &symbols) {
  return llvm::all_of(elements, [&](const SizeElement &element) {
    return element.size || element.numerator ||
           (element.isKnown() && rangeOf(element.program, symbols));
  });
}

/// " (k in 1..64, n in 1..8)": the ranges of what the sizes name.
static std::string rangesOf(llvm::ArrayRef<AffineExpr> sizes,
                            const Symbols &symbols) {
  llvm::SmallDenseSet<AffineExpr> met;
  AffineExpr all = mlir::getAffineConstantExpr(0, symbols.getContext());
  for (AffineExpr size : sizes)
    size.walk([&](AffineExpr e) {
      if (llvm::isa<mlir::AffineSymbolExpr>(e) && met.insert(e).second)
        all = all + e;
    });
  std::string text = symbols.describeRanges(all);
  return text.empty() ? text : " (" + text + ")";
}

/// "-9..64", without a point behind whole numbers.
static std::string toString(NumberRange range) {
  auto number = [](double value) {
    return value == std::floor(value) ? std::to_string(int64_t(value))
                                      : llvm::formatv("{0}", value).str();
  };
  return number(range.low) + ".." + number(range.high);
}

/// Of a program whose range cannot be told: its first step without one.
/// `operands` are the elements that the last steps are taken of.
static std::string explainFloat(llvm::ArrayRef<SizeStep> program,
                                llvm::ArrayRef<const SizeElement *> operands,
                                const Symbols &symbols) {
  size_t count = 1;
  while (rangeOf(program.take_front(count), symbols))
    if (++count > program.size())
      return "";
  // The last operand's steps, and their range, are right in front of it.
  llvm::ArrayRef<SizeStep> before = program.take_front(count - 1),
                           last = before;
  for (const SizeElement *operand : operands)
    if (operand->program.size() <= before.size() &&
        before.take_back(operand->program.size()) ==
            llvm::ArrayRef(operand->program))
      last = operand->program;
  llvm::SmallVector<AffineExpr> sizes;
  for (const SizeStep &step : last)
    if (step.op == StepOp::Size)
      sizes.push_back(symbols.resolve(step.size));
  auto range = before.empty() ? std::nullopt : rangeOf(before, symbols);
  auto text = [&](const char *does, const char *maybe) {
    return does + toString(*range) + ", which may be " + maybe +
           rangesOf(sizes, symbols);
  };
  StepOp op = program[count - 1].op;
  if (op == StepOp::FloatDiv && range->low <= 0 && range->high >= 0)
    return text("divides by a number in ", "0");
  if (op == StepOp::Sqrt && range->low < 0)
    return text("takes the root of a number in ", "negative");
  return "may give numbers beyond 2^52" + rangesOf(sizes, symbols);
}

namespace {
/// Keeps the divisor of what has no quotient or rest.
class DivisorFinder : public SizeAlgebra {
public:
  using SizeAlgebra::SizeAlgebra;
  AffineExpr quotient(AffineExpr a, AffineExpr b) override {
    return found(SizeAlgebra::quotient(a, b), b);
  }
  AffineExpr modulo(AffineExpr a, AffineExpr b) override {
    return found(SizeAlgebra::modulo(a, b), b);
  }
  AffineExpr remainder(AffineExpr a, AffineExpr b) override {
    return found(SizeAlgebra::remainder(a, b), b);
  }
  AffineExpr divisor;

private:
  AffineExpr found(AffineExpr result, AffineExpr by) {
    if (!result && !divisor)
      divisor = by;
    return result;
  }
};
} // namespace

static std::string explainInteger(graph::GraphOpInterface op,
                                  llvm::ArrayRef<AffineExpr> operands,
                                  Symbols &symbols) {
  DivisorFinder algebra(symbols);
  if (op.evaluateInteger(algebra, operands) || !algebra.divisor ||
      symbols.bounds(algebra.divisor).low > 0)
    return "";
  return "divides by " + symbols.toString(algebra.divisor) +
         ", which may be 0 or less" + rangesOf(algebra.divisor, symbols);
}

std::string charonia::frontend::explainUnknown(
    mlir::Operation *op, Symbols &symbols,
    llvm::function_ref<const SizeElements *(mlir::Value)> sizesOf) {
  // What is asked for now moves nothing later.
  sizesOf(op->getResult(0));
  for (mlir::Value operand : op->getOperands())
    sizesOf(operand);
  // Elements of operands that are one, or as many as others.
  llvm::SmallVector<const SizeElements *> operands;
  size_t count = 1;
  for (mlir::Value operand : op->getOperands()) {
    operands.push_back(sizesOf(operand));
    if (operands.back())
      count = std::max(count, operands.back()->size());
  }
  const SizeElements *results = sizesOf(op->getResult(0));
  auto interface = llvm::dyn_cast<graph::GraphOpInterface>(op);
  std::string reason;
  for (size_t i = 0; i < count && reason.empty() && interface; ++i) {
    llvm::SmallVector<const SizeElement *> elements;
    llvm::SmallVector<AffineExpr> sizes;
    for (const SizeElements *all : operands)
      if (all && (all->size() == 1 || all->size() == count)) {
        elements.push_back(&(*all)[all->size() == 1 ? 0 : i]);
        if (AffineExpr size = elements.back()->size)
          sizes.push_back(symbols.resolve(size));
      }
    if (results && i < results->size() && (*results)[i].isKnown() &&
        !haveRanges((*results)[i], symbols))
      reason = explainFloat((*results)[i].program, elements, symbols);
    else if (!sizes.empty() && sizes.size() == operands.size())
      reason = explainInteger(interface, sizes, symbols);
  }
  return reason.empty() ? "computes it in a way that is not supported for "
                          "sizes that are open"
                        : reason;
}
