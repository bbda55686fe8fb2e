// Offsets by liveness, barriers by analysis.
// RUN: charonia-opt %s --gpu-shared-memory | FileCheck %s
#row = #simt.layout<register = [[0, 1], [0, 2]], lane = [[0, 4], [0, 8], [1, 0], [2, 0], [4, 0]], warp = [[8, 0]] -> [16, 16]>
#column = #simt.layout<register = [[1, 0], [2, 0]], lane = [[4, 0], [8, 0], [0, 1], [0, 2], [0, 4]], warp = [[0, 8]] -> [16, 16]>
#memory = #simt.layout<offset = [[0, 1], [0, 2], [0, 4], [0, 8], [1, 0], [2, 0], [4, 0], [8, 0]] -> [16, 16]>

// Two tiles that live one after the other share their bytes: the second waits for the
// readers of the first.
// CHECK-LABEL: func.func @reuse
// CHECK-SAME: gpu.shared_bytes = 1024
// CHECK: simt.alloc {offset = 0 : i64}
// CHECK-NEXT: simt.store_shared
// CHECK-NEXT: simt.barrier
// CHECK-NEXT: simt.load_shared
// CHECK: simt.alloc {offset = 0 : i64}
// CHECK-NEXT: simt.barrier
// CHECK-NEXT: simt.store_shared
// CHECK-NEXT: simt.barrier
// CHECK-NEXT: simt.load_shared
func.func @reuse(%x: tensor<16x16xf32, #row>) -> tensor<16x16xf32, #column> attributes {tile.kernel} {
  %a = simt.alloc : <16x16xf32, #memory>
  simt.store_shared %x, %a : tensor<16x16xf32, #row>, <16x16xf32, #memory>
  %y = simt.load_shared %a [0, 0] : <16x16xf32, #memory> -> tensor<16x16xf32, #column>
  %z = arith.addf %y, %y : tensor<16x16xf32, #column>
  %b = simt.alloc : <16x16xf32, #memory>
  simt.store_shared %z, %b : tensor<16x16xf32, #column>, <16x16xf32, #memory>
  %w = simt.load_shared %b [0, 0] : <16x16xf32, #memory> -> tensor<16x16xf32, #column>
  return %w : tensor<16x16xf32, #column>
}

// Both are read at the end: they lie side by side, one barrier serves both.
// CHECK-LABEL: func.func @together
// CHECK-SAME: gpu.shared_bytes = 2048
// CHECK: simt.alloc {offset = 0 : i64}
// CHECK: simt.alloc {offset = 1024 : i64}
// CHECK-NOT: simt.barrier
// CHECK: simt.store_shared
// CHECK-NEXT: simt.store_shared
// CHECK-NEXT: simt.barrier
// CHECK-NEXT: simt.load_shared
// CHECK-NEXT: simt.load_shared
// CHECK-NOT: simt.barrier
func.func @together(%x: tensor<16x16xf32, #row>) -> tensor<16x16xf32, #column> attributes {tile.kernel} {
  %a = simt.alloc : <16x16xf32, #memory>
  %b = simt.alloc : <16x16xf32, #memory>
  simt.store_shared %x, %a : tensor<16x16xf32, #row>, <16x16xf32, #memory>
  simt.store_shared %x, %b : tensor<16x16xf32, #row>, <16x16xf32, #memory>
  %y = simt.load_shared %a [0, 0] : <16x16xf32, #memory> -> tensor<16x16xf32, #column>
  %z = simt.load_shared %b [0, 0] : <16x16xf32, #memory> -> tensor<16x16xf32, #column>
  %w = arith.addf %y, %z : tensor<16x16xf32, #column>
  return %w : tensor<16x16xf32, #column>
}

// In a loop the store also waits for the readers of the iteration before.
// CHECK-LABEL: func.func @loop
// CHECK: scf.for
// CHECK-NEXT: simt.barrier
// CHECK-NEXT: simt.store_shared
// CHECK-NEXT: simt.barrier
// CHECK-NEXT: simt.load_shared
// CHECK-NOT: simt.barrier
// CHECK: scf.yield
func.func @loop(%x: tensor<16x16xf32, #row>, %n: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = simt.alloc : <16x16xf32, #memory>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%v = %x) -> tensor<16x16xf32, #row> {
    simt.store_shared %v, %a : tensor<16x16xf32, #row>, <16x16xf32, #memory>
    %y = simt.load_shared %a [0, 0] : <16x16xf32, #memory> -> tensor<16x16xf32, #row>
    scf.yield %y : tensor<16x16xf32, #row>
  }
  return
}

// A copy counts as a write when it is waited for.
// CHECK-LABEL: func.func @copy
// CHECK: simt.copy_async
// CHECK-NEXT: simt.commit_async
// CHECK-NEXT: simt.wait_async 0
// CHECK-NEXT: simt.barrier
// CHECK-NEXT: simt.load_shared
func.func @copy(%b: !tile.buffer<f32>) -> tensor<16x16xf32, #column> attributes {tile.kernel} {
  %a = simt.alloc : <16x16xf32, #memory>
  simt.copy_async %b[] to %a {map = affine_map<(d0, d1) -> (d0, d1)>, shape = affine_map<() -> (16, 16)>, rank = 2 : i64, checks = array<i64>, copies = #row, axis = 1 : i64, vector = 4 : i64} : !tile.buffer<f32> to <16x16xf32, #memory>
  simt.commit_async
  simt.wait_async 0
  %y = simt.load_shared %a [0, 0] : <16x16xf32, #memory> -> tensor<16x16xf32, #column>
  return %y : tensor<16x16xf32, #column>
}

// What was written in front of a loop is met for once, and not in each iteration.
// CHECK-LABEL: func.func @before_loop
// CHECK: simt.store_shared
// CHECK: simt.barrier
// CHECK-NEXT: scf.for
// CHECK-NOT: simt.barrier
// CHECK: simt.load_shared
// CHECK-NOT: simt.barrier
// CHECK: return
func.func @before_loop(%x: tensor<16x16xf32, #row>, %n: index) -> tensor<16x16xf32, #column> attributes {tile.kernel} {
  %a = simt.alloc : <16x16xf32, #memory>
  simt.store_shared %x, %a : tensor<16x16xf32, #row>, <16x16xf32, #memory>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant dense<0.0> : tensor<16x16xf32, #column>
  %sum = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<16x16xf32, #column>) {
    %y = simt.load_shared %a [0, 0] : <16x16xf32, #memory> -> tensor<16x16xf32, #column>
    %z = arith.addf %acc, %y : tensor<16x16xf32, #column>
    scf.yield %z : tensor<16x16xf32, #column>
  }
  return %sum : tensor<16x16xf32, #column>
}
