// Kernels of a wave: its first one waits for what is before it and starts the next one then; the
// others begin without having waited, and end when they have.
// RUN: rm -rf %t && mkdir -p %t && charonia-ptx %s --arch sm_90a --dump-dir %t --assemble=0 --ptx | FileCheck %s --check-prefix=PTX
// RUN: FileCheck %s --check-prefix=FIRST < %t/first.2-simt.mlir
// RUN: FileCheck %s --check-prefix=MIDDLE < %t/middle.2-simt.mlir
// RUN: FileCheck %s --check-prefix=LAST < %t/last.2-simt.mlir
// RUN: FileCheck %s --check-prefix=PARTS < %t/parts.2-simt.mlir
// RUN: FileCheck %s --check-prefix=MANY < %t/many.2-simt.mlir
// RUN: FileCheck %s --check-prefix=USUAL < %t/usual.2-simt.mlir
// RUN: FileCheck %s --check-prefix=BOXES < %t/boxes.2-simt.mlir
// RUN: FileCheck %s --check-prefix=BESIDE < %t/beside.2-simt.mlir
// RUN: charonia-ptx %s --arch sm_80 --assemble=0 --ptx | FileCheck %s --check-prefix=OLD

// OLD-NOT: griddepcontrol

// FIRST-LABEL: func.func @first
// FIRST:       tile.load %arg1
// FIRST-NEXT:  simt.wait_dependencies
// FIRST-NEXT:  simt.launch_dependents
// FIRST-NEXT:  tile.load %arg0
// FIRST:       tile.store
// FIRST-NEXT:  return
func.func @first(%x: !tile.buffer<f32>, %w: !tile.buffer<f32>, %out: !tile.buffer<f32>)
    attributes {tile.kernel, tile.starts_next, tile.grid = affine_map<() -> (1024)>, tile.warps = 1 : i64} {
  %b = tile.load %w[] {map = affine_map<(d0) -> (d0)>, shape = affine_map<() -> (32)>, rank = 1 : i64, checks = array<i64>, independent} : (!tile.buffer<f32>) -> tensor<32xf32>
  %a = tile.load %x[] {map = affine_map<(d0) -> (d0)>, shape = affine_map<() -> (32)>, rank = 1 : i64, checks = array<i64>} : (!tile.buffer<f32>) -> tensor<32xf32>
  %r = arith.mulf %a, %b : tensor<32xf32>
  tile.store %r, %out[] {map = affine_map<(d0) -> (d0)>, shape = affine_map<() -> (32)>, rank = 1 : i64, checks = array<i64>} : tensor<32xf32>, !tile.buffer<f32>
  return
}

// MIDDLE-LABEL: func.func @middle
// MIDDLE-NEXT:  simt.launch_dependents
// MIDDLE-NEXT:  simt.fence_device
// MIDDLE-NEXT:  tile.load %arg1
// MIDDLE-NEXT:  tile.load %arg0
// MIDDLE:       tile.store
// MIDDLE-NEXT:  simt.wait_dependencies
// MIDDLE-NEXT:  return
// PTX-LABEL:    .entry middle(
// PTX:          griddepcontrol.launch_dependents
// PTX:          fence.acq_rel.gpu
// PTX-COUNT-2:  ld.global
// PTX:          st.global
// PTX:          griddepcontrol.wait
// PTX-NEXT:     ret
func.func @middle(%x: !tile.buffer<f32>, %w: !tile.buffer<f32>, %out: !tile.buffer<f32>)
    attributes {tile.kernel, tile.waits_at_end, tile.starts_next, tile.grid = affine_map<() -> (1024)>, tile.warps = 1 : i64} {
  %b = tile.load %w[] {map = affine_map<(d0) -> (d0)>, shape = affine_map<() -> (32)>, rank = 1 : i64, checks = array<i64>, independent} : (!tile.buffer<f32>) -> tensor<32xf32>
  %a = tile.load %x[] {map = affine_map<(d0) -> (d0)>, shape = affine_map<() -> (32)>, rank = 1 : i64, checks = array<i64>} : (!tile.buffer<f32>) -> tensor<32xf32>
  %r = arith.mulf %a, %b : tensor<32xf32>
  tile.store %r, %out[] {map = affine_map<(d0) -> (d0)>, shape = affine_map<() -> (32)>, rank = 1 : i64, checks = array<i64>} : tensor<32xf32>, !tile.buffer<f32>
  return
}

