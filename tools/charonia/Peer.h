// The other side of a comparison: scripts/peer.py in a process of its own.
#ifndef CHARONIA_TOOLS_CHARONIA_PEER_H
#define CHARONIA_TOOLS_CHARONIA_PEER_H

#include "charonia/status.h"

#include <nlohmann/json.hpp>
#include <string>
#include <sys/types.h>
#include <vector>

namespace charonia::tool {

/// A child that answers lines of JSON. Ended by its destructor.
class Peer {
public:
  Peer() = default;
  Peer(const Peer &) = delete;
  Peer &operator=(const Peer &) = delete;
  ~Peer();

  /// Runs `python` (empty: CHARONIA_PYTHON, the project's own environment,
  /// python3) with peer.py and these arguments. What it says on standard error
  /// goes to ours.
  Status start(const std::string &python,
               const std::vector<std::string> &arguments);
  /// The next line of JSON; the error that it tells of is the result's.
  Result<nlohmann::json> read();
  Status write(const std::string &line);

private:
  pid_t child = -1;
  int input = -1;
  FILE *output = nullptr;
};

} // namespace charonia::tool

#endif
