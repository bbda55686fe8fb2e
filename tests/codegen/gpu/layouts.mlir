// Layouts go out from anchors: what the accumulators are combined with follows them,
// a reduction's operand is coalesced, and what no anchor reaches follows its store.
// RUN: charonia-opt %s --gpu-assign-layouts | FileCheck %s

// The bias of a row is loaded where the accumulators' columns are.
// CHECK-DAG: #[[ACC:.+]] = #simt.layout<register = {{\[\[}}0, 1], [8, 0], [0, 8], [0, 16], [16, 0]], lane = {{\[\[}}0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = {{\[\[}}0, 32], [32, 0]] -> [64, 64]>
// CHECK-DAG: #[[COLUMNS:.+]] = #simt.layout<register = {{\[\[}}0, 1], [0, 8], [0, 16]], lane = {{\[\[}}0, 2], [0, 4], [0, 0], [0, 0], [0, 0]], warp = {{\[\[}}0, 32], [0, 0]] -> [1, 64]>
// CHECK-LABEL: func.func @bias
// CHECK: %[[A:.+]] = simt.to_shared
// CHECK: simt.load_shared %[[A]] [0, 0]
// CHECK: %[[DOT:.+]] = simt.dot {{.*}} {mma} {{.*}} tensor<64x64xf32, #[[ACC]]>
// CHECK: %[[BIAS:.+]] = tile.load {{.*}} tensor<1x64xf32, #[[COLUMNS]]>
// CHECK: tile.broadcast %[[BIAS]] {{.*}} tensor<64x64xf32, #[[ACC]]>
// Stored in 32 bytes a row by 4 lanes: no detour through shared memory.
// CHECK-NOT: simt.store_shared
// CHECK: tile.store {{.*}} tensor<64x64xf32, #[[ACC]]>
func.func @bias(%A: !tile.buffer<f16>, %B: !tile.buffer<f16>, %b: !tile.buffer<f32>, %C: !tile.buffer<f32>)
    attributes {tile.kernel, tile.grid = affine_map<() -> (1)>, tile.warps = 4 : i64} {
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %a = tile.load %A[] {map = affine_map<(d0, d1) -> (d0, d1)>, shape = affine_map<() -> (64, 16)>, rank = 2 : i64, checks = array<i64>} : (!tile.buffer<f16>) -> tensor<64x16xf16>
  %w = tile.load %B[] {map = affine_map<(d0, d1) -> (d1, d0)>, shape = affine_map<() -> (64, 16)>, rank = 2 : i64, checks = array<i64>} : (!tile.buffer<f16>) -> tensor<16x64xf16>
  %d = tile.dot %a, %w, %zero : tensor<64x16xf16>, tensor<16x64xf16> -> tensor<64x64xf32>
  %bias = tile.load %b[] {map = affine_map<(d0, d1) -> (d1)>, shape = affine_map<() -> (64)>, rank = 1 : i64, checks = array<i64>} : (!tile.buffer<f32>) -> tensor<1x64xf32>
  %all = tile.broadcast %bias {axes = array<i64: 0, 1>} : tensor<1x64xf32> -> tensor<64x64xf32>
  %r = arith.addf %d, %all : tensor<64x64xf32>
  tile.store %r, %C[] {map = affine_map<(d0, d1) -> (d0, d1)>, shape = affine_map<() -> (64, 64)>, rank = 2 : i64, checks = array<i64>} : tensor<64x64xf32>, !tile.buffer<f32>
  return
}

// A row of 1024 in 4 warps: reduced in each warp, then across them in shared memory.
// CHECK-LABEL: func.func @row_sum
// CHECK: %[[X:.+]] = tile.load {{.*}} tensor<1x1024xf32, #[[ROW:.+]]>
// CHECK: %[[PART:.+]] = simt.warp_reduce %[[X]] {axis = 1 : i64} {{.*}} -> tensor<1x4xf32, #{{.+}}>
// CHECK: simt.store_shared %[[PART]]
// CHECK: %[[ALL:.+]] = simt.load_shared
// CHECK: %[[SUM:.+]] = tile.reduce %[[ALL]] {axis = 1 : i64} {{.*}} -> tensor<1xf32
// CHECK: tile.broadcast %[[SUM]] {{.*}} -> tensor<1x1024xf32, #[[ROW]]>
func.func @row_sum(%A: !tile.buffer<f32>, %C: !tile.buffer<f32>)
    attributes {tile.kernel, tile.grid = affine_map<() -> (8)>, tile.warps = 4 : i64} {
  %p = tile.program_id : index
  %x = tile.load %A[%p] {map = affine_map<(d0, d1)[s0] -> (s0, d1)>, shape = affine_map<()[s0] -> (8, 1024)>, rank = 2 : i64, checks = array<i64>} : (!tile.buffer<f32>, index) -> tensor<1x1024xf32>
  %s = tile.reduce %x {axis = 1 : i64} : (tensor<1x1024xf32>) -> tensor<1xf32> {
  ^bb0(%l: f32, %r: f32):
    %o = arith.addf %l, %r : f32
    tile.yield %o : f32
  }
  %all = tile.broadcast %s {axes = array<i64: 0>} : tensor<1xf32> -> tensor<1x1024xf32>
  %y = arith.divf %x, %all : tensor<1x1024xf32>
  tile.store %y, %C[%p] {map = affine_map<(d0, d1)[s0] -> (s0, d1)>, shape = affine_map<()[s0] -> (8, 1024)>, rank = 2 : i64, checks = array<i64>} : tensor<1x1024xf32>, !tile.buffer<f32>, index
  return
}

// A transposition is loaded along its rows, stored along its columns, and turned in
// shared memory in between.
// CHECK-LABEL: func.func @transpose
// CHECK: %[[IN:.+]] = tile.load
// CHECK: simt.store_shared %[[IN]]
// CHECK: %[[TURNED:.+]] = simt.load_shared
// CHECK: %[[OUT:.+]] = tile.transpose %[[TURNED]]
// CHECK: tile.store %[[OUT]]
func.func @transpose(%A: !tile.buffer<f16>, %C: !tile.buffer<f16>)
    attributes {tile.kernel, tile.grid = affine_map<() -> (1)>, tile.warps = 4 : i64} {
  %x = tile.load %A[] {map = affine_map<(d0, d1) -> (d0, d1)>, shape = affine_map<() -> (64, 64)>, rank = 2 : i64, checks = array<i64>} : (!tile.buffer<f16>) -> tensor<64x64xf16>
  %t = tile.transpose %x {permutation = array<i64: 1, 0>} : tensor<64x64xf16> -> tensor<64x64xf16>
  tile.store %t, %C[] {map = affine_map<(d0, d1) -> (d0, d1)>, shape = affine_map<() -> (64, 64)>, rank = 2 : i64, checks = array<i64>} : tensor<64x64xf16>, !tile.buffer<f16>
  return
}
