// RUN: split-file %s %t
// RUN: not charonia-ptx %t/extent.mlir 2>&1 | FileCheck %t/extent.mlir
// RUN: not charonia-ptx %t/warps.mlir 2>&1 | FileCheck %t/warps.mlir
// RUN: not charonia-ptx %t/shared.mlir --arch sm_86 2>&1 | FileCheck %t/shared.mlir

//--- extent.mlir
// CHECK: extent.mlir:[[#@LINE+4]]:8: error: 'tile.load' op on a GPU, tile extents are powers of two, not 'tensor<48xf32>'
func.func @extent(%a: !tile.buffer<f32>, %o: !tile.buffer<f32>)
    attributes {tile.kernel, tile.grid = affine_map<() -> (1)>} {
  %p = tile.program_id : index
  %x = tile.load %a[] {map = affine_map<(d0) -> (d0)>, shape = affine_map<() -> (48)>, rank = 1 : i64, checks = array<i64>} : (!tile.buffer<f32>) -> tensor<48xf32>
  tile.store %x, %o[] {map = affine_map<(d0) -> (d0)>, shape = affine_map<() -> (48)>, rank = 1 : i64, checks = array<i64>} : tensor<48xf32>, !tile.buffer<f32>
  return
}

//--- warps.mlir
// CHECK: error: a GPU kernel has 1, 2, 4, 8, 16 or 32 warps, not 3
func.func @warps(%a: !tile.buffer<f32>)
    attributes {tile.kernel, tile.grid = affine_map<() -> (1)>, tile.warps = 3 : i64} {
  return
}

//--- shared.mlir
// CHECK: error: needs 131072 bytes of shared memory, sm_86 has 101376; use smaller tiles
func.func @shared(%A: !tile.buffer<f16>, %B: !tile.buffer<f16>, %C: !tile.buffer<f32>)
    attributes {tile.kernel, tile.grid = affine_map<() -> (1)>, tile.warps = 8 : i64} {
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %steps = arith.constant 16 : index
  %c = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero) -> (tensor<128x128xf32>) {
    %a = tile.load %A[%k] {map = affine_map<(d0, d1)[s0] -> (d0, s0 * 256 + d1)>, shape = affine_map<()[s0] -> (128, 2048)>, rank = 2 : i64, checks = array<i64>} : (!tile.buffer<f16>, index) -> tensor<128x256xf16>
    %b = tile.load %B[%k] {map = affine_map<(d0, d1)[s0] -> (d1, s0 * 256 + d0)>, shape = affine_map<()[s0] -> (128, 2048)>, rank = 2 : i64, checks = array<i64>} : (!tile.buffer<f16>, index) -> tensor<256x128xf16>
    %d = tile.dot %a, %b, %acc : tensor<128x256xf16>, tensor<256x128xf16> -> tensor<128x128xf32>
    scf.yield %d : tensor<128x128xf32>
  }
  tile.store %c, %C[] {map = affine_map<(d0, d1) -> (d0, d1)>, shape = affine_map<() -> (128, 128)>, rank = 2 : i64, checks = array<i64>} : tensor<128x128xf32>, !tile.buffer<f32>
  return
}