// The next one is no part of the wave and would wait, so it starts at the end as always.
// LAST-LABEL: func.func @last
// LAST-NOT:   simt.launch_dependents
// LAST:       simt.fence_device
// LAST:       tile.store
// LAST-NEXT:  simt.wait_dependencies
// LAST-NEXT:  simt.launch_dependents
// LAST-NEXT:  return
func.func @last(%x: !tile.buffer<f32>, %out: !tile.buffer<f32>)
    attributes {tile.kernel, tile.waits_at_end, tile.grid = affine_map<() -> (8)>, tile.warps = 1 : i64} {
  %a = tile.load %x[] {map = affine_map<(d0) -> (d0)>, shape = affine_map<() -> (32)>, rank = 1 : i64, checks = array<i64>} : (!tile.buffer<f32>) -> tensor<32xf32>
  tile.store %a, %out[] {map = affine_map<(d0) -> (d0)>, shape = affine_map<() -> (32)>, rank = 1 : i64, checks = array<i64>} : tensor<32xf32>, !tile.buffer<f32>
  return
}

// Instances that end where parts of a sum meet have waited by then.
// PARTS-LABEL: func.func @parts
// PARTS-NEXT:  simt.launch_dependents
// PARTS-NEXT:  simt.fence_device
// PARTS:       tile.load %arg0
// PARTS-NEXT:  simt.wait_dependencies
// PARTS-NEXT:  tile.split_sum
// PARTS:       tile.store
// PARTS-NEXT:  return
func.func @parts(%x: !tile.buffer<f32>, %out: !tile.buffer<f32>, %scratch: !tile.buffer<f32>, %counters: !tile.buffer<i32>)
    attributes {tile.kernel, tile.waits_at_end, tile.starts_next, tile.grid = affine_map<() -> (4)>, tile.scratch = affine_map<() -> (2048)>, tile.counters = affine_map<() -> (1)>, tile.warps = 1 : i64} {
  %part = tile.program_id : index
  %c0 = arith.constant 0 : index
  %a = tile.load %x[%part] {map = affine_map<(d0)[s0] -> (d0 + s0 * 128)>, shape = affine_map<()[s0] -> (512)>, rank = 1 : i64, checks = array<i64>} : (!tile.buffer<f32>, index) -> tensor<128xf32>
  %sum = tile.split_sum %a, %scratch, %counters[%c0, %part] {parts = 4 : i64} : tensor<128xf32>, !tile.buffer<f32>, !tile.buffer<i32>
  tile.store %sum, %out[] {map = affine_map<(d0) -> (d0)>, shape = affine_map<() -> (128)>, rank = 1 : i64, checks = array<i64>} : tensor<128xf32>, !tile.buffer<f32>
  return
}

// To start the next one costs each instance; of many it starts when all have begun to end.
// MANY-LABEL: func.func @many
// MANY:       simt.wait_dependencies
// MANY-NOT:   simt.launch_dependents
func.func @many(%x: !tile.buffer<f32>, %out: !tile.buffer<f32>)
    attributes {tile.kernel, tile.starts_next, tile.grid = affine_map<() -> (1025)>, tile.warps = 1 : i64} {
  %a = tile.load %x[] {map = affine_map<(d0) -> (d0)>, shape = affine_map<() -> (32)>, rank = 1 : i64, checks = array<i64>} : (!tile.buffer<f32>) -> tensor<32xf32>
  tile.store %a, %out[] {map = affine_map<(d0) -> (d0)>, shape = affine_map<() -> (32)>, rank = 1 : i64, checks = array<i64>} : tensor<32xf32>, !tile.buffer<f32>
  return
}

// How many there are where sizes decide is told of those to optimize for.
// USUAL-LABEL: func.func @usual
// USUAL:       simt.wait_dependencies
// USUAL-NEXT:  simt.launch_dependents
func.func @usual(%x: !tile.buffer<f32>, %out: !tile.buffer<f32>, %n: index)
    attributes {tile.kernel, tile.starts_next, tile.usual_instances = 1024 : i64, tile.grid = affine_map<()[s0] -> (s0)>, tile.warps = 1 : i64} {
  %a = tile.load %x[] {map = affine_map<(d0) -> (d0)>, shape = affine_map<() -> (32)>, rank = 1 : i64, checks = array<i64>} : (!tile.buffer<f32>) -> tensor<32xf32>
  tile.store %a, %out[] {map = affine_map<(d0) -> (d0)>, shape = affine_map<() -> (32)>, rank = 1 : i64, checks = array<i64>} : tensor<32xf32>, !tile.buffer<f32>
  return
}

