#include "frontends/tensorflow/Node.h"
#include "llvm/ADT/STLExtras.h"

using namespace charonia::frontend;
using namespace charonia::frontend::tensorflow;

llvm::ArrayRef<Row> charonia::frontend::tensorflow::allRows() {
  static const std::vector<Row> rows = [] {
    std::vector<Row> all;
    for (llvm::ArrayRef<Row> family :
         {elementwiseRows(),   contractionRows(), windowRows(),
          normalizationRows(), reductionRows(),   viewRows(),
          blockRows(),         sliceRows(),       indexRows(),
          diagonalRows(),      segmentRows(),     resizeRows(),
          sourceRows(),        listRows(),        arrayRows(),
          colorRows(),         cropRows(),        fakeQuantRows(),
          fourierRows(),       dynamicRows(),     partitionRows()})
      all.insert(all.end(), family.begin(), family.end());
    llvm::sort(all, [](const Row &a, const Row &b) {
      return llvm::StringRef(a.op) < b.op;
    });
    return all;
  }();
  return rows;
}

const Row *charonia::frontend::tensorflow::findRow(llvm::StringRef op) {
  llvm::ArrayRef<Row> rows = allRows();
  auto it = llvm::lower_bound(
      rows, op, [](const Row &row, llvm::StringRef op) { return row.op < op; });
  return it != rows.end() && it->op == op ? &*it : nullptr;
}

bool charonia::frontend::tensorflow::isVariable(const proto::Node &node) {
  const Row *row = findRow(node.op());
  return row && (row->variable == Row::OfVariable::Handle ||
                 row->variable == Row::OfVariable::Value);
}
