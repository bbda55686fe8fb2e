// The copy engine: boxes of tensors that one thread asks for, of which an
// mbarrier tells when they are there.
//
// A copy may write at any moment between its issue and the end of the phase
// that its bytes belong to, and is seen by who has waited for that phase, or
// knows somebody who has. Its bytes have to be expected when it is issued.
#include "codegen/gpu/interpreter/Machine.h"
#include "codegen/gpu/interpreter/TensorBox.h"
#include <cstring>

using namespace charonia;
using namespace charonia::interpreter;

namespace {

/// Finds what of a box lies in its tensor.
class BoxReader {
public:
  BoxReader(TensorCopy &copy, const TensorMap &map)
      : copy(copy), map(map), machine(copy.warp->block.machine) {}

  void read(const Position &start, llvm::ArrayRef<int64_t> offsets) {
    Box box(map);
    uint32_t at = 0;
    box.eachRow(start, offsets, [&](const Position &position) {
      readRow(position, at);
      at += box.rowBytes();
    });
  }

private:
  void readRow(const Position &position, uint32_t at) {
    uint64_t offset = 0;
    for (size_t d = 1; d < position.size(); ++d) {
      if (position[d] < 0 || position[d] >= map.extents[d])
        return;
      offset += position[d] * map.strides[d - 1];
    }
    int64_t first = std::max<int64_t>(position[0], 0),
            last = std::min(position[0] + map.box[0], map.extents[0]);
    if (first >= last)
      return;
    uint64_t address =
        bufferAddress(map.buffer, machine.launch.buffers[map.buffer].phase) +
        offset + first * map.elementBytes;
    uint32_t bytes = (last - first) * map.elementBytes;
    if (const uint8_t *from =
            machine.access(*copy.warp, *copy.instruction, copy.lane, address,
                           bytes, AccessKind::Read, map.elementBytes))
      copy.runs.push_back(
          {from, uint32_t(at + (first - position[0]) * map.elementBytes),
           bytes});
  }

  TensorCopy &copy;
  const TensorMap &map;
  Machine &machine;
};

} // namespace

std::vector<uint8_t> TensorCopy::read() const {
  std::vector<uint8_t> box(bytes);
  for (const Run &run : runs)
    std::memcpy(box.data() + run.at, run.from, run.bytes);
  return box;
}

/// Whether the barrier is ready for the bytes; a finding ends the launch.
static bool expects(const TensorCopy &copy, const Mbarrier &barrier) {
  Machine &machine = copy.warp->block.machine;
  std::string name = "the mbarrier at byte " + std::to_string(copy.barrier);
  if (!barrier.isFenced)
    machine.report(FindingKind::MissingFence, *copy.warp, *copy.instruction,
                   copy.lane,
                   "gives the copy engine " + name +
                       ", which was initialized without fence.mbarrier.init",
                   barrier.start.operation);
  if (barrier.issued + copy.bytes <= barrier.expected)
    return true;
  machine.abort(
      FindingKind::UnexpectedBytes, *copy.warp, *copy.instruction, copy.lane,
      "brings " + llvm::Twine(copy.bytes) + " bytes to " + name +
          ", whose phase " + llvm::Twine(barrier.phase) + " expects " +
          llvm::Twine(barrier.expected - barrier.issued) + " more");
  return false;
}

void Block::startTensorCopy(TensorCopy copy, const TensorMap &map,
                            const Position &start, const Position &offsets) {
  Warp &warp = *copy.warp;
  const Instruction &i = *copy.instruction;
  Mbarrier *barrier = findBarrier(warp, i, copy.lane, copy.barrier);
  if (!barrier || !expects(copy, *barrier))
    return;
  barrier->issued += copy.bytes;
  copy.phase = barrier->phase;
  for (uint32_t offset = 0; offset < copy.bytes; offset += kPieceBytes) {
    uint32_t address = copy.placeOf(offset);
    if (!access(warp, i, copy.lane, address, kPieceBytes, AccessKind::Engine,
                kPieceBytes)) {
      machine.aborted = true; // There is no place for what is to come.
      return;
    }
    for (Cell &cell : cells(address, kPieceBytes))
      noteWrite(cell, {barrier->agent, copy.phase + 1, i.operation}, false);
  }
  BoxReader(copy, map).read(start, offsets);
  copy.atIssue = copy.read();
  tensorCopies.push_back(std::move(copy));
  CopyTiming timing = machine.launch.copies;
  if (timing == CopyTiming::Early ||
      (timing == CopyTiming::Seeded && machine.random() % 4 == 0))
    land(tensorCopies.back());
}

void Block::land(TensorCopy &copy) {
  copy.landed = true;
  std::vector<uint8_t> box = copy.read();
  for (uint32_t offset = 0; offset < copy.bytes; offset += kPieceBytes)
    std::memcpy(shared.data() + copy.placeOf(offset), box.data() + offset,
                kPieceBytes);
  Mbarrier &barrier = mbarriers.find(copy.barrier)->second;
  barrier.landed += copy.bytes;
  completeIfDone(barrier);
}

bool Block::landNext() {
  llvm::SmallVector<TensorCopy *> pending;
  for (TensorCopy &copy : tensorCopies)
    if (!copy.landed)
      pending.push_back(&copy);
  if (pending.empty())
    return false;
  bool isRandom = machine.launch.copies == CopyTiming::Seeded;
  land(*pending[isRandom ? machine.random() % pending.size() : 0]);
  return true;
}

void Block::finishTensorCopies(const Mbarrier &barrier) {
  llvm::erase_if(tensorCopies, [&](const TensorCopy &copy) {
    if (copy.barrier != barrier.address || copy.phase >= barrier.phase)
      return false;
    if (copy.read() != copy.atIssue)
      machine.report(FindingKind::ChangedSource, *copy.warp, *copy.instruction,
                     copy.lane,
                     "what it copies from changed before it was done");
    return true;
  });
}

void Block::checkTensorCopies() {
  for (const TensorCopy &copy : tensorCopies)
    machine.report(FindingKind::UnfinishedCopy, *copy.warp, *copy.instruction,
                   copy.lane,
                   "may still be under way when its block ends: nobody has "
                   "waited for the mbarrier at byte " +
                       llvm::Twine(copy.barrier));
}
