#include "codegen/emit/rules/Rules.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace charonia;

void emit::registerEmitRules(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, graph::GraphDialect *) {
    context
        ->loadDialect<tile::TileDialect, arith::ArithDialect, math::MathDialect,
                      scf::SCFDialect, func::FuncDialect>();
    registerElementwiseRules(context);
    registerViewRules(context);
    registerIndexRules(context);
    registerOrderedRules(context);
    registerScatterRules(context);
    registerReductionRules(context);
    registerPoolRule(context);
    registerRowPartsRules(context);
    registerCellRules(context);
    registerNormalizationRules(context);
    registerContractionRules(context);
    registerAttentionRules(context);
  });
}
