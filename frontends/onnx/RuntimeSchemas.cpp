#include "frontends/onnx/RuntimeSchemas.h"
#include "onnx/defs/schema.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"
#include <cassert>

using namespace charonia::frontend::onnx;
using llvm::StringRef;
using ::onnx::AttributeProto;
using ::onnx::OpSchema;

namespace {
/// One operator, in words separated by spaces. Operands are "name:type", with ?
/// where one is optional and * where it repeats; attributes "name:type", with !
/// where one is required and "=value" for its default.
struct Definition {
  const char *domain, *name, *inputs, *outputs, *attributes;
};

/// Element types that a letter stands for; operands of one letter have the same
/// type.
struct TypeSet {
  char letter;
  std::vector<std::string> types;
};
} // namespace

static const TypeSet typeSets[] = {
    {'T',
     {"tensor(float)", "tensor(float16)", "tensor(bfloat16)",
      "tensor(double)"}},
    {'U',
     {"tensor(float)", "tensor(float16)", "tensor(bfloat16)",
      "tensor(double)"}},
    {'V',
     {"tensor(float)", "tensor(float16)", "tensor(bfloat16)",
      "tensor(double)"}},
    {'F', {"tensor(float)"}},
    {'Q', {"tensor(int8)", "tensor(uint8)"}},
    {'R', {"tensor(int8)", "tensor(uint8)"}},
    {'S', {"tensor(int8)", "tensor(uint8)"}},
    {'W',
     {"tensor(int8)", "tensor(uint8)", "tensor(int16)", "tensor(uint16)",
      "tensor(int32)", "tensor(int4)", "tensor(uint4)"}},
    {'E', {"tensor(int4)", "tensor(uint4)", "tensor(uint8)"}},
    {'G', {"tensor(int32)", "tensor(int64)"}},
    {'A', {"tensor(int8)", "tensor(uint8)", "tensor(float)"}},
    {'N', {"tensor(uint8)"}},
    {'Z',
     {"tensor(uint8)", "tensor(float)", "tensor(float16)", "tensor(bfloat16)"}},
    {'I', {"tensor(int32)"}},
    {'L', {"tensor(int64)"}},
    {'B', {"tensor(bool)"}},
};

