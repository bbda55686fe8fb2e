// Tensors of TensorFlow's messages.
#include "frontends/common/Diagnostic.h"
#include "frontends/tensorflow/Bundle.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::tensorflow;

const char *const charonia::frontend::tensorflow::elementTypeRemedy =
    "float32, float64, float16, bfloat16, bool and 8 to 64 bit integers are "
    "supported; cast the model to one of them";

namespace {
/// A row of TensorFlow's enum DataType.
struct DataType {
  int number;
  const char *name;
};
} // namespace

static const DataType dataTypes[] = {
    {1, "float32"},       {2, "float64"},   {3, "int32"},
    {4, "uint8"},         {5, "int16"},     {6, "int8"},
    {7, "string"},        {8, "complex64"}, {9, "int64"},
    {10, "bool"},         {11, "qint8"},    {12, "quint8"},
    {13, "qint32"},       {14, "bfloat16"}, {15, "qint16"},
    {16, "quint16"},      {17, "uint16"},   {18, "complex128"},
    {19, "float16"},      {20, "resource"}, {21, "variant"},
    {22, "uint32"},       {23, "uint64"},   {24, "float8_e5m2"},
    {25, "float8_e4m3fn"}};

/// Variables of TF1 are references to tensors.
constexpr int reference = 100;

std::string charonia::frontend::tensorflow::dtypeName(int dtype) {
  for (const DataType &type : dataTypes)
    if (type.number == dtype || type.number + reference == dtype)
      return type.name;
  return "type " + std::to_string(dtype);
}

mlir::Type
charonia::frontend::tensorflow::elementType(int dtype,
                                            mlir::MLIRContext *context) {
  mlir::Builder b(context);
  auto unsignedType = [&](unsigned width) {
    return mlir::IntegerType::get(context, width, mlir::IntegerType::Unsigned);
  };
  switch (dtype > reference ? dtype - reference : dtype) {
  case 1:
    return b.getF32Type();
  case 2:
    return b.getF64Type();
  case 3:
    return b.getIntegerType(32);
  case 4:
    return unsignedType(8);
  case 5:
    return b.getIntegerType(16);
  case 6:
    return b.getIntegerType(8);
  case 9:
    return b.getIntegerType(64);
  case 10:
    return b.getI1Type();
  case 14:
    return b.getBF16Type();
  case 17:
    return unsignedType(16);
  case 19:
    return b.getF16Type();
  case 22:
    return unsignedType(32);
  case 23:
    return unsignedType(64);
  default:
    return {};
  }
}

/// `count` values as `elements`: the last one repeats, and without any all are
/// zero. `valueAt` gives one as To.
template <typename To, typename Field>
static std::vector<char> spread(const Field &field, int64_t elements) {
  std::vector<char> bytes(elements * sizeof(To));
  for (int64_t i = 0; i < elements && !field.empty(); ++i) {
    int64_t from = std::min<int64_t>(i, field.size() - 1);
    To value = static_cast<To>(field.Get(static_cast<int>(from)));
    std::memcpy(bytes.data() + i * sizeof(To), &value, sizeof(To));
  }
  return bytes;
}

/// The values that a tensor lists, as its bytes.
static std::vector<char> listed(const proto::Tensor &tensor, mlir::Type element,
                                int64_t n, int64_t &values) {
  unsigned width = element.getIntOrFloatBitWidth();
  bool isUnsigned = element.isUnsignedInteger();
  auto take = [&]<typename To>(const auto &field, To) {
    values = field.size();
    return spread<To>(field, n);
  };
  if (element.isF32())
    return take(tensor.floats(), float());
  if (element.isF64())
    return take(tensor.doubles(), double());
  if (element.isF16() || element.isBF16())
    return take(tensor.halves(), uint16_t());
  if (element.isInteger(1))
    return take(tensor.bools(), uint8_t());
  if (width == 64)
    return isUnsigned ? take(tensor.unsigned_longs(), uint64_t())
                      : take(tensor.longs(), int64_t());
  if (width == 32)
    return isUnsigned ? take(tensor.unsigned_ints(), uint32_t())
                      : take(tensor.ints(), int32_t());
  return width == 16 ? take(tensor.ints(), uint16_t())
                     : take(tensor.ints(), uint8_t());
}

std::optional<TensorData> charonia::frontend::tensorflow::readTensor(
    const proto::Tensor &tensor, std::shared_ptr<const void> owner,
    mlir::MLIRContext *context, Problem &problem) {
  mlir::Type element = elementType(tensor.dtype(), context);
  if (!element) {
    problem = {"is of " + dtypeName(tensor.dtype()) +
                   ", which is not supported",
               elementTypeRemedy};
    return std::nullopt;
  }
  llvm::SmallVector<int64_t> dims;
  for (const auto &dim : tensor.shape().dims())
    dims.push_back(dim.size());
  int64_t elements, bytes;
  auto type = denseType(element, dims, elements, bytes, problem);
  if (!type)
    return std::nullopt;
  const std::string &content = tensor.content();
  if (!content.empty()) {
    if (static_cast<int64_t>(content.size()) == bytes)
      return normalizeBools(
          {type, llvm::ArrayRef<char>(content.data(), content.size()), owner});
    problem = {"holds " + std::to_string(content.size()) +
                   " bytes, but its shape and type take " +
                   std::to_string(bytes),
               "the file is damaged: fetch or export the model again"};
    return std::nullopt;
  }
  // A shape without values is how a file of a few bytes asks for gigabytes;
  // importers broadcast single values.
  constexpr int64_t maxRepeated = int64_t(1) << 16;
  int64_t values = 0;
  bool isLarge = bytes > maxRepeated;
  std::vector<char> data =
      listed(tensor, element, isLarge ? 0 : elements, values);
  if (isLarge && values != elements) {
    problem = {"repeats a value " + std::to_string(elements) + " times",
               "store it in full, or compute it with tf.fill"};
    return std::nullopt;
  }
  if (isLarge)
    data = listed(tensor, element, elements, values);
  if (values > elements) {
    problem = {"lists " + std::to_string(values) +
                   " values, but its shape has " + std::to_string(elements),
               "the file is damaged: fetch or export the model again"};
    return std::nullopt;
  }
  return ownedTensor(type, std::move(data));
}
