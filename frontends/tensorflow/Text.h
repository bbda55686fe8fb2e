// Messages of TensorFlow in protobuf's text syntax, as in "graph.pbtxt"
// (https://protobuf.dev/reference/protobuf/textformat-spec).
#ifndef CHARONIA_FRONTENDS_TENSORFLOW_TEXT_H
#define CHARONIA_FRONTENDS_TENSORFLOW_TEXT_H

#include "frontends/common/Emitter.h"

namespace charonia::frontend::tensorflow {

enum class TextMessage { Graph, SavedModel };

/// The bytes of the message that `text` writes out, without fields that are not
/// in model.proto. Depth is bounded, and the bytes by the text's. None and a
/// problem, which names the line, where it is no such text.
std::optional<std::string> encodeText(llvm::StringRef text, TextMessage message,
                                      Problem &problem);

} // namespace charonia::frontend::tensorflow

#endif