#define MICROSOFT "com.microsoft"
static const Definition definitions[] = {
    // These two are in the standard's domain, also at opsets that lack them.
    {"", "LayerNormalization", "X:T Scale:V B:V?", "Y:V Mean:U? InvStdDev:U?",
     "axis:i=-1 epsilon:f=1e-5 stash_type:i=1"},
    {"", "SimplifiedLayerNormalization", "X:T scale:V", "Y:V inv_std_var:U?",
     "axis:i=-1 epsilon:f=1e-5 stash_type:i=1"},
    {MICROSOFT, "SkipLayerNormalization",
     "input:T skip:T gamma:T beta:T? bias:T?",
     "output:T mean:U? inv_std_var:U? input_skip_bias_sum:T?",
     "epsilon:f=1e-12"},
    {MICROSOFT, "SkipSimplifiedLayerNormalization",
     "input:T skip:T gamma:T bias:T?",
     "output:T mean:U? inv_std_var:U? input_skip_bias_sum:T?",
     "epsilon:f=1e-12"},
    {MICROSOFT, "EmbedLayerNormalization",
     "input_ids:I segment_ids:I? word_embedding:T position_embedding:T "
     "segment_embedding:T? gamma:T beta:T mask:I? position_ids:I?",
     "output:T mask_index:I? embedding_sum:T?",
     "epsilon:f=1e-12 mask_index_type:i=1"},
    {MICROSOFT, "QEmbedLayerNormalization",
     "input_ids:I segment_ids:I? word_embedding_quant:Q "
     "position_embedding_quant:Q segment_embedding:Q? gamma_quant:Q "
     "beta_quant:Q mask:I? word_embedding_scale:F position_embedding_scale:F "
     "segment_embedding_scale:F? gamma_scale:F beta_scale:F "
     "word_embedding_zero_point:Q position_embedding_zero_point:Q "
     "segment_embedding_zero_point:Q? gamma_zero_point:Q beta_zero_point:Q",
     "layernorm_out:F mask_index_out:I?", "epsilon:f=1e-12"},
    {MICROSOFT, "Gelu", "X:T", "Y:T", ""},
    {MICROSOFT, "BiasGelu", "A:T B:T", "C:T", ""},
    {MICROSOFT, "FastGelu", "X:T bias:T?", "Y:T", ""},
    {MICROSOFT, "QuickGelu", "X:T", "Y:T", "alpha:f=1.702"},
    {MICROSOFT, "Attention",
     "input:T weights:T bias:T? mask_index:I? past:T? attention_bias:T? "
     "past_sequence_length:I?",
     "output:T present:T?",
     "num_heads:i! unidirectional:i=0 qkv_hidden_sizes:is scale:f "
     "mask_filter_value:f do_rotary:i rotary_embedding_dim:i "
     "past_present_share_buffer:i"},
    {MICROSOFT, "MultiHeadAttention",
     "query:T key:T? value:T? bias:T? key_padding_mask:I? attention_bias:T? "
     "past_key:T? past_value:T? past_sequence_length:I? cache_indirection:I?",
     "output:T present_key:T? present_value:T? qk:U?",
     "num_heads:i! unidirectional:i=0 scale:f mask_filter_value:f"},
    {MICROSOFT, "GroupQueryAttention",
     "query:T key:T? value:T? past_key:T? past_value:T? seqlens_k:I "
     "total_sequence_length:I cos_cache:T? sin_cache:T? position_ids:L? "
     "attention_bias:T? head_sink:T?",
     "output:T present_key:T? present_value:T? output_qk:T?",
     "num_heads:i! kv_num_heads:i! scale:f softcap:f local_window_size:i=-1 "
     "do_rotary:i rotary_interleaved:i smooth_softmax:i=-1 qk_output:i=0 "
     "causal:i=1"},
    {MICROSOFT, "RotaryEmbedding",
     "input:T position_ids:L cos_cache:T sin_cache:T", "output:T",
     "interleaved:i num_heads:i rotary_embedding_dim:i is_packed_batching:i "
     "scale:f=1"},
    {MICROSOFT, "FusedMatMul", "A:T B:T", "Y:T",
     "alpha:f=1 transA:i=0 transB:i=0 transBatchA:i=0 transBatchB:i=0"},
    {MICROSOFT, "TransposeMatMul", "A:T B:T", "Y:T",
     "alpha:f=1 transA:i=0 transB:i=0"},
    {MICROSOFT, "FusedGemm", "A:T B:T C:T?", "Y:T",
     "alpha:f=1 beta:f=1 transA:i=0 transB:i=0 activation:s "
     "activation_alpha:f activation_beta:f activation_gamma:f"},
    {MICROSOFT, "FusedConv", "X:T W:T B:T? Z:T?", "Y:T",
     "auto_pad:s=NOTSET kernel_shape:is dilations:is strides:is pads:is "
     "group:i=1 activation:s activation_params:fs"},
    {MICROSOFT, "MatMulNBits",
     "A:T B:N scales:T zero_points:Z? g_idx:I? bias:T?", "Y:T",
     "K:i! N:i! bits:i=4 block_size:i! accuracy_level:i=0 "
     "weight_prepacked:i=0"},
    {MICROSOFT, "GatherBlockQuantized",
     "data:E indices:G scales:T zero_points:E?", "output:T",
     "gather_axis:i=0 quantize_axis:i=1 block_size:i=128 bits:i=4"},
    {MICROSOFT, "DynamicQuantizeMatMul",
     "A:F B:Q b_scale:F b_zero_point:Q? bias:F?", "Y:F", ""},
    {MICROSOFT, "DynamicQuantizeLSTM",
     "X:F W:Q R:Q B:F? sequence_lens:I? initial_h:F? initial_c:F? P:F? "
     "W_scale:F W_zero_point:Q R_scale:F R_zero_point:Q",
     "Y:F? Y_h:F? Y_c:F?",
     "activation_alpha:fs activation_beta:fs activations:ss clip:f "
     "direction:s=forward hidden_size:i input_forget:i=0"},
    {MICROSOFT, "MatMulIntegerToFloat",
     "A:Q B:R a_scale:T b_scale:T a_zero_point:Q? b_zero_point:R? bias:T?",
     "Y:T", ""},
    {MICROSOFT, "QGemm",
     "A:Q a_scale:F a_zero_point:Q B:R b_scale:F b_zero_point:R C:I? "
     "y_scale:F? y_zero_point:S?",
     "Y:A", "transA:i=0 transB:i=0 alpha:f=1"},
    {MICROSOFT, "QAttention",
     "input:Q weight:R bias:T input_scale:T weight_scale:T mask_index:I? "
     "input_zero_point:Q? weight_zero_point:R? past:T?",
     "output:T present:T?",
     "num_heads:i! unidirectional:i=0 scale:f mask_filter_value:f do_rotary:i "
     "past_present_share_buffer:i"},
    {MICROSOFT, "QLinearAdd",
     "A:Q A_scale:F A_zero_point:Q? B:Q B_scale:F B_zero_point:Q? C_scale:F "
     "C_zero_point:Q?",
     "C:Q", ""},
    {MICROSOFT, "QLinearMul",
     "A:Q A_scale:F A_zero_point:Q? B:Q B_scale:F B_zero_point:Q? C_scale:F "
     "C_zero_point:Q?",
     "C:Q", ""},
    {MICROSOFT, "QLinearSigmoid",
     "X:Q X_scale:F X_zero_point:Q? Y_scale:F Y_zero_point:Q?", "Y:Q", ""},
    {MICROSOFT, "QLinearLeakyRelu",
     "X:Q X_scale:F X_zero_point:Q? Y_scale:F Y_zero_point:Q?", "Y:Q",
     "alpha:f=0.01"},
    {MICROSOFT, "QLinearSoftmax",
     "X:Q X_scale:F x_zero_point:Q? y_scale:F y_zero_point:Q", "Y:Q",
     "axis:i=-1 opset:i!"},
    {MICROSOFT, "QLinearAveragePool",
     "X:Q x_scale:F x_zero_point:Q? y_scale:F y_zero_point:Q?", "Y:Q",
     "auto_pad:s=NOTSET kernel_shape:is! strides:is pads:is ceil_mode:i=0 "
     "count_include_pad:i=0 channels_last:i=0"},
    {MICROSOFT, "QLinearGlobalAveragePool",
     "X:Q x_scale:F x_zero_point:Q y_scale:F y_zero_point:Q", "Y:Q",
     "channels_last:i=0"},
    {MICROSOFT, "QLinearReduceMean",
     "data:Q data_scale:F data_zero_point:Q? reduced_scale:F "
     "reduced_zero_point:Q?",
     "reduced:Q", "axes:is! keepdims:i!"},
    {MICROSOFT, "QLinearConcat", "Y_scale:F Y_zero_point:Q inputs:A*", "Y:Q",
     "axis:i!"},
    {MICROSOFT, "QLinearWhere",
     "condition:B X:Q x_scale:F x_zero_point:Q Y:Q y_scale:F y_zero_point:Q "
     "z_scale:F z_zero_point:Q",
     "Z:Q", ""},
    {MICROSOFT, "QuantizeLinear", "x:T y_scale:T y_zero_point:W?", "y:W",
     "axis:i=1"},
    {MICROSOFT, "DequantizeLinear", "x:W x_scale:T x_zero_point:W?", "y:T",
     "axis:i=1"},
};
#undef MICROSOFT

