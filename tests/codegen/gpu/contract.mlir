// Multiply-adds fuse where the operators allow it; elsewhere PTX forbids it to ptxas too.
// RUN: charonia-ptx %s --assemble=0 --ptx | FileCheck %s

// CHECK-LABEL: .entry contract(
// CHECK:       fma.rn.f32
// CHECK:       mul.rn.f32
// CHECK:       add.rn.f32
// CHECK:       mul.rn.f32
// CHECK-NOT:   fma
func.func @contract(%A: !tile.buffer<f32>, %C: !tile.buffer<f32>)
    attributes {tile.kernel, tile.grid = affine_map<() -> (1)>, tile.warps = 1 : i64} {
  %x = tile.load %A[] {map = affine_map<(d0) -> (d0)>, shape = affine_map<() -> (32)>, rank = 1 : i64, checks = array<i64>} : (!tile.buffer<f32>) -> tensor<32xf32>
  %c = arith.constant dense<3.0> : tensor<32xf32>
  %m = arith.mulf %x, %x fastmath<contract> : tensor<32xf32>
  %s = arith.addf %m, %c fastmath<contract> : tensor<32xf32>
  %p = arith.mulf %s, %x : tensor<32xf32>
  %r = arith.addf %p, %x : tensor<32xf32>
  %t = arith.mulf %r, %x : tensor<32xf32>
  %u = arith.addf %t, %x fastmath<contract> : tensor<32xf32>
  tile.store %u, %C[] {map = affine_map<(d0) -> (d0)>, shape = affine_map<() -> (32)>, rank = 1 : i64, checks = array<i64>} : tensor<32xf32>, !tile.buffer<f32>
  return
}
