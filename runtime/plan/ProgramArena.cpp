//===- ProgramArena.cpp - The arena of a program at one shape -------------===//

#include "runtime/plan/ProgramArena.h"
#include "runtime/engine/Aliases.h"

namespace charonia::plan {

using engine::Buffer;
using engine::noIndex;

Status doesNotFit(const std::string &what) {
  return Status(StatusCode::Corrupt,
                "the engine's program does not fit this shape: " + what);
}

Result<uint64_t> evaluateSize(const ShapeExpr &expr,
                              std::span<const int64_t> symbols,
                              std::span<const Symbol> names) {
  auto value = expr.evaluate(symbols);
  if (!value)
    return value.status();
  if (*value < 0)
    return doesNotFit("the size " + expr.str(names) + " is negative");
  return static_cast<uint64_t>(*value);
}

namespace {

class Builder {
public:
  Builder(const engine::Program &program, std::span<const int64_t> symbols,
          std::span<const Symbol> names)
      : buffers(program.buffers), symbols(symbols), names(names) {}

  Result<ProgramArena> run() {
    arena.sizes.reserve(buffers.size());
    for (const Buffer &buffer : buffers) {
      CHARONIA_ASSIGN_OR_RETURN(uint64_t size,
                                evaluateSize(buffer.size, symbols, names));
      arena.sizes.push_back(size);
    }
    CHARONIA_RETURN_IF_ERROR(findRoots());
    CHARONIA_ASSIGN_OR_RETURN(arena.packed, planArena(makeRequests()));
    return std::move(arena);
  }

private:
  Status findRoots() {
    arena.roots.resize(buffers.size());
    for (uint32_t b : engine::orderAliases(buffers.size(), [&](uint32_t i) {
                        return buffers[i].alias;
                      }).order) {
      uint32_t outer = buffers[b].alias;
      if (outer == noIndex) {
        arena.roots[b] = {b, 0};
        continue;
      }
      CHARONIA_ASSIGN_OR_RETURN(
          uint64_t offset,
          evaluateSize(buffers[b].aliasOffset, symbols, names));
      uint64_t whole = arena.sizes[outer];
      if (offset > whole || arena.sizes[b] > whole - offset)
        return doesNotFit("buffer " + std::to_string(b) +
                          " leaves the buffer that it is an alias of");
      BufferRoot around = arena.roots[outer];
      arena.roots[b] = {around.buffer, around.offset + offset};
    }
    return Status::ok();
  }

  /// Only what lies in the arena takes part; aliases of other memory do not.
  std::vector<BufferRequest> makeRequests() {
    std::vector<BufferRequest> requests;
    arena.requestOf.assign(buffers.size(), noAlias);
    // Outermost buffers first, so that aliases can refer to them.
    for (bool aliases : {false, true})
      for (uint32_t b = 0; b < buffers.size(); ++b) {
        BufferRoot root = arena.roots[b];
        if (buffers[root.buffer].kind != Buffer::Kind::Arena ||
            aliases != (root.buffer != b))
          continue;
        BufferRequest request;
        request.size = arena.sizes[b];
        request.firstStep = buffers[b].firstStep;
        request.lastStep = buffers[b].lastStep;
        request.alignment = buffers[b].alignment;
        if (aliases) {
          request.alias = arena.requestOf[root.buffer];
          request.aliasOffset = root.offset;
        }
        arena.requestOf[b] = static_cast<uint32_t>(requests.size());
        requests.push_back(request);
      }
    return requests;
  }

  const std::vector<Buffer> &buffers;
  std::span<const int64_t> symbols;
  std::span<const Symbol> names;
  ProgramArena arena;
};

} // namespace

Result<ProgramArena> planProgram(const engine::Program &program,
                                 std::span<const int64_t> symbols,
                                 std::span<const Symbol> names) {
  return Builder(program, symbols, names).run();
}

} // namespace charonia::plan
