// Pass emit-tiles: the tile program of every graph.kernel of a module.
#ifndef CHARONIA_CODEGEN_EMIT_EMITTILES_H
#define CHARONIA_CODEGEN_EMIT_EMITTILES_H

namespace charonia::emit {
/// Registers the pass `emit-tiles` (option `target`: x86-64-v3, x86-64-v4,
/// gpu). Before: graph.kernel operators in functions. After: the module also
/// holds a tile function of the same name for each. For charonia-opt and tests;
/// the driver calls emitKernel itself.
void registerEmitTilesPass();
} // namespace charonia::emit

#endif
