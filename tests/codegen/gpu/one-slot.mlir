// What has no room for two iterations of a loop: the largest operand is copied where it is
// used, in one slot, the other one ahead.
// RUN: rm -rf %t && mkdir -p %t && charonia-ptx %s --arch sm_86 --dump-dir %t --assemble=0
// RUN: FileCheck %s < %t/shared.2-simt.mlir

// CHECK: simt.alloc {managed, offset = 0 : i64, slots = 2 : i64} : <128x128xf16
// CHECK: simt.copy_async
// CHECK-NEXT: simt.commit_async
// CHECK: scf.for
// CHECK:   simt.wait_async 0
// CHECK-NEXT: simt.barrier
// CHECK:   simt.copy_async
// CHECK-NEXT: simt.commit_async
// CHECK:   simt.alloc {offset = 65536 : i64} : <128x128xf16
// CHECK-NEXT: simt.copy_async
// CHECK-NEXT: simt.commit_async
// CHECK-NEXT: simt.wait_async 0
// CHECK-NEXT: simt.barrier
// CHECK:   simt.dot
func.func @shared(%A: !tile.buffer<f16>, %B: !tile.buffer<f16>, %C: !tile.buffer<f32>)
    attributes {tile.kernel, tile.grid = affine_map<() -> (1)>, tile.warps = 8 : i64} {
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %steps = arith.constant 16 : index
  %c = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero) -> (tensor<128x128xf32>) {
    %a = tile.load %A[%k] {map = affine_map<(d0, d1)[s0] -> (d0, s0 * 128 + d1)>, shape = affine_map<()[s0] -> (128, 2048)>, rank = 2 : i64, checks = array<i64>} : (!tile.buffer<f16>, index) -> tensor<128x128xf16>
    %b = tile.load %B[%k] {map = affine_map<(d0, d1)[s0] -> (d1, s0 * 128 + d0)>, shape = affine_map<()[s0] -> (128, 2048)>, rank = 2 : i64, checks = array<i64>} : (!tile.buffer<f16>, index) -> tensor<128x128xf16>
    %d = tile.dot %a, %b, %acc : tensor<128x128xf16>, tensor<128x128xf16> -> tensor<128x128xf32>
    scf.yield %d : tensor<128x128xf32>
  }
  tile.store %c, %C[] {map = affine_map<(d0, d1) -> (d0, d1)>, shape = affine_map<() -> (128, 128)>, rank = 2 : i64, checks = array<i64>} : tensor<128x128xf32>, !tile.buffer<f32>
  return
}
