#include "frontends/onnx/Registry.h"
#include <algorithm>
#include <tuple>

using namespace charonia::frontend::onnx;

static auto keyOf(const Row &row) {
  return std::make_tuple(llvm::StringRef(row.domain), llvm::StringRef(row.op),
                         row.first);
}

llvm::ArrayRef<Row> charonia::frontend::onnx::allRows() {
  static const std::vector<Row> rows = [] {
    std::vector<Row> all;
    for (auto family : {unaryRows(),
                        binaryRows(),
                        activationRows(),
                        contractionRows(),
                        convTransposeRows(),
                        attentionRows(),
                        poolingRows(),
                        normalizationRows(),
                        reductionRows(),
                        viewRows(),
                        sliceRows(),
                        padRows(),
                        gatherRows(),
                        selectRows(),
                        resizeRows(),
                        sourceRows(),
                        compositeRows(),
                        quantizeRows(),
                        recurrentRows(),
                        transformRows(),
                        sortRows(),
                        samplingRows(),
                        foldRows(),
                        randomRows(),
                        runtimeNormalizationRows(),
                        runtimeAttentionRows(),
                        groupQueryRows(),
                        runtimeQuantizeRows()})
      all.insert(all.end(), family.begin(), family.end());
    std::sort(all.begin(), all.end(),
              [](const Row &a, const Row &b) { return keyOf(a) < keyOf(b); });
    return all;
  }();
  return rows;
}

const Row *charonia::frontend::onnx::findRow(llvm::StringRef domain,
                                             llvm::StringRef op,
                                             int sinceVersion) {
  for (const Row &row : allRows())
    if (domain == row.domain && op == row.op && sinceVersion >= row.first &&
        sinceVersion <= row.last)
      return &row;
  return nullptr;
}
