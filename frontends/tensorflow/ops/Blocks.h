// Tensors in blocks over the batch, by which dilated convolutions are written.
#ifndef CHARONIA_FRONTENDS_TENSORFLOW_OPS_BLOCKS_H
#define CHARONIA_FRONTENDS_TENSORFLOW_OPS_BLOCKS_H

#include "frontends/tensorflow/Node.h"

namespace charonia::frontend::tensorflow {

// Blocks with dimensions less or more, of size 1; none where `given` is not a
// dimension that has no blocks.
std::optional<Item> squeezeBlocks(const Blocks &blocks,
                                  llvm::ArrayRef<int64_t> given);
std::optional<Item> expandBlocks(const Blocks &blocks, int64_t given);

} // namespace charonia::frontend::tensorflow

#endif
