#include "tools/charonia/Commands.h"
namespace charonia::tool { int run(const InspectCommand &) { return 1; } }
