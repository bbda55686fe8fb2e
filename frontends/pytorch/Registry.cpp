#include "frontends/pytorch/Registry.h"

using namespace charonia::frontend::pytorch;
using llvm::StringRef;

llvm::ArrayRef<Row> charonia::frontend::pytorch::allRows() {
  static const std::vector<Row> rows = [] {
    std::vector<Row> all;
    for (auto list :
         {elementwiseRows(), activationRows(), contractionRows(),
          normalizationRows(), poolingRows(), reductionRows(), viewRows(),
          sliceRows(), indexRows(), scatterRows(), resizeRows(), sortRows(),
          recurrentRows(), foldRows(), sourceRows(), typeRows(), complexRows()})
      all.insert(all.end(), list.begin(), list.end());
    llvm::sort(all, [](const Row &a, const Row &b) {
      return StringRef(a.op) < StringRef(b.op);
    });
    return all;
  }();
  return rows;
}

static const Row *findRow(StringRef op) {
  auto rows = allRows();
  auto *it = llvm::lower_bound(rows, op, [](const Row &row, StringRef name) {
    return StringRef(row.op) < name;
  });
  return it != rows.end() && it->op == op ? it : nullptr;
}

Target charonia::frontend::pytorch::findTarget(StringRef target) {
  Target result;
  if (!target.consume_front("torch.ops."))
    return result;
  result.row = findRow(target);
  auto [name, overload] = target.rsplit('.');
  if (!result.row && name.consume_back("_") && !name.ends_with("_")) {
    result.row = findRow((name + "." + overload).str());
    result.inPlace = result.row && result.row->alias == Alias::No;
  }
  result.isCheck =
      llvm::is_contained({"aten._assert_scalar", "aten._assert_tensor_metadata",
                          "aten._assert_async", "aten.sym_constrain_range",
                          "aten.sym_constrain_range_for_size"},
                         name);
  return result;
}
