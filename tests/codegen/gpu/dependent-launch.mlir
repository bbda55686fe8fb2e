// A kernel for a chip with dependent launch issues what it reads of weights, waits before
// anything else, and lets the next one begin at its end, where it has few instances.
// RUN: rm -rf %t && mkdir -p %t && charonia-ptx %s --arch sm_90 --dump-dir %t --assemble=0 --ptx | FileCheck %s --check-prefix=PTX
// RUN: FileCheck %s < %t/gemm.2-simt.mlir
// RUN: FileCheck %s --check-prefix=GATHER < %t/gather.2-simt.mlir
// RUN: FileCheck %s --check-prefix=PARTS < %t/parts.2-simt.mlir
// RUN: charonia-ptx %s --arch sm_80 --assemble=0 --ptx | FileCheck %s --check-prefix=OLD

// Chips without it know no such instruction.
// OLD-NOT: griddepcontrol

// Both stages of the weights (%arg1) and the bias (%arg2) come before the wait, and those of
// the activations (%arg0) and the residual (%arg3) behind it.
// CHECK-LABEL: func.func @gemm
// CHECK-NOT:   {{%arg0|%arg3}}[
// CHECK-DAG:   tile.load %arg2
// CHECK-DAG:   simt.copy_async %arg1
// CHECK-DAG:   simt.copy_async %arg1
// CHECK:       simt.wait_dependencies
// CHECK-DAG:   tile.load %arg3
// CHECK-DAG:   simt.copy_async %arg0
// CHECK:       simt.commit_async
// CHECK-NOT:   %arg1
// CHECK:       simt.copy_async %arg0
// CHECK-NEXT:  simt.commit_async
// CHECK-NEXT:  simt.wait_async 1
// CHECK:       scf.for
// CHECK:       tile.store
// CHECK-NEXT:  simt.launch_dependents
// CHECK-NEXT:  return

// PTX-LABEL: .entry gemm(
// PTX-COUNT-4: cp.async.cg
// PTX:         griddepcontrol.wait
// PTX-NOT:     griddepcontrol
// PTX:         cp.async.cg
// PTX:         st.global
// PTX:         griddepcontrol.launch_dependents
// PTX-NEXT:    ret
func.func @gemm(%A: !tile.buffer<f16>, %B: !tile.buffer<f16>, %b: !tile.buffer<f32>, %R: !tile.buffer<f32>, %C: !tile.buffer<f32>)
    attributes {tile.kernel, tile.grid = affine_map<() -> (1)>, tile.warps = 4 : i64, tile.stages = 3 : i64} {
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %d = scf.for %k = %c0 to %c8 step %c1 iter_args(%acc = %zero) -> tensor<64x64xf32> {
    %a = tile.load %A[%k] {map = affine_map<(d0, d1)[s0] -> (d0, d1 + s0 * 32)>, shape = affine_map<()[s0] -> (64, 256)>, rank = 2 : i64, checks = array<i64>} : (!tile.buffer<f16>, index) -> tensor<64x32xf16>
    %w = tile.load %B[%k] {map = affine_map<(d0, d1)[s0] -> (d0 + s0 * 32, d1)>, shape = affine_map<()[s0] -> (256, 64)>, rank = 2 : i64, checks = array<i64>, independent} : (!tile.buffer<f16>, index) -> tensor<32x64xf16>
    %p = tile.dot %a, %w, %acc : tensor<64x32xf16>, tensor<32x64xf16> -> tensor<64x64xf32>
    scf.yield %p : tensor<64x64xf32>
  }
  %residual = tile.load %R[] {map = affine_map<(d0) -> (d0)>, shape = affine_map<() -> (64)>, rank = 1 : i64, checks = array<i64>} : (!tile.buffer<f32>) -> tensor<64xf32>
  %bias = tile.load %b[] {map = affine_map<(d0) -> (d0)>, shape = affine_map<() -> (64)>, rank = 1 : i64, checks = array<i64>, independent} : (!tile.buffer<f32>) -> tensor<64xf32>
  %both = arith.addf %bias, %residual : tensor<64xf32>
  %all = tile.broadcast %both {axes = array<i64: 1>} : tensor<64xf32> -> tensor<64x64xf32>
  %r = arith.addf %d, %all : tensor<64x64xf32>
  tile.store %r, %C[] {map = affine_map<(d0, d1) -> (d0, d1)>, shape = affine_map<() -> (64, 64)>, rank = 2 : i64, checks = array<i64>} : tensor<64x64xf32>, !tile.buffer<f32>
  return
}

