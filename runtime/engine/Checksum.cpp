//===- Checksum.cpp - XXH3 over a stream ----------------------------------===//

#include "runtime/engine/Checksum.h"
#include "runtime/engine/Format.h"

// Inlined, so that the library needs no other at run time.
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace charonia::engine {

struct ChecksumStream::State {
  XXH3_state_t xxh;
};

ChecksumStream::ChecksumStream() : state(std::make_unique<State>()) {
  XXH3_INITSTATE(&state->xxh);
  XXH3_64bits_reset(&state->xxh);
}

ChecksumStream::~ChecksumStream() = default;

void ChecksumStream::update(const void *data, size_t size) {
  if (size != 0)
    XXH3_64bits_update(&state->xxh, data, size);
}

uint64_t ChecksumStream::digest() const {
  return XXH3_64bits_digest(&state->xxh);
}

uint64_t checksum(const void *data, size_t size) {
  return XXH3_64bits(data, size);
}

} // namespace charonia::engine
