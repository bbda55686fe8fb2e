#include "frontends/onnx/Tensors.h"
#include "frontends/common/Diagnostic.h"
#include "frontends/onnx/Schema.h"

using namespace charonia;
using namespace charonia::frontend;
using ::onnx::TensorProto;

const char *const frontend::onnx::elementTypeRemedy =
    "float, double, float16, bfloat16, float8 (e4m3fn, e5m2 and fnuz kinds), "
    "bool and 8 to 64 bit integers are supported; "
    "cast the model to one of them";

mlir::Type frontend::onnx::elementType(int dataType,
                                       mlir::MLIRContext *context) {
  mlir::Builder b(context);
  auto isUnsigned = mlir::IntegerType::Unsigned;
  switch (dataType) {
  case TensorProto::FLOAT:
    return b.getF32Type();
  case TensorProto::DOUBLE:
    return b.getF64Type();
  case TensorProto::FLOAT16:
    return b.getF16Type();
  case TensorProto::BFLOAT16:
    return b.getBF16Type();
  case TensorProto::FLOAT8E4M3FN:
    return b.getType<mlir::Float8E4M3FNType>();
  case TensorProto::FLOAT8E4M3FNUZ:
    return b.getType<mlir::Float8E4M3FNUZType>();
  case TensorProto::FLOAT8E5M2:
    return b.getType<mlir::Float8E5M2Type>();
  case TensorProto::FLOAT8E5M2FNUZ:
    return b.getType<mlir::Float8E5M2FNUZType>();
  case TensorProto::BOOL:
    return b.getI1Type();
  case TensorProto::INT8:
    return b.getIntegerType(8);
  case TensorProto::INT16:
    return b.getIntegerType(16);
  case TensorProto::INT32:
    return b.getIntegerType(32);
  case TensorProto::INT64:
    return b.getIntegerType(64);
  case TensorProto::UINT8:
    return mlir::IntegerType::get(context, 8, isUnsigned);
  case TensorProto::UINT16:
    return mlir::IntegerType::get(context, 16, isUnsigned);
  case TensorProto::UINT32:
    return mlir::IntegerType::get(context, 32, isUnsigned);
  case TensorProto::UINT64:
    return mlir::IntegerType::get(context, 64, isUnsigned);
  default:
    return {};
  }
}

int frontend::onnx::dataTypeOf(mlir::Type element) {
  for (int type = TensorProto::FLOAT; type <= TensorProto::FLOAT8E5M2FNUZ;
       ++type)
    if (elementType(type, element.getContext()) == element)
      return type;
  return TensorProto::UNDEFINED;
}

::onnx::TypeProto
frontend::onnx::typeProto(mlir::Type type,
                          llvm::ArrayRef<graph::Symbol> symbols) {
  ::onnx::TypeProto proto;
  auto *tensor = proto.mutable_tensor_type();
  tensor->set_elem_type(dataTypeOf(mlir::getElementTypeOrSelf(type)));
  tensor->mutable_shape();
  for (mlir::AffineExpr dim : graph::getShape(type)) {
    auto *out = tensor->mutable_shape()->add_dim();
    auto symbol = llvm::dyn_cast<mlir::AffineSymbolExpr>(dim);
    if (auto size = graph::constantOf(dim))
      out->set_dim_value(*size);
    else if (symbol && symbol.getPosition() < symbols.size())
      out->set_dim_param(symbols[symbol.getPosition()].name);
  }
  return proto;
}

template <typename To, typename From>
static std::vector<char> narrowed(const From &values) {
  std::vector<char> bytes(values.size() * sizeof(To));
  for (int i = 0; i < values.size(); ++i) {
    To value = static_cast<To>(values[i]);
    std::memcpy(bytes.data() + i * sizeof(To), &value, sizeof(To));
  }
  return bytes;
}

