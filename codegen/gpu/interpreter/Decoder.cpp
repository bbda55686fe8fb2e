#include "codegen/gpu/interpreter/Decoder.h"
#include "codegen/tile/ir/IndexAttributes.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace charonia;
using namespace charonia::interpreter;

static const OperationTable &operationTable() {
  static const OperationTable table = [] {
    OperationTable all;
    for (auto *add : {addControl, addIntegers, addFloats, addCasts, addMemory,
                      addWarpOperations, addMatrices, addDots, addAsyncCopies,
                      addInlinePtx, addBarriers, addTensorCopies, addClusters})
      add(all);
    return all;
  }();
  return table;
}

FailureOr<Kernel> Kernel::decode(LLVM::LLVMFuncOp function) {
  auto program = std::make_unique<Program>();
  if (auto bits = function->getAttrOfType<IntegerAttr>(tile::kIndexBitsAttr)) {
    if (bits.getInt() != 32 && bits.getInt() != 64)
      return function.emitError("has indices of ")
             << bits.getInt() << " bits; 32 and 64 are known";
    program->indexBits = bits.getInt();
  }
  if (failed(Decoder(*program, function).run()))
    return failure();
  return Kernel(std::move(program));
}

/// 128 bytes by value that nobody writes.
bool Decoder::isMap(BlockArgument argument) {
  if (argument.getOwner() != &function.getBody().front())
    return false;
  auto attribute = [&](StringRef name) {
    return function.getArgAttr(argument.getArgNumber(), name);
  };
  auto type = dyn_cast_or_null<TypeAttr>(
      attribute(LLVM::LLVMDialect::getByValAttrName()));
  auto array = type ? dyn_cast<LLVM::LLVMArrayType>(type.getValue())
                    : LLVM::LLVMArrayType();
  return array && array.getNumElements() == 128 &&
         array.getElementType().isInteger(8) &&
         attribute(NVVM::NVVMDialect::getGridConstantAttrName());
}

LogicalResult Decoder::run() {
  program.name = function.getName().str();
  auto threads = function->getAttrOfType<DenseI32ArrayAttr>(
      NVVM::NVVMDialect::getReqntidAttrName());
  if (!threads || threads.size() != 1 || threads[0] <= 0 || threads[0] > 1024)
    return function.emitError(
        "is no kernel of a known number of threads (nvvm.reqntid)");
  program.blockThreads = threads[0];
  if (function->hasAttr(NVVM::NVVMDialect::getClusterDimAttrName()))
    return function.emitError("runs in clusters of blocks that are fixed in "
                              "its code, which the interpreter does not know");
  if (auto cluster = function->getAttrOfType<IntegerAttr>(tile::kClusterAttr)) {
    if (cluster.getInt() < 1 || cluster.getInt() > 16)
      return function.emitError("runs in clusters of ")
             << cluster.getInt() << " blocks; 1 to 16 are known";
    program.clusterBlocks = cluster.getInt();
  }
  if (!llvm::hasSingleElement(function.getBody()))
    return function.emitError("has branches between blocks; the interpreter "
                              "takes structured control flow");
  for (BlockArgument argument : function.getArguments()) {
    using Kind = Program::Argument::Kind;
    bool isPointer = isa<LLVM::LLVMPointerType>(argument.getType());
    if (!isPointer && !argument.getType().isInteger(64))
      return function.emitError("has an argument of type ")
             << argument.getType();
    Kind kind = isMap(argument) ? Kind::Map
                : isPointer     ? Kind::Buffer
                                : Kind::Symbol;
    if (kind != Kind::Map && program.count(Kind::Map))
      return function.emitError("has arguments behind its tensor maps");
    define(argument);
    program.arguments.push_back({slot(argument), kind, false});
  }
  return decodeBlock(function.getBody().front());
}

