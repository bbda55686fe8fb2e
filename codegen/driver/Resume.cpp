#include "codegen/driver/Resume.h"
#include "mlir/IR/Builders.h"

using namespace mlir;

namespace charonia::driver {

static constexpr StringLiteral stageName = "graph.stage",
                               deviceName = "graph.device",
                               precisionName = "graph.precision";

void markStage(ModuleOp module, StringRef stage,
               const PipelineOptions *program) {
  Builder builder(module.getContext());
  module->setAttr(stageName, builder.getStringAttr(stage));
  if (!program)
    return;
  std::string_view device = deviceKindName(program->device);
  module->setAttr(deviceName, builder.getStringAttr(
                                  StringRef(device.data(), device.size())));
  module->setAttr(precisionName, builder.getStringAttr(program->precision));
}

StringRef passedStage(ModuleOp module) {
  auto stage = module->getAttrOfType<StringAttr>(stageName);
  return stage ? stage.getValue() : StringRef();
}

LogicalResult checkProgram(ModuleOp module, const PipelineOptions &program) {
  auto device = module->getAttrOfType<StringAttr>(deviceName),
       precision = module->getAttrOfType<StringAttr>(precisionName);
  if (!device || !precision)
    return success(); // Nothing that differs between programs has happened.
  std::string_view wanted = deviceKindName(program.device);
  if (device.getValue() == StringRef(wanted.data(), wanted.size()) &&
      precision.getValue() == program.precision)
    return success();
  return module.emitError("was dumped after stage '")
         << passedStage(module) << "' for " << device.getValue() << " in "
         << precision.getValue()
         << "; --target and --precision must name the same device and "
            "precision";
}

void setPrepareAside(ModuleOp module) {
  auto prepare = module.lookupSymbol<func::FuncOp>("prepare");
  if (!prepare)
    return;
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  auto aside = ModuleOp::create(builder, module.getLoc(), "preparation");
  prepare->moveBefore(aside.getBody(), aside.getBody()->end());
}

func::FuncOp findPrepare(ModuleOp module) {
  auto aside = module.lookupSymbol<ModuleOp>("preparation");
  return aside ? aside.lookupSymbol<func::FuncOp>("prepare") : func::FuncOp();
}

} // namespace charonia::driver
