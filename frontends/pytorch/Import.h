// An exported program of PyTorch (.pt2) as a module of the graph dialect.
#ifndef CHARONIA_FRONTENDS_PYTORCH_IMPORT_H
#define CHARONIA_FRONTENDS_PYTORCH_IMPORT_H

#include "frontends/Importer.h"

namespace charonia::frontend::pytorch {

/// Whether a file that begins with `bytes` is of PyTorch: a zip file, or a
/// pickle of old, which is refused with more than that it is no model.
bool isFile(llvm::StringRef bytes);

/// Imports the exported program at `path`.
ImportResult importFile(llvm::StringRef path, const ImportOptions &options,
                        mlir::MLIRContext &context);

} // namespace charonia::frontend::pytorch

#endif
