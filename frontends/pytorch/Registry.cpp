#include "frontends/pytorch/Registry.h"

using namespace charonia::frontend::pytorch;
using llvm::StringRef;

llvm::ArrayRef<Row> charonia::frontend::pytorch::allRows() {
  static const std::vector<Row> rows = [] {
    std::vector<Row> all;
    for (auto list : {elementwiseRows(),   activationRows(),  contractionRows(),
                      normalizationRows(), poolingRows(),     reductionRows(),
                      viewRows(),          sliceRows(),       indexRows(),
                      scatterRows(),       resizeRows(),      sortRows(),
                      recurrentRows(),     foldRows(),        sourceRows(),
                      typeRows(),          complexRows(),     specialRows(),
                      lossRows(),          fourierRows(),     normRows(),
                      assembleRows(),      diagonalRows(),    gammaRows(),
                      groupedRows(),       samplingRows(),    spectrumRows(),
                      unaryRows(),         convolutionRows(), attentionRows(),
                      randomRows(),        linearRows(),      quantizeRows()})
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

/// The row of what an operator does in place, by its name without that:
/// "aten.add", "aten.__and__". Overloads in place may have names of their own,
/// "aten.pow_.Tensor": where one function is behind all that are not in place,
/// and reads arguments by their names, it is that one.
static const Row *findFunctional(StringRef name, StringRef overload) {
  std::string prefix = (name + ".").str();
  if (const Row *row = findRow(prefix + overload.str()))
    return row;
  const Row *found = nullptr;
  for (const Row &row : allRows()) {
    if (!StringRef(row.op).starts_with(prefix))
      continue;
    if (found &&
        (row.import.real != found->import.real || row.alias != found->alias))
      return nullptr;
    found = &row;
  }
  return found;
}

/// The row of what an overload with `out=` computes: "aten.dot.out" and
/// "aten.sum.dim_out" say it by their names, others are listed.
static const Row *findComputed(StringRef name, StringRef overload) {
  static constexpr std::pair<StringRef, const char *> listed[] = {
#include "frontends/pytorch/Outputs.inc"
  };
  std::string whole = (name + "." + overload).str();
  auto *it = llvm::lower_bound(listed, whole, [](auto &entry, StringRef op) {
    return entry.first < op;
  });
  if (it != std::end(listed) && it->first == whole)
    return findRow(it->second);
  if (!overload.consume_back("out"))
    return nullptr;
  overload.consume_back("_");
  return findRow(
      (name + "." + (overload.empty() ? "default" : overload)).str());
}

Target charonia::frontend::pytorch::findTarget(StringRef target) {
  Target result;
  if (!target.consume_front("torch.ops."))
    return result;
  result.row = findRow(target);
  auto [name, overload] = target.rsplit('.');
  if (!result.row && name.ends_with("_")) {
    // "__iand__", or "add_".
    StringRef own = name;
    std::string functional;
    if (own.consume_front("aten.__i") && own.ends_with("__"))
      functional = ("aten.__" + own).str();
    else if (!name.ends_with("__"))
      functional = name.drop_back().str();
    if (!functional.empty())
      result.row = findFunctional(functional, overload);
    result.inPlace = result.row && (result.row->alias == Alias::No ||
                                    result.row->alias == Alias::Real);
  }
  if (!result.row)
    result.isOut = result.row = findComputed(name, overload);
  // Those with a token that orders them begin with "_functional".
  StringRef check = name;
  if (check.consume_front("aten.")) {
    check.consume_front("_functional");
    check.consume_front("_");
    result.isCheck = llvm::is_contained(
        {"assert_scalar", "assert_tensor_metadata", "assert_async",
         "sym_constrain_range", "sym_constrain_range_for_size"},
        check);
  }
  return result;
}

bool charonia::frontend::pytorch::isDecomposed(StringRef op) {
  static constexpr StringRef names[] = {
#include "frontends/pytorch/Decompositions.inc"
  };
  op.consume_front("aten.");
  StringRef name = op.split('.').first;
  return std::binary_search(std::begin(names), std::end(names), name);
}
