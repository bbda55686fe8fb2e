// An ONNX model as a module of the graph dialect.
#ifndef CHARONIA_FRONTENDS_ONNX_IMPORT_H
#define CHARONIA_FRONTENDS_ONNX_IMPORT_H

#include "frontends/Importer.h"
#include "onnx/onnx_pb.h"

namespace charonia::frontend::onnx {

/// Imports `model`, whose tensors are moved out. `file` names it in messages;
/// `folder` holds its external data.
ImportResult importProto(::onnx::ModelProto model, llvm::StringRef file,
                         llvm::StringRef folder, const ImportOptions &options,
                         mlir::MLIRContext &context);

/// Imports the model file at `path`: text syntax if its name ends in
/// `.onnxtxt`, else protobuf.
ImportResult importFile(llvm::StringRef path, const ImportOptions &options,
                        mlir::MLIRContext &context);

} // namespace charonia::frontend::onnx

#endif
