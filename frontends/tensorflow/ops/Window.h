// Sliding windows as TensorFlow's attributes give them.
#ifndef CHARONIA_FRONTENDS_TENSORFLOW_OPS_WINDOW_H
#define CHARONIA_FRONTENDS_TENSORFLOW_OPS_WINDOW_H

#include "frontends/common/builders/Window.h"
#include "frontends/tensorflow/Node.h"

namespace charonia::frontend::tensorflow {

/// The window of a convolution of input 0 with the filter that input 1 is,
/// [K..., ...]; padded.
llvm::FailureOr<Window> readConvWindow(Node &node, Emitter &emitter);

/// The spatial entries of a list with one entry for each of `rank` dimensions;
/// the others have to be 1. Without the list all are 1.
llvm::FailureOr<llvm::SmallVector<int64_t>>
spatialOf(Node &node, Emitter &emitter, llvm::StringRef name,
          const Window &window, size_t rank);

/// Whether attribute `data_format` says that channels are last; fails where it
/// says something else than the two.
llvm::FailureOr<bool> channelsAreLast(Node &node, Emitter &emitter);

} // namespace charonia::frontend::tensorflow

#endif
