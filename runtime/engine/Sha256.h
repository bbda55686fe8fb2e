//===- Sha256.h - The digest that names an engine file ----------*- C++ -*-===//
//
// Checksums (XXH3) find damage; who pins a file wants a hash that nobody can
// find a second file for, and that `sha256sum` prints. FIPS 180-4.
//
//===----------------------------------------------------------------------===//
#ifndef CHARONIA_RUNTIME_ENGINE_SHA256_H
#define CHARONIA_RUNTIME_ENGINE_SHA256_H

#include <cstddef>
#include <span>
#include <string>

namespace charonia::engine {

/// 64 hexadecimal digits in lower case.
std::string sha256(std::span<const std::byte> bytes);

} // namespace charonia::engine

#endif // CHARONIA_RUNTIME_ENGINE_SHA256_H
