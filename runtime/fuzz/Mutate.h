//===- Mutate.h - Random changes of a manifest ------------------*- C++ -*-===//
#ifndef CHARONIA_RUNTIME_FUZZ_MUTATE_H
#define CHARONIA_RUNTIME_FUZZ_MUTATE_H

#include "runtime/engine/Encoding.h"

#include <climits>
#include <random>

namespace charonia::engine::fuzz {

class Random {
public:
  explicit Random(uint64_t seed) : random(seed) {}

  uint64_t bits() { return random(); }
  uint64_t below(uint64_t bound) { return random() % bound; }

  /// Numbers that have broken programs before, and any others.
  int64_t number() {
    static const int64_t edges[] = {0,
                                    1,
                                    -1,
                                    2,
                                    63,
                                    64,
                                    255,
                                    256,
                                    4095,
                                    4096,
                                    INT32_MAX,
                                    INT32_MIN,
                                    INT64_MAX,
                                    INT64_MIN,
                                    INT64_MAX - 1,
                                    int64_t(1) << 40,
                                    UINT32_MAX};
    return below(4) ? edges[below(std::size(edges))]
                    : static_cast<int64_t>(bits());
  }

  ShapeExpr expression() {
    std::vector<ShapeExpr::Term> terms;
    for (uint64_t n = below(9); n-- > 0;) {
      auto op = static_cast<ShapeExpr::Op>(below(26));
      terms.push_back(
          {op, below(2) ? static_cast<int64_t>(below(3)) : number()});
    }
    return ShapeExpr::fromTerms(std::move(terms));
  }

  /// One of them; null if there is none.
  template <typename T> T *pick(std::vector<T> &from) {
    return from.empty() ? nullptr : &from[below(from.size())];
  }

private:
  std::mt19937_64 random;
};

inline void mutateSymbol(Symbol &symbol, Random &random) {
  int64_t Symbol::*fields[] = {&Symbol::min, &Symbol::opt, &Symbol::max,
                               &Symbol::divisor};
  symbol.*fields[random.below(4)] = random.number();
}

inline void mutateBuffer(Buffer &b, Random &random) {
  switch (random.below(9)) {
  case 0:
    b.kind = static_cast<Buffer::Kind>(random.below(7));
    break;
  case 1:
    b.index = static_cast<uint32_t>(random.number());
    break;
  case 2:
    b.weightOffset = random.number();
    break;
  case 3:
    b.size = random.below(2) ? ShapeExpr(random.number()) : random.expression();
    break;
  case 4:
    b.firstStep = static_cast<uint32_t>(random.number());
    break;
  case 5:
    b.lastStep = static_cast<uint32_t>(random.number());
    break;
  case 6:
    b.alignment = static_cast<uint32_t>(random.number());
    break;
  case 7:
    b.alias = static_cast<uint32_t>(random.below(2) ? random.below(6)
                                                    : random.number());
    break;
  case 8:
    b.aliasOffset = random.expression();
    break;
  }
}

inline void mutateStep(Step &s, Random &random) {
  switch (random.below(5)) {
  case 4:
    s.symbols.assign(random.below(4),
                     static_cast<uint32_t>(random.below(2) ? random.below(6)
                                                           : random.number()));
    break;
  case 0:
    s.kind = static_cast<Step::Kind>(random.below(6));
    break;
  case 1:
    s.kernel = static_cast<uint32_t>(random.number());
    break;
  case 2:
    if (Argument *argument = random.pick(s.args))
      *argument = {static_cast<uint32_t>(random.below(6)), random.expression()};
    break;
  case 3:
    s.bytes = random.expression();
    break;
  }
}

inline void mutateMap(TensorMap &map, Random &random) {
  switch (random.below(6)) {
  case 0: {
    uint32_t *numbers[] = {&map.argument, &map.elementBytes, &map.swizzle};
    *numbers[random.below(3)] = static_cast<uint32_t>(
        random.below(2) ? 1 << random.below(8) : random.number());
    break;
  }
  case 1:
  case 2: // What is found when shapes are bound, too.
    if (ShapeExpr *size =
            random.pick(random.below(2) ? map.extents : map.strides))
      *size = random.below(2)
                  ? ShapeExpr(static_cast<int64_t>(random.below(80)) * 16)
                  : random.expression();
    break;
  case 3:
    if (uint32_t *number = random.pick(random.below(2) ? map.box : map.steps))
      *number = static_cast<uint32_t>(random.below(2) ? random.below(300)
                                                      : random.number());
    break;
  case 4:
    if (int32_t *corner = random.pick(random.below(2) ? map.lower : map.upper))
      *corner = static_cast<int32_t>(random.number());
    break;
  case 5: { // Another number of dimensions, in part or throughout.
    auto cut = random.below(6);
    map.extents.resize(cut, 1);
    map.strides.resize(cut ? cut - 1 : 0, 16);
    if (random.below(2))
      map.box.resize(cut, 1), map.steps.resize(cut, 1);
    if (random.below(2))
      map.lower.clear(), map.upper.clear();
    break;
  }
  }
}

inline void mutateMaps(std::vector<TensorMap> &maps, Random &random) {
  if (TensorMap *map = random.pick(maps); map && random.below(8))
    mutateMap(*map, random);
  else
    maps.resize(random.below(20), map ? *map : TensorMap());
}

inline void mutateVariant(Variant &variant, Random &random) {
  if (KernelCode *k = random.pick(variant.kernels); k && random.below(2)) {
    switch (random.below(5)) {
    case 3:
    case 4:
      mutateMaps(k->maps, random);
      break;
    case 0:
      k->grid = random.expression();
      break;
    case 1:
      k->module = static_cast<uint32_t>(random.number());
      break;
    case 2:
      k->entryOffset = random.number();
      break;
    }
    return;
  }
  if (CodeModule *c = random.pick(variant.modules)) {
    Range *ranges[] = {&c->image, &c->ptx, &c->cubin};
    Range &range = *ranges[random.below(3)];
    (random.below(2) ? range.offset : range.size) = random.number();
  }
}

/// Changes one field somewhere.
inline void mutateField(Manifest &m, Random &random) {
  Program *program = random.pick(m.programs);
  switch (program ? random.below(8) : 0) {
  case 7:
    if (Kernel *kernel = random.pick(program->kernels))
      kernel->numSymbols = static_cast<uint32_t>(
          random.below(2) ? random.below(4) : random.number());
    break;
  case 0:
    if (Symbol *symbol = random.pick(m.signature.symbols))
      mutateSymbol(*symbol, random);
    break;
  case 6:
    if (Constraint *constraint = random.pick(m.signature.constraints))
      *constraint = {static_cast<Constraint::Relation>(random.below(6)),
                     random.expression(), random.expression(), "as it is"};
    break;
  case 1: {
    auto &specs = random.below(2) ? m.signature.inputs : m.signature.outputs;
    if (TensorSpec *spec = random.pick(specs))
      if (ShapeExpr *dim = random.pick(spec->dims))
        *dim = random.expression();
    break;
  }
  case 2:
  case 3:
    if (Buffer *buffer = random.pick(program->buffers))
      mutateBuffer(*buffer, random);
    break;
  case 4:
    if (Step *step = random.pick(program->steps))
      mutateStep(*step, random);
    break;
  case 5:
    if (Variant *variant = random.pick(program->variants))
      mutateVariant(*variant, random);
    break;
  }
}

} // namespace charonia::engine::fuzz

#endif // CHARONIA_RUNTIME_FUZZ_MUTATE_H
