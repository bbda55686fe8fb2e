// Importing models of TensorFlow.
#ifndef CHARONIA_FRONTENDS_TENSORFLOW_IMPORT_H
#define CHARONIA_FRONTENDS_TENSORFLOW_IMPORT_H

#include "frontends/Importer.h"

namespace charonia::frontend::tensorflow {

/// Whether `path`, with a file that begins like this, is for this importer: a
/// folder, "saved_model.pb", a graph, or what Keras and TFLite write, which is
/// refused with a remedy.
bool isModel(llvm::StringRef path, llvm::StringRef beginning);

ImportResult importPath(llvm::StringRef path, const ImportOptions &options,
                        mlir::MLIRContext &context);

} // namespace charonia::frontend::tensorflow

#endif
