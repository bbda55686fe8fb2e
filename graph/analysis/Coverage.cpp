#include "graph/analysis/Coverage.h"
#include "llvm/ADT/bit.h"

namespace charonia::graph {

Coverage::Coverage(unsigned places)
    : leaves(llvm::bit_ceil(std::max(places, 1u))), nodes(2 * leaves) {}

void Coverage::add(unsigned first, unsigned last, int change) {
  if (first <= last)
    add(1, 0, leaves, first, last, change);
}

/// `node` is of the places from `begin` to before `end`.
void Coverage::add(unsigned node, unsigned begin, unsigned end, unsigned first,
                   unsigned last, int change) {
  if (end <= first || last < begin)
    return;
  if (first <= begin && end - 1 <= last) {
    nodes[node].added += change;
    nodes[node].least += change;
    return;
  }
  unsigned middle = begin + (end - begin) / 2;
  add(2 * node, begin, middle, first, last, change);
  add(2 * node + 1, middle, end, first, last, change);
  nodes[node].least = nodes[node].added + std::min(nodes[2 * node].least,
                                                   nodes[2 * node + 1].least);
}

unsigned Coverage::lastFree(unsigned place) const {
  return std::max(find(1, 0, leaves, place, 0), 0);
}

/// -1 if there is none. `above`: what was added to nodes around this one.
int Coverage::find(unsigned node, unsigned begin, unsigned end, unsigned place,
                   int above) const {
  if (begin > place || above + nodes[node].least > 0)
    return -1;
  if (end - begin == 1)
    return begin;
  unsigned middle = begin + (end - begin) / 2;
  above += nodes[node].added;
  int found = find(2 * node + 1, middle, end, place, above);
  return found >= 0 ? found : find(2 * node, begin, middle, place, above);
}

} // namespace charonia::graph
