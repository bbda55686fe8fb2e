// The least elements of a run in memory, in order. The first `kept` elements
// become a heap with the greatest on top; each further element that is less
// takes the top's place. At the end the heap is taken apart from its top.
#include "codegen/cpu/KernelEmitter.h"

using namespace charonia;
using namespace charonia::cpu;

/// Code on the heap in elements [0, size) of `base`.
struct KernelEmitter::Heap {
  KernelEmitter &e;
  llvm::IRBuilder<> &b;
  Value *base;

  Value *address(Value *index) {
    return b.CreateInBoundsGEP(b.getInt64Ty(), base, index);
  }
  Value *load(Value *index) {
    return b.CreateAlignedLoad(b.getInt64Ty(), address(index), llvm::Align(8));
  }
  void store(Value *value, Value *index) {
    b.CreateAlignedStore(value, address(index), llvm::Align(8));
  }
  llvm::BasicBlock *block(llvm::StringRef name) {
    return llvm::BasicBlock::Create(e.context, name, e.kernel);
  }

  /// for (i = first; i != end; i += step), where `end` is ahead of `first`.
  template <typename Body>
  void loop(Value *first, Value *end, int64_t step, Body body) {
    llvm::BasicBlock *before = b.GetInsertBlock(), *head = block("heap.loop"),
                     *inside = block("heap.body"), *after = block("heap.end");
    b.CreateBr(head);
    b.SetInsertPoint(head);
    llvm::PHINode *i = b.CreatePHI(b.getInt64Ty(), 2);
    i->addIncoming(first, before);
    b.CreateCondBr(b.CreateICmpEQ(i, end), after, inside);
    b.SetInsertPoint(inside);
    body(i);
    i->addIncoming(b.CreateAdd(i, e.i64(step)), b.GetInsertBlock());
    b.CreateBr(head);
    b.SetInsertPoint(after);
  }

  template <typename Body> void when(Value *condition, Body body) {
    llvm::BasicBlock *inside = block("heap.then"), *after = block("heap.join");
    b.CreateCondBr(condition, inside, after);
    b.SetInsertPoint(inside);
    body();
    b.CreateBr(after);
    b.SetInsertPoint(after);
  }

  /// Puts `value` at `start` or below, where both children are heaps: greater
  /// children move up.
  void siftDown(Value *start, Value *size, Value *value) {
    llvm::BasicBlock *before = b.GetInsertBlock(), *head = block("sift.loop"),
                     *two = block("sift.children"), *move = block("sift.move"),
                     *after = block("sift.end");
    b.CreateBr(head);
    b.SetInsertPoint(head);
    llvm::PHINode *at = b.CreatePHI(b.getInt64Ty(), 2);
    at->addIncoming(start, before);
    Value *left = b.CreateAdd(b.CreateShl(at, 1), e.i64(1));
    b.CreateCondBr(b.CreateICmpSLT(left, size), two, after);
    b.SetInsertPoint(two);
    // The right child, or the left one again.
    Value *next = b.CreateAdd(left, e.i64(1));
    Value *right = b.CreateSelect(b.CreateICmpSLT(next, size), next, left);
    Value *a = load(left), *c = load(right);
    Value *isRight = b.CreateICmpSGT(c, a);
    Value *child = b.CreateSelect(isRight, right, left),
          *greater = b.CreateSelect(isRight, c, a);
    b.CreateCondBr(b.CreateICmpSGT(greater, value), move, after);
    b.SetInsertPoint(move);
    store(greater, at);
    at->addIncoming(child, move);
    b.CreateBr(head);
    b.SetInsertPoint(after);
    store(value, at);
  }

  /// Element `i` replaces the top if it is less.
  void take(Value *i, Value *size) {
    Value *value = load(i), *top = load(e.i64(0));
    when(b.CreateICmpSLT(value, top), [&] {
      store(top, i);
      siftDown(e.i64(0), size, value);
    });
  }

  /// The elements of `bits`, from `first` on, each as it may replace the top.
  void takeSome(Value *bits, Value *first, Value *size) {
    llvm::BasicBlock *before = b.GetInsertBlock(), *head = block("some.loop"),
                     *inside = block("some.body"), *after = block("some.end");
    b.CreateBr(head);
    b.SetInsertPoint(head);
    llvm::PHINode *left = b.CreatePHI(bits->getType(), 2);
    left->addIncoming(bits, before);
    Value *none = llvm::ConstantInt::get(bits->getType(), 0);
    b.CreateCondBr(b.CreateICmpEQ(left, none), after, inside);
    b.SetInsertPoint(inside);
    Value *at = b.CreateIntrinsic(llvm::Intrinsic::cttz, {bits->getType()},
                                  {left, b.getTrue()});
    take(b.CreateAdd(first, b.CreateZExt(at, b.getInt64Ty())), size);
    Value *one = llvm::ConstantInt::get(bits->getType(), 1);
    left->addIncoming(b.CreateAnd(left, b.CreateSub(left, one)),
                      b.GetInsertBlock());
    b.CreateBr(head);
    b.SetInsertPoint(after);
  }

  /// Elements from `size` to `count` that are less than the top replace it.
  /// Where few are kept few are: some at once are compared with the top, and
  /// only those that are less than it are looked at.
  void takeLess(Value *size, Value *count) {
    constexpr int64_t width = 32;
    Value *whole = b.CreateAnd(b.CreateSub(count, size), e.i64(-width)),
          *end = b.CreateAdd(size, whole);
    loop(size, end, width, [&](Value *i) {
      auto *type = llvm::FixedVectorType::get(b.getInt64Ty(), width);
      Value *some = b.CreateAlignedLoad(type, address(i), llvm::Align(8)),
            *top = b.CreateVectorSplat(width, load(e.i64(0)));
      Value *less = b.CreateICmpSLT(some, top);
      takeSome(b.CreateBitCast(less, b.getIntNTy(width)), i, size);
    });
    loop(end, count, 1, [&](Value *i) { take(i, size); });
  }
};

void KernelEmitter::emitSort(tile::SortOp op) {
  Value *first = scalar(op.getFirst()), *count = scalar(op.getCount()),
        *kept = scalar(op.getKept());
  Value *base = b.CreateInBoundsGEP(b.getInt64Ty(),
                                    scalars.lookup(op.getBuffer()), first);
  Heap heap{*this, b, base};
  heap.when(b.CreateICmpSGT(kept, i64(0)), [&] {
    Value *last = b.CreateSub(kept, i64(1));
    heap.loop(b.CreateSub(b.CreateLShr(kept, 1), i64(1)), i64(-1), -1,
              [&](Value *i) { heap.siftDown(i, kept, heap.load(i)); });
    heap.takeLess(kept, count);
    heap.loop(last, i64(0), -1, [&](Value *i) {
      Value *value = heap.load(i);
      heap.store(heap.load(i64(0)), i);
      heap.siftDown(i64(0), i, value);
    });
  });
}