/// Contents in one of the typed fields of `tensor`; `elements` of them.
static std::optional<TensorData> readFields(std::shared_ptr<TensorProto> tensor,
                                            mlir::RankedTensorType type,
                                            int64_t elements,
                                            Problem &problem) {
  auto view = [&](const auto &field) -> std::optional<TensorData> {
    auto *data = reinterpret_cast<const char *>(field.data());
    return TensorData{
        type, llvm::ArrayRef<char>(data, field.size() * sizeof(*field.data())),
        tensor};
  };
  auto wrongCount = [&](int64_t count) -> std::optional<TensorData> {
    problem = {"holds " + std::to_string(count) +
                   " values, but its shape has " + std::to_string(elements),
               "export the model again"};
    return std::nullopt;
  };
  switch (tensor->data_type()) {
  case TensorProto::FLOAT:
    return tensor->float_data_size() == elements
               ? view(tensor->float_data())
               : wrongCount(tensor->float_data_size());
  case TensorProto::DOUBLE:
    return tensor->double_data_size() == elements
               ? view(tensor->double_data())
               : wrongCount(tensor->double_data_size());
  case TensorProto::INT64:
    return tensor->int64_data_size() == elements
               ? view(tensor->int64_data())
               : wrongCount(tensor->int64_data_size());
  case TensorProto::UINT64:
    return tensor->uint64_data_size() == elements
               ? view(tensor->uint64_data())
               : wrongCount(tensor->uint64_data_size());
  case TensorProto::UINT32:
    if (tensor->uint64_data_size() != elements)
      return wrongCount(tensor->uint64_data_size());
    return ownedTensor(type, narrowed<uint32_t>(tensor->uint64_data()));
  default:
    break;
  }
  const auto &ints = tensor->int32_data();
  if (ints.size() != elements)
    return wrongCount(ints.size());
  if (tensor->data_type() == TensorProto::BOOL) {
    std::vector<char> bytes(ints.size());
    for (int i = 0; i < ints.size(); ++i)
      bytes[i] = ints[i] != 0;
    return ownedTensor(type, std::move(bytes));
  }
  switch (type.getElementTypeBitWidth()) {
  case 8:
    return ownedTensor(type, narrowed<uint8_t>(ints));
  case 16:
    return ownedTensor(type, narrowed<uint16_t>(ints));
  default:
    return view(ints);
  }
}

int frontend::onnx::narrowType(int dataType) {
  bool isNarrow =
      dataType == TensorProto::INT4 || dataType == TensorProto::UINT4 ||
      dataType == TensorProto::INT2 || dataType == TensorProto::UINT2;
  return isNarrow ? dataType : 0;
}

int frontend::onnx::narrowBits(int dataType) {
  return dataType == TensorProto::INT4 || dataType == TensorProto::UINT4 ? 4
                                                                         : 2;
}
static bool isSignedNarrow(int dataType) {
  return dataType == TensorProto::INT4 || dataType == TensorProto::INT2;
}

mlir::Type frontend::onnx::heldType(int dataType, mlir::MLIRContext *context) {
  if (!narrowType(dataType))
    return elementType(dataType, context);
  return mlir::IntegerType::get(context, 8,
                                isSignedNarrow(dataType)
                                    ? mlir::IntegerType::Signless
                                    : mlir::IntegerType::Unsigned);
}

/// Elements from bytes that hold several, the first in the lowest bits.
static TensorData unpacked(mlir::RankedTensorType type, int dataType,
                           llvm::ArrayRef<char> packed) {
  int bits = frontend::onnx::narrowBits(dataType), each = 8 / bits;
  std::vector<char> bytes(type.getNumElements());
  for (size_t i = 0; i < bytes.size(); ++i) {
    auto byte = static_cast<unsigned char>(packed[i / each]);
    int value = byte >> (i % each * bits) & ((1 << bits) - 1);
    bool negative = isSignedNarrow(dataType) && value >> (bits - 1);
    bytes[i] = static_cast<char>(negative ? value - (1 << bits) : value);
  }
  return ownedTensor(type, std::move(bytes));
}

/// The type of dense contents, and its size in `elements` and `bytes`.
static mlir::RankedTensorType
checkedType(int dataType, llvm::ArrayRef<int64_t> dims, int64_t &elements,
            int64_t &bytes, mlir::MLIRContext *context, Problem &problem) {
  mlir::Type element = frontend::onnx::heldType(dataType, context);
  if (!element) {
    problem = {"element type " + frontend::onnx::dataTypeName(dataType) +
                   " is not supported",
               frontend::onnx::elementTypeRemedy};
    return {};
  }
  return denseType(element, dims, elements, bytes, problem);
}

