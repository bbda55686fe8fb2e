// Bytes become floats by a subtraction, which takes a whole number that is added along; a fraction is added behind it.
// RUN: charonia-ptx %s --assemble=0 --ptx | FileCheck %s

// CHECK-LABEL: .entry shifted(
// CHECK:       {{(add.*0fCB|sub.*0f4B)}}000008;
// CHECK-NOT:   {{(add|sub).*f32}}
// CHECK-LABEL: .entry fraction(
// CHECK:       {{(add.*0fCB|sub.*0f4B)}}000000;
// CHECK:       add{{.*}}.f32 {{.*}}, 0f3F000000;
func.func @shifted(%x: !tile.buffer<i8>, %y: !tile.buffer<f32>)
    attributes {tile.kernel, tile.grid = affine_map<() -> (1)>, tile.warps = 1 : i64} {
  %a = tile.load %x[] {map = affine_map<(d0) -> (d0)>, shape = affine_map<() -> (32)>, rank = 1 : i64, checks = array<i64>} : (!tile.buffer<i8>) -> tensor<32xi8>
  %f = arith.uitofp %a : tensor<32xi8> to tensor<32xf32>
  %c = arith.constant dense<-8.0> : tensor<32xf32>
  %r = arith.addf %f, %c : tensor<32xf32>
  tile.store %r, %y[] {map = affine_map<(d0) -> (d0)>, shape = affine_map<() -> (32)>, rank = 1 : i64, checks = array<i64>} : tensor<32xf32>, !tile.buffer<f32>
  return
}

func.func @fraction(%x: !tile.buffer<i8>, %y: !tile.buffer<f32>)
    attributes {tile.kernel, tile.grid = affine_map<() -> (1)>, tile.warps = 1 : i64} {
  %a = tile.load %x[] {map = affine_map<(d0) -> (d0)>, shape = affine_map<() -> (32)>, rank = 1 : i64, checks = array<i64>} : (!tile.buffer<i8>) -> tensor<32xi8>
  %f = arith.uitofp %a : tensor<32xi8> to tensor<32xf32>
  %c = arith.constant dense<0.5> : tensor<32xf32>
  %r = arith.addf %f, %c : tensor<32xf32>
  tile.store %r, %y[] {map = affine_map<(d0) -> (d0)>, shape = affine_map<() -> (32)>, rank = 1 : i64, checks = array<i64>} : tensor<32xf32>, !tile.buffer<f32>
  return
}
