//===- Encoding.h - Manifest to protobuf bytes and back ---------*- C++ -*-===//
#ifndef CHARONIA_RUNTIME_ENGINE_ENCODING_H
#define CHARONIA_RUNTIME_ENGINE_ENCODING_H

#include "runtime/engine/Engine.h"

#include <cstddef>

namespace charonia::engine {

/// Deterministic: equal manifests give equal bytes.
Result<std::string> encodeManifest(const Manifest &manifest);

/// Accepts any bytes. The result is well formed as data, not yet verify()'d.
Result<Manifest> decodeManifest(std::span<const std::byte> bytes);

} // namespace charonia::engine

#endif // CHARONIA_RUNTIME_ENGINE_ENCODING_H