// A row of a table is a weight, but which one an earlier kernel says; the result's place
// may still be read by a kernel before this one.
// GATHER-LABEL: func.func @gather({{.*}} attributes
// GATHER-NOT:   %arg0
// GATHER:       %[[SCALE:.*]] = tile.load %arg2
// GATHER-NOT:   %arg{{[013]}}
// GATHER:       simt.wait_dependencies
// GATHER:       tile.load %arg0
// GATHER:       tile.load %arg1
// GATHER:       tile.store {{.*}}, %arg3
// GATHER-NOT:   simt.launch_dependents
func.func @gather(%ids: !tile.buffer<i64>, %table: !tile.buffer<f32>, %s: !tile.buffer<f32>, %out: !tile.buffer<f32>)
    attributes {tile.kernel, tile.grid = affine_map<() -> (2048)>, tile.warps = 1 : i64} {
  %i = tile.load %ids[] {map = affine_map<(d0) -> (d0)>, shape = affine_map<() -> (32)>, rank = 1 : i64, checks = array<i64>} : (!tile.buffer<i64>) -> tensor<32xi64>
  %index = arith.index_cast %i : tensor<32xi64> to tensor<32xindex>
  %row = tile.load %table[%index] {map = affine_map<(d0)[s0] -> (s0)>, shape = affine_map<()[s0] -> (100)>, rank = 1 : i64, checks = array<i64: 0>, independent} : (!tile.buffer<f32>, tensor<32xindex>) -> tensor<32xf32>
  %scale = tile.load %s[] {map = affine_map<(d0) -> (d0)>, shape = affine_map<() -> (32)>, rank = 1 : i64, checks = array<i64>, independent} : (!tile.buffer<f32>) -> tensor<32xf32>
  %r = arith.mulf %row, %scale : tensor<32xf32>
  tile.store %r, %out[] {map = affine_map<(d0) -> (d0)>, shape = affine_map<() -> (32)>, rank = 1 : i64, checks = array<i64>} : tensor<32xf32>, !tile.buffer<f32>
  return
}

// Scratch memory and counters of a split sum are the arena's, too, though all that is summed
// up are weights; instances that end there have waited.
// PARTS-LABEL: func.func @parts
// PARTS:       tile.load %arg0
// PARTS:       simt.wait_dependencies
// PARTS:       tile.split_sum
// PARTS:       tile.store
func.func @parts(%w: !tile.buffer<f32>, %out: !tile.buffer<f32>, %scratch: !tile.buffer<f32>, %counters: !tile.buffer<i32>)
    attributes {tile.kernel, tile.grid = affine_map<() -> (4)>, tile.scratch = affine_map<() -> (2048)>, tile.counters = affine_map<() -> (1)>, tile.warps = 1 : i64} {
  %part = tile.program_id : index
  %c0 = arith.constant 0 : index
  %x = tile.load %w[%part] {map = affine_map<(d0)[s0] -> (d0 + s0 * 128)>, shape = affine_map<()[s0] -> (512)>, rank = 1 : i64, checks = array<i64>, independent} : (!tile.buffer<f32>, index) -> tensor<128xf32>
  %sum = tile.split_sum %x, %scratch, %counters[%c0, %part] {parts = 4 : i64} : tensor<128xf32>, !tile.buffer<f32>, !tile.buffer<i32>
  tile.store %sum, %out[] {map = affine_map<(d0) -> (d0)>, shape = affine_map<() -> (128)>, rank = 1 : i64, checks = array<i64>} : tensor<128xf32>, !tile.buffer<f32>
  return
}
