// Conversions between element types, and what does nothing in inference.
#include "frontends/pytorch/Registry.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::pytorch;
using llvm::LogicalResult;

/// Devices and layouts are nothing here; the file says the result's type.
static LogicalResult convert(Call &c) {
  c.ignore({"dtype", "layout", "device", "pin_memory", "non_blocking", "copy",
            "memory_format", "other"});
  return c.yield(c.getEmitter().cast(c.tensor("self"), c.resultElement()));
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
static mlir::Value writeSame(Call &, mlir::Value, mlir::Value view) {
  return view;
}

llvm::ArrayRef<Row> charonia::frontend::pytorch::typeRows() {
  static const Row rows[] = {
      {"aten.to.dtype", partwise(convert), Alias::Maybe, writeSame},
      {"aten.to.dtype_layout", partwise(convert), Alias::Maybe, writeSame},
      {"aten.to.device", partwise(convert), Alias::Maybe, writeSame},
      {"aten.to.other", partwise(convert), Alias::Maybe, writeSame},
      {"aten.type_as.default", partwise(convert), Alias::Maybe, writeSame},
      {"aten._to_copy.default", partwise(convert)},
      {"aten.dropout.default", partwise(dropout), Alias::View, writeSame},
      {"aten.feature_dropout.default", dropout, Alias::View, writeSame},
      {"aten.alpha_dropout.default", dropout, Alias::View, writeSame},
  };
  return rows;
}