// The warp that copies waits first of all, and starts the next kernel.
// BOXES-LABEL: func.func @boxes
// BOXES:       simt.copy_warp {
// BOXES:         simt.wait_dependencies
// BOXES-NEXT:    simt.launch_dependents
// BOXES:         simt.copy_box
// BOXES:       simt.warpgroup_dot
// BOXES:       simt.wait_dependencies
// BOXES-NOT:   simt.launch_dependents
// BOXES:       return
func.func @boxes(%A: !tile.buffer<f16>, %B: !tile.buffer<f16>, %C: !tile.buffer<f16>)
    attributes {tile.kernel, tile.starts_next, tile.grid = affine_map<() -> (2)>, tile.warps = 8 : i64, tile.stages = 4 : i64} {
  %m = tile.program_id : index
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %steps = arith.constant 8 : index
  %c = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero) -> (tensor<128x128xf32>) {
    %a = tile.load %A[%m, %k] {map = affine_map<(d0, d1)[s0, s1] -> (s0 * 128 + d0, s1 * 64 + d1)>, shape = affine_map<()[s0, s1] -> (256, 512)>, rank = 2 : i64, checks = array<i64>} : (!tile.buffer<f16>, index, index) -> tensor<128x64xf16>
    %b = tile.load %B[%k] {map = affine_map<(d0, d1)[s0] -> (s0 * 64 + d0, d1)>, shape = affine_map<()[s0] -> (512, 128)>, rank = 2 : i64, checks = array<i64>, independent} : (!tile.buffer<f16>, index) -> tensor<64x128xf16>
    %d = tile.dot %a, %b, %acc : tensor<128x64xf16>, tensor<64x128xf16> -> tensor<128x128xf32>
    scf.yield %d : tensor<128x128xf32>
  }
  %r = arith.truncf %c : tensor<128x128xf32> to tensor<128x128xf16>
  tile.store %r, %C[%m] {map = affine_map<(d0, d1)[s0] -> (s0 * 128 + d0, d1)>, shape = affine_map<()[s0] -> (256, 128)>, rank = 2 : i64, checks = array<i64>} : tensor<128x128xf16>, !tile.buffer<f16>, index
  return
}

// Of one that runs beside others it copies at once, and ends when those have ended.
// BESIDE-LABEL: func.func @beside
// BESIDE-NEXT:  simt.launch_dependents
// BESIDE-NEXT:  simt.fence_device
// BESIDE:       simt.copy_warp {
// BESIDE-NOT:     simt.wait_dependencies
// BESIDE:       simt.warpgroup_dot
// BESIDE:       tile.store
// BESIDE:       simt.wait_dependencies
// BESIDE-NEXT:  return
// PTX-LABEL:    .entry beside(
// PTX:          cp.async.bulk.tensor
// PTX:          griddepcontrol.wait
// PTX:          exit;
// PTX:          wgmma
// PTX:          griddepcontrol.wait
// PTX-NEXT:     ret
func.func @beside(%A: !tile.buffer<f16>, %B: !tile.buffer<f16>, %C: !tile.buffer<f16>)
    attributes {tile.kernel, tile.waits_at_end, tile.starts_next, tile.grid = affine_map<() -> (2)>, tile.warps = 8 : i64, tile.stages = 4 : i64} {
  %m = tile.program_id : index
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %steps = arith.constant 8 : index
  %c = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero) -> (tensor<128x128xf32>) {
    %a = tile.load %A[%m, %k] {map = affine_map<(d0, d1)[s0, s1] -> (s0 * 128 + d0, s1 * 64 + d1)>, shape = affine_map<()[s0, s1] -> (256, 512)>, rank = 2 : i64, checks = array<i64>} : (!tile.buffer<f16>, index, index) -> tensor<128x64xf16>
    %b = tile.load %B[%k] {map = affine_map<(d0, d1)[s0] -> (s0 * 64 + d0, d1)>, shape = affine_map<()[s0] -> (512, 128)>, rank = 2 : i64, checks = array<i64>, independent} : (!tile.buffer<f16>, index) -> tensor<64x128xf16>
    %d = tile.dot %a, %b, %acc : tensor<128x64xf16>, tensor<64x128xf16> -> tensor<128x128xf32>
    scf.yield %d : tensor<128x128xf32>
  }
  %r = arith.truncf %c : tensor<128x128xf32> to tensor<128x128xf16>
  tile.store %r, %C[%m] {map = affine_map<(d0, d1)[s0] -> (s0 * 128 + d0, d1)>, shape = affine_map<()[s0] -> (256, 128)>, rank = 2 : i64, checks = array<i64>} : tensor<128x128xf16>, !tile.buffer<f16>, index
  return
}
