//===- TensorMaps.h - What tensor maps must satisfy -------------*- C++ -*-===//
#ifndef CHARONIA_RUNTIME_ENGINE_TENSORMAPS_H
#define CHARONIA_RUNTIME_ENGINE_TENSORMAPS_H

#include "runtime/engine/Engine.h"

namespace charonia::engine {

/// What cuTensorMapEncodeTiled and cuTensorMapEncodeIm2col demand of all that
/// does not depend on sizes, and that the expressions are well formed over
/// `numSymbols` of them. Corrupt if not.
Status checkTensorMap(const TensorMap &map, size_t numSymbols);

/// Terms of a map's expressions: what each launch evaluates for it.
uint64_t countTerms(const TensorMap &map);

} // namespace charonia::engine

#endif // CHARONIA_RUNTIME_ENGINE_TENSORMAPS_H
