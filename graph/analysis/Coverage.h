// Intervals of a line, and the places that none of them covers.
#ifndef CHARONIA_GRAPH_ANALYSIS_COVERAGE_H
#define CHARONIA_GRAPH_ANALYSIS_COVERAGE_H

#include "llvm/ADT/SmallVector.h"

namespace charonia::graph {

/// Counts how many intervals cover each of some places. Both operations take
/// the logarithm of the number of places, however long the intervals are.
class Coverage {
public:
  explicit Coverage(unsigned places = 0);

  /// Adds `change` to the counts from `first` to `last`, if that is not before
  /// it. No count may become negative.
  void add(unsigned first, unsigned last, int change);
  /// The last place up to `place` that nothing covers; 0 if there is none.
  unsigned lastFree(unsigned place) const;

private:
  /// Of a binary tree over the places, whose root is 1 and whose leaves lie
  /// behind `leaves`: what was added to all places below a node, and the least
  /// count of them without what was added further up.
  struct Node {
    int added = 0, least = 0;
  };

  void add(unsigned node, unsigned begin, unsigned end, unsigned first,
           unsigned last, int change);
  int find(unsigned node, unsigned begin, unsigned end, unsigned place,
           int above) const;

  unsigned leaves = 1;
  llvm::SmallVector<Node> nodes;
};

} // namespace charonia::graph

#endif