static void addOperands(OpSchema &schema, StringRef text, bool isInput,
                        std::set<char> &letters) {
  int index = 0;
  for (StringRef word : llvm::split(text, ' ')) {
    auto [name, type] = word.split(':');
    auto option = type.ends_with("?")   ? OpSchema::Optional
                  : type.ends_with("*") ? OpSchema::Variadic
                                        : OpSchema::Single;
    char letter = type.front();
    letters.insert(letter);
    // Operands that repeat may differ in type.
    bool same = option != OpSchema::Variadic;
    if (isInput)
      schema.Input(index++, name.str(), "", std::string(1, letter), option,
                   same, 1, OpSchema::Unknown);
    else
      schema.Output(index++, name.str(), "", std::string(1, letter), option,
                    same, 1, OpSchema::Unknown);
  }
}

static void addAttribute(OpSchema &schema, StringRef word) {
  auto [name, rest] = word.split(':');
  auto [type, value] = rest.split('=');
  bool required = type.consume_back("!");
  if (value.empty()) {
    auto kind = type == "i"    ? AttributeProto::INT
                : type == "is" ? AttributeProto::INTS
                : type == "f"  ? AttributeProto::FLOAT
                : type == "fs" ? AttributeProto::FLOATS
                : type == "ss" ? AttributeProto::STRINGS
                               : AttributeProto::STRING;
    schema.Attr(name.str(), "", kind, required);
  } else if (type == "i") {
    schema.Attr(name.str(), "", AttributeProto::INT,
                static_cast<int64_t>(std::stoll(value.str())));
  } else if (type == "f") {
    schema.Attr(name.str(), "", AttributeProto::FLOAT, std::stof(value.str()));
  } else {
    schema.Attr(name.str(), "", AttributeProto::STRING, value.str());
  }
}

static OpSchema makeSchema(const Definition &definition) {
  OpSchema schema(definition.name, __FILE__, __LINE__);
  schema.SetDomain(definition.domain);
  schema.SinceVersion(1);
  std::set<char> letters;
  addOperands(schema, definition.inputs, true, letters);
  addOperands(schema, definition.outputs, false, letters);
  for (StringRef word : llvm::split(definition.attributes, ' '))
    if (!word.empty())
      addAttribute(schema, word);
  for (const TypeSet &set : typeSets)
    if (letters.count(set.letter))
      schema.TypeConstraint(std::string(1, set.letter), set.types, "");
  return schema;
}

void charonia::frontend::onnx::registerRuntimeSchemas() {
  static const bool once = [] {
    ::onnx::OpSchemaRegistry::DomainToVersionRange::Instance()
        .AddDomainToVersion("com.microsoft", 1, 1);
    for (const Definition &definition : definitions)
      ::onnx::RegisterSchema(makeSchema(definition), 0, true, true);
    return true;
  }();
  (void)once;
}
