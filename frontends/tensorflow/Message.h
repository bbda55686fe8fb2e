// Reading messages.
#ifndef CHARONIA_FRONTENDS_TENSORFLOW_MESSAGE_H
#define CHARONIA_FRONTENDS_TENSORFLOW_MESSAGE_H

#include "google/protobuf/message_lite.h"
#include "llvm/ADT/StringRef.h"

namespace charonia::frontend::tensorflow {

/// What to do about a file that is none, or contradicts itself.
extern const char *const damagedRemedy;

/// Whether the bytes are a message of this kind.
bool parseMessage(google::protobuf::MessageLite &message,
                  llvm::StringRef bytes);

} // namespace charonia::frontend::tensorflow

#endif
