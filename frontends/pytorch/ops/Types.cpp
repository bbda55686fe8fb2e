// Conversions between element types, and what does nothing in inference.
#include "frontends/common/builders/Float8.h"
#include "frontends/pytorch/ops/Complex.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::pytorch;

/// Devices and layouts are nothing here; the file says the result's type.
static void ignoreTarget(Call &c) {
  c.ignore({"dtype", "layout", "device", "pin_memory", "non_blocking", "copy",
            "memory_format", "other"});
}
static LogicalResult convert(Call &c) {
  ignoreTarget(c);
  // Of floats of 8 bits PyTorch saturates e4m3fn alone.
  Emitter &e = c.getEmitter();
  mlir::Type element = c.resultElement();
  Value x = c.tensor("self");
  return c.yield(llvm::isa_and_present<mlir::Float8E4M3FNType>(element)
                     ? buildSaturated(x, element, e)
                     : e.cast(x, element));
}
static LogicalResult convertComplex(Call &c) {
  ignoreTarget(c);
  if (Value truth = truthOfComplex(c, "self"))
    return c.yield(truth);
  return importComplex(partwise(convert), c);
}
static LogicalResult dropout(Call &c) {
  bool train = c.flag("train", false);
  c.ignore({"p"});
  // In place it has another name.
  llvm::StringRef name = c.has("self") ? "self" : "input";
  if (train)
    return c.fail("is exported for training",
                  "export the model in eval(): model.eval() before "
                  "torch.export.export");
  return c.yield(c.tensor(name));
}

llvm::ArrayRef<Row> charonia::frontend::pytorch::typeRows() {
  static const Row rows[] = {
      {"aten.to.dtype", {convert, convertComplex}, Alias::Maybe, writeSame},
      {"aten.to.dtype_layout",
       {convert, convertComplex},
       Alias::Maybe,
       writeSame},
      {"aten.to.device", {convert, convertComplex}, Alias::Maybe, writeSame},
      {"aten.to.other", {convert, convertComplex}, Alias::Maybe, writeSame},
      {"aten.type_as.default",
       {convert, convertComplex},
       Alias::Maybe,
       writeSame},
      {"aten._to_copy.default", {convert, convertComplex}},
      {"aten.dropout.default", partwise(dropout), Alias::View, writeSame},
      {"aten.feature_dropout.default", dropout, Alias::View, writeSame},
      {"aten.alpha_dropout.default", dropout, Alias::View, writeSame},
  };
  return rows;
}
