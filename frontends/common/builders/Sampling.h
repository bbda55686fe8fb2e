// Sampling at coordinates that are data.
#ifndef CHARONIA_FRONTENDS_COMMON_BUILDERS_SAMPLING_H
#define CHARONIA_FRONTENDS_COMMON_BUILDERS_SAMPLING_H

#include "frontends/common/Emitter.h"

namespace charonia::frontend {

/// What lies outside of an image.
enum class SamplePadding { zeros, border, reflection };

/// Of x, [N, C, S...], the elements at `grid`, [N, D..., spatial dimensions];
/// its coordinates, the innermost axis first, go from -1 to 1: between the
/// centers of the outermost elements where `align` is set, else between their
/// edges. 1 to 3 spatial dimensions.
mlir::Value buildGridSample(mlir::Value x, mlir::Value grid,
                            graph::ResizeMode mode, SamplePadding padding,
                            bool align, Emitter &e);

} // namespace charonia::frontend

#endif
