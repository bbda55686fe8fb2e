// Operators that are ONNX Runtime's own: what its optimizers and quantizers
// write into models.
#ifndef CHARONIA_FRONTENDS_ONNX_RUNTIMESCHEMAS_H
#define CHARONIA_FRONTENDS_ONNX_RUNTIMESCHEMAS_H

namespace charonia::frontend::onnx {

/// Adds their definitions to ONNX's registry, once. Throws what that throws.
void registerRuntimeSchemas();

} // namespace charonia::frontend::onnx

#endif