mlir::RankedTensorType frontend::onnx::storedType(int dataType,
                                                  llvm::ArrayRef<int64_t> dims,
                                                  mlir::MLIRContext *context) {
  int64_t elements, bytes;
  Problem ignored;
  return checkedType(dataType, dims, elements, bytes, context, ignored);
}

std::optional<TensorData> frontend::onnx::readTensor(TensorProto &source,
                                                     bool mayTake,
                                                     ExternalFiles &files,
                                                     mlir::MLIRContext *context,
                                                     Problem &problem) {
  llvm::SmallVector<int64_t> dims(source.dims().begin(), source.dims().end());
  int64_t elements, bytes;
  auto type =
      checkedType(source.data_type(), dims, elements, bytes, context, problem);
  if (!type)
    return std::nullopt;
  if (source.has_segment()) {
    problem = {"is a segment of a tensor, which is not supported",
               "export the model again"};
    return std::nullopt;
  }
  int dataType = source.data_type();
  if (narrowType(dataType)) {
    int each = 8 / narrowBits(dataType);
    bytes = elements / each + (elements % each != 0);
  }
  std::optional<TensorData> data;
  if (source.data_location() == TensorProto::EXTERNAL) {
    auto loaded = files.load(source, bytes, problem);
    if (!loaded)
      return std::nullopt;
    data = TensorData{type, loaded->bytes, loaded->owner};
  } else {
    auto tensor = std::make_shared<TensorProto>();
    if (mayTake)
      tensor->Swap(&source);
    else
      *tensor = source;
    if (tensor->has_raw_data()) {
      const std::string &raw = tensor->raw_data();
      if (static_cast<int64_t>(raw.size()) != bytes) {
        problem = {"holds " + std::to_string(raw.size()) +
                       " bytes, but its shape and type take " +
                       std::to_string(bytes),
                   "export the model again"};
        return std::nullopt;
      }
      data = TensorData{type, llvm::ArrayRef<char>(raw.data(), raw.size()),
                        tensor};
    } else {
      // Of a narrowType a field holds the elements of a byte.
      data = readFields(tensor, type, narrowType(dataType) ? bytes : elements,
                        problem);
    }
  }
  if (data && narrowType(dataType))
    return unpacked(type, dataType, data->bytes);
  if (data)
    data = normalizeBools(std::move(*data));
  return data;
}

std::optional<TensorData>
frontend::onnx::readSparse(::onnx::SparseTensorProto &sparse,
                           ExternalFiles &files, mlir::MLIRContext *context,
                           Problem &problem) {
  auto values =
      readTensor(*sparse.mutable_values(), false, files, context, problem);
  if (!values)
    return std::nullopt;
  auto indices =
      readTensor(*sparse.mutable_indices(), false, files, context, problem);
  if (!indices)
    return std::nullopt;
  llvm::SmallVector<int64_t> dims(sparse.dims().begin(), sparse.dims().end());
  int64_t elements, bytes;
  auto type = checkedType(sparse.values().data_type(), dims, elements, bytes,
                          context, problem);
  if (!type)
    return std::nullopt;
  constexpr int64_t maxDenseBytes = int64_t(1) << 32;
  int64_t rank = dims.size(), count = values->type.getNumElements();
  bool linear = indices->type.getRank() == 1;
  if (bytes > maxDenseBytes || values->type.getRank() != 1 ||
      !indices->type.getElementType().isInteger(64) ||
      indices->type.getNumElements() != (linear ? count : count * rank)) {
    problem = {"is a sparse tensor whose values, indices and shape do not fit "
               "together",
               "store it as a dense tensor"};
    return std::nullopt;
  }
  std::vector<char> dense(bytes);
  int64_t size = graph::elementBytes(type.getElementType());
  for (int64_t i = 0; i < count; ++i) {
    int64_t position = 0;
    for (int64_t d = 0, terms = linear ? 1 : rank; d < terms; ++d) {
      int64_t index, extent = linear ? elements : dims[d];
      std::memcpy(&index, indices->bytes.data() + (i * terms + d) * 8, 8);
      if (index < 0 || index >= extent) {
        problem = {"is a sparse tensor with an index out of its shape",
                   "export the model again"};
        return std::nullopt;
      }
      position = position * extent + index;
    }
    std::memcpy(dense.data() + position * size, values->bytes.data() + i * size,
                size);
  }
  return ownedTensor(type, std::move(dense));
}
