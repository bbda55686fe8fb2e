//===- DecodeSignature.cpp - A signature from protobuf bytes --------------===//

#include "runtime/engine/Decoder.h"
#include "runtime/engine/Fields.h"

namespace charonia::engine {

TensorSpec Decoder::tensor(pbf_reader in) {
  TensorSpec out;
  out.dtype = DType(0);
  reserve(out.dims, count(in)[field::tensor::Dims]);
  while (in.next())
    switch (in.tag_and_type()) {
    case bytes(field::tensor::Name):
      out.name = in.get_bytes();
      break;
    case number(field::tensor::Dtype):
      out.dtype = decodeEnum<DType>(in.get_uint32());
      break;
    case bytes(field::tensor::Dims):
      out.dims.push_back(expr(in.get_message()));
      break;
    default:
      in.skip();
    }
  return out;
}

Symbol Decoder::symbol(pbf_reader in) {
  Symbol out{{}, 0, 0, 0, 0};
  while (in.next())
    switch (in.tag_and_type()) {
    case bytes(field::symbol::Name):
      out.name = in.get_bytes();
      break;
    case number(field::symbol::Min):
      out.min = in.get_int64();
      break;
    case number(field::symbol::Opt):
      out.opt = in.get_int64();
      break;
    case number(field::symbol::Max):
      out.max = in.get_int64();
      break;
    case number(field::symbol::Divisor):
      out.divisor = in.get_int64();
      break;
    default:
      in.skip();
    }
  return out;
}

Constraint Decoder::constraint(pbf_reader in) {
  Constraint out;
  out.relation = Constraint::Relation(0);
  while (in.next())
    switch (in.tag_and_type()) {
    case number(field::constraint::Relation):
      out.relation = decodeEnum<Constraint::Relation>(in.get_uint32());
      break;
    case bytes(field::constraint::Left):
      out.left = expr(in.get_message());
      break;
    case bytes(field::constraint::Right):
      out.right = expr(in.get_message());
      break;
    case bytes(field::constraint::Reason):
      out.reason = in.get_bytes();
      break;
    default:
      in.skip();
    }
  return out;
}

Signature Decoder::signature(pbf_reader in) {
  Signature out;
  Counts counts = count(in);
  reserve(out.inputs, counts[field::signature::Inputs]);
  reserve(out.outputs, counts[field::signature::Outputs]);
  reserve(out.symbols, counts[field::signature::Symbols]);
  reserve(out.constraints, counts[field::signature::Constraints]);
  while (in.next())
    switch (in.tag_and_type()) {
    case bytes(field::signature::Inputs):
      out.inputs.push_back(tensor(in.get_message()));
      break;
    case bytes(field::signature::Outputs):
      out.outputs.push_back(tensor(in.get_message()));
      break;
    case bytes(field::signature::Symbols):
      out.symbols.push_back(symbol(in.get_message()));
      break;
    case bytes(field::signature::Constraints):
      out.constraints.push_back(constraint(in.get_message()));
      break;
    default:
      in.skip();
    }
  return out;
}

} // namespace charonia::engine
