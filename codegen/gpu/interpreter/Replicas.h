// Elements that several threads hold a copy of, and results that replace them.
#ifndef CHARONIA_CODEGEN_GPU_INTERPRETER_REPLICAS_H
#define CHARONIA_CODEGEN_GPU_INTERPRETER_REPLICAS_H

#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <vector>

namespace charonia::interpreter {

class Warp;
struct BufferCell;
struct Instruction;
enum class AccessKind;

/// Layouts may give an element of a buffer to several threads. In place all of
/// them read it and a store by one of them replaces it, so another may read the
/// new value already. That is harmless if all that comes of it is its own copy
/// of the result: if it takes part in that store of that element, with a
/// predicate that leaves the writing to the first. Whether it does is known
/// when the interval between two barriers ends.
class Replicas {
public:
  /// A read of an element and the store that may replace it before.
  struct Suspect {
    const BufferCell *cell;
    uint32_t store;  ///< The operation that writes.
    uint16_t reader; ///< The thread that reads.
    // The later one of the two, and the other one.
    const Warp *warp;
    const Instruction *instruction;
    unsigned lane;
    AccessKind kind;
    uint64_t address;
    uint32_t other;
    uint16_t otherThread;
  };

  /// `epoch`: of the thread's clock.
  void noteRead(const BufferCell *cell, uint32_t operation, uint16_t thread,
                uint32_t epoch) {
    reads[{cell, operation, thread}] = epoch;
  }
  bool hasRead(const BufferCell *cell, uint32_t operation,
               uint16_t thread) const {
    return reads.count({cell, operation, thread});
  }
  /// Calls `what(operation, thread, epoch)` for each read since the last
  /// barrier.
  template <typename F> void eachRead(const BufferCell *cell, F what) const {
    for (auto it = reads.lower_bound({cell, 0, 0});
         it != reads.end() && std::get<0>(it->first) == cell; ++it)
      what(std::get<1>(it->first), std::get<2>(it->first), it->second);
  }
  /// A thread takes part in a store, whether its predicate holds or not.
  void noteStore(const BufferCell *cell, uint32_t operation, uint16_t thread) {
    stores.insert({cell, operation, thread});
  }
  void suspect(const Suspect &suspect) { suspects.push_back(suspect); }

  /// Ends the interval: calls `report` with what is a race.
  template <typename F> void endInterval(F report) {
    for (const Suspect &s : suspects)
      if (!stores.count({s.cell, s.store, s.reader}))
        report(s);
    reads.clear();
    stores.clear();
    suspects.clear();
  }

private:
  using Access = std::tuple<const BufferCell *, uint32_t, uint16_t>;
  std::map<Access, uint32_t> reads;
  std::set<Access> stores;
  std::vector<Suspect> suspects;
};

} // namespace charonia::interpreter

#endif
