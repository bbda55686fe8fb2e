#include "codegen/driver/Pipeline.h"
#include "graph/passes/Passes.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace charonia::graph;

namespace charonia::driver {

/// Folding and common subexpressions: what one pass leaves, the next need not
/// see.
static void tidy(OpPassManager &passes) {
  passes.addPass(createCanonicalizerPass());
  passes.addPass(createCSEPass());
}

/// Rows up to which a product widens its weights by itself. On a GPU tiles of
/// more rows would do it again and again.
static int64_t mostWidenedRows(const PipelineOptions &options) {
  constexpr int64_t onGpu = 256;
  return options.device == DeviceKind::Cpu ? std::numeric_limits<int64_t>::max()
                                           : onGpu;
}

std::vector<Stage> commonStages() {
  return {
      {"simplify",
       [](OpPassManager &passes) {
         // All others take straight lines.
         passes.addPass(createOutlineSteps());
         // Shape arithmetic first: static views and constants come out of it.
         passes.addNestedPass<func::FuncOp>(createEvaluateShapes());
         tidy(passes);
         // Positions and masks as ranges, also those that were stored, while
         // they still are.
         passes.addNestedPass<func::FuncOp>(createRecoverRanges());
         passes.addNestedPass<func::FuncOp>(createResolveIndices());
         passes.addNestedPass<func::FuncOp>(createResolveScatters());
         passes.addNestedPass<func::FuncOp>(createSimplifyViews());
         // Equations find their operands once no view stands between.
         passes.addNestedPass<func::FuncOp>(createSimplifyAlgebra());
         tidy(passes);
         // Before scales and shifts are folded, which makes weights of each
         // step's own.
         passes.addNestedPass<func::FuncOp>(createStackSteps());
         tidy(passes);
       }},
      {"recognize",
       [](OpPassManager &passes) {
         // Scales go into weights before anything else takes the contractions.
         passes.addNestedPass<func::FuncOp>(createFoldScales());
         passes.addNestedPass<func::FuncOp>(createRecognizePatterns());
         // Recognition adds transposes that cancel with those it found.
         passes.addNestedPass<func::FuncOp>(createSimplifyViews());
         tidy(passes);
       }},
      {"layout",
       [](OpPassManager &passes) {
         // Before transposes sink, which a merged axis would stop.
         passes.addNestedPass<func::FuncOp>(createRefineReductions());
         passes.addNestedPass<func::FuncOp>(createSimplifyViews());
         // After recognition: attention and normalizations let no transpose
         // through.
         passes.addNestedPass<func::FuncOp>(createAssignLayouts());
         passes.addNestedPass<func::FuncOp>(createSimplifyViews());
         passes.addNestedPass<func::FuncOp>(createFoldPadding());
         tidy(passes);
       }},
  };
}

std::vector<Stage> programStages(const PipelineOptions &options) {
  return {
      {"precision",
       [options](OpPassManager &passes) {
         // The first that differs between programs. Before weights are
         // prepared, which takes their casts, and before kernels, which fuse
         // those of activations.
         AssignPrecisionOptions assign;
         assign.precision = options.precision;
         passes.addNestedPass<func::FuncOp>(createAssignPrecision(assign));
         tidy(passes);
       }},
      {"prepare",
       [options](OpPassManager &passes) {
         // Where layouts and casts stand, and products are the model's own.
         passes.addPass(createOrderTerms());
         // Before what else reads the same rows is joined with them.
         if (options.device == DeviceKind::Cuda)
           passes.addNestedPass<func::FuncOp>(createPairColumns());
         // Projections of one tensor become one before their weights are
         // packed.
         MergeContractionsOptions merge;
         if (options.device == DeviceKind::Cuda)
           merge.apartRows = 128;
         passes.addNestedPass<func::FuncOp>(createMergeContractions(merge));
         // Only a CPU reads panels; a GPU has the terms of weights of 8-bit
         // floats side by side, which its instruction asks for, and those of
         // bytes that a product of one row widens. Packing goes before the
         // split, which would take the weights as they are.
         if (options.device == DeviceKind::Cpu) {
           passes.addNestedPass<func::FuncOp>(createStorePadding());
           // While weights are what the model has, and behind what joins them.
           passes.addNestedPass<func::FuncOp>(createBoundProducts());
           PackWeightsOptions pack;
           pack.panel = options.panelColumns;
           passes.addPass(createPackWeights(pack));
         } else {
           PackWeightsOptions columns;
           columns.panel = 1;
           passes.addPass(createPackWeights(columns));
           passes.addNestedPass<func::FuncOp>(createPadTerms());
           // Of what projections give together.
           passes.addNestedPass<func::FuncOp>(createRotateColumns());
           // Behind what joins products, so that what is added behind them
           // stays where it is.
           passes.addNestedPass<func::FuncOp>(createNormalizeProducts());
         }
         SplitPrepareOptions split;
         split.widenedRows = mostWidenedRows(options);
         passes.addPass(createSplitPrepare(split));
         passes.addPass(createCSEPass());
         // Kernels hold splats only; the rest they read from memory. No
         // canonicalization from here on: it would fold weights of one element
         // back into constants.
         passes.addPass(createOutlineConstants());
       }},
      // @prepare has left the module by now: it is compiled result by result.
      {"kernels",
       [options](OpPassManager &passes) {
         passes.addNestedPass<func::FuncOp>(createSplitConcats());
         if (options.device == DeviceKind::Cpu) {
           // Weights have been told from what is computed.
           PackColumnsOptions pack;
           pack.panel = options.panelColumns;
           passes.addNestedPass<func::FuncOp>(createPackColumns(pack));
         }
         if (options.device == DeviceKind::Cuda) {
           // What they begin need not be split.
           BeginSumsOptions begin;
           begin.instances = options.multiprocessors;
           passes.addNestedPass<func::FuncOp>(createBeginSums(begin));
         }
         SplitReductionsOptions reductions;
         reductions.cutOpenRuns = options.device == DeviceKind::Cpu;
         passes.addNestedPass<func::FuncOp>(createSplitReductions(reductions));
         SplitWindowsOptions split;
         // A launch on a GPU is worth some microseconds of reads from a cache.
         if (options.device == DeviceKind::Cuda)
           split.leastSaved = int64_t(1) << 25;
         passes.addNestedPass<func::FuncOp>(createSplitWindows(split));
         if (options.device == DeviceKind::Cuda) {
           StageOrderedOptions stage;
           stage.instances = options.multiprocessors;
           passes.addNestedPass<func::FuncOp>(createStageOrdered(stage));
         }
         FormKernelsOptions form;
         form.denseRows = options.device == DeviceKind::Cpu;
         form.widenedRows = mostWidenedRows(options);
         if (options.device == DeviceKind::Cuda)
           form.instances = options.multiprocessors;
         passes.addNestedPass<func::FuncOp>(createFormKernels(form));
         passes.addPass(createVerifyKernels());
       }},
  };
}

} // namespace charonia::driver