LogicalResult Decoder::decodeBlock(mlir::Block &block) {
  const OperationTable &table = operationTable();
  for (Operation &op : block) {
    auto entry = table.find(op.getName().getStringRef());
    if (entry == table.end())
      return op.emitError("the interpreter does not know '")
             << op.getName().getStringRef() << "'";
    if (failed(entry->second(*this, &op)))
      return failure();
  }
  return success();
}

Type Decoder::elementOf(Type type) {
  auto vector = dyn_cast<VectorType>(type);
  return vector ? vector.getElementType() : type;
}

unsigned Decoder::bitsOf(Type type) const {
  type = elementOf(type);
  if (type.isIndex())
    return program.indexBits;
  if (auto pointer = dyn_cast<LLVM::LLVMPointerType>(type))
    return pointer.getAddressSpace() == 3 || pointer.getAddressSpace() == 7
               ? 32
               : 64;
  return type.getIntOrFloatBitWidth();
}

SmallVector<Slot, 4> Decoder::define(Value value) {
  SmallVector<Slot, 4> slots;
  if (auto structure = dyn_cast<LLVM::LLVMStructType>(value.getType())) {
    for (Type type : structure.getBody())
      slots.push_back(newSlot(bitsOf(type)));
  } else {
    int64_t count = 1;
    if (auto vector = dyn_cast<VectorType>(value.getType()))
      count = vector.getNumElements();
    for (int64_t i = 0; i < count; ++i)
      slots.push_back(newSlot(bitsOf(value.getType())));
  }
  values[value] = slots;
  return slots;
}

Slot Decoder::constant(Operation *op, uint64_t value, unsigned bits) {
  Instruction &i = emit(op, handlers::setConstant);
  i.result = newSlot(bits);
  i.bits = bits;
  i.constant = value;
  return i.result;
}

/// "llvm.load at kernel.mlir:12:5".
static std::string describe(Operation *op) {
  std::string text = op->getName().getStringRef().str();
  llvm::raw_string_ostream os(text);
  LocationAttr location(op->getLoc());
  if (auto file = location.findInstanceOf<FileLineColLoc>()) {
    StringRef path = file.getFilename().getValue();
    os << " at " << path.substr(path.rfind('/') + 1) << ":" << file.getLine()
       << ":" << file.getStartColumn();
  }
  return text;
}

Instruction &Decoder::emit(Operation *op, Handler run) {
  auto [it, isNew] =
      operationNumbers.try_emplace(op, program.operations.size());
  if (isNew)
    program.operations.push_back(describe(op));
  Instruction &i = program.code.emplace_back();
  i.run = run;
  i.operation = it->second;
  return i;
}

/// The number of the function's argument that a pointer comes from; -1 if that
/// is not known.
int Decoder::rootOf(Value pointer) {
  for (;;) {
    if (auto argument = dyn_cast<BlockArgument>(pointer)) {
      Operation *parent = argument.getOwner()->getParentOp();
      if (parent == function)
        return argument.getArgNumber();
      auto loop = dyn_cast<scf::ForOp>(parent);
      if (!loop || argument == loop.getInductionVar())
        return -1;
      pointer = loop.getTiedLoopInit(argument)->get();
      continue;
    }
    auto offset = pointer.getDefiningOp<LLVM::GEPOp>();
    if (!offset)
      return -1;
    pointer = offset.getBase();
  }
}

void Decoder::noteAccess(Value pointer, unsigned bytes, bool writes) {
  auto type = cast<LLVM::LLVMPointerType>(pointer.getType());
  bool isShared = type.getAddressSpace() == 3 || type.getAddressSpace() == 7;
  unsigned &granule = isShared ? program.sharedGranule : program.globalGranule;
  granule = std::min(granule, bytes);
  if (isShared || !writes)
    return;
  int root = rootOf(pointer);
  for (auto [i, argument] : llvm::enumerate(program.arguments))
    if (argument.isBuffer() && (root < 0 || root == int(i)))
      argument.isWritten = true;
}
