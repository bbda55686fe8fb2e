// RUN: charonia-opt %s -print-cpu-code="stage=assembly" -o /dev/null | FileCheck %s
// Whole registers go past the caches if their address allows it; a fence before the kernel's end orders them.
// CHECK-LABEL: copy:
// CHECK: testb $63
// CHECK: vmovntps %zmm
// CHECK: sfence
// CHECK-NEXT: {{vzeroupper|retq|popq}}
func.func @copy(%x: !tile.buffer<f32>, %y: !tile.buffer<f32> {tile.streamed}) attributes {tile.kernel} {
  %pid = tile.program_id : index
  %a = tile.load %x[%pid] {map = affine_map<(d0)[s0] -> (s0 * 16 + d0)>, shape = affine_map<()[s0] -> (256)>, rank = 1 : i64, checks = array<i64>} : (!tile.buffer<f32>, index) -> tensor<16xf32>
  tile.store %a, %y[%pid] {map = affine_map<(d0)[s0] -> (s0 * 16 + d0)>, shape = affine_map<()[s0] -> (256)>, rank = 1 : i64, checks = array<i64>} : tensor<16xf32>, !tile.buffer<f32>, index
  return
}

// Of open sizes these are asked once, and choose among two bodies.
// CHECK-LABEL: sizes:
// CHECK: orq
// CHECK-NOT: sfence
// CHECK: vmovups %zmm{{[0-9]+}}, (%r
// CHECK: vmovntps %zmm
// CHECK: sfence
func.func @sizes(%x: !tile.buffer<f32>, %y: !tile.buffer<f32> {tile.streamed = affine_map<()[s0] -> (s0 - 4096, s0 * 4 - 4096)>}, %n: index) attributes {tile.kernel} {
  %pid = tile.program_id : index
  %a = tile.load %x[%pid] {map = affine_map<(d0)[s0] -> (s0 * 16 + d0)>, shape = affine_map<()[s0] -> (256)>, rank = 1 : i64, checks = array<i64>} : (!tile.buffer<f32>, index) -> tensor<16xf32>
  tile.store %a, %y[%pid] {map = affine_map<(d0)[s0] -> (s0 * 16 + d0)>, shape = affine_map<()[s0] -> (256)>, rank = 1 : i64, checks = array<i64>} : tensor<16xf32>, !tile.buffer<f32>, index
  return
}

// Each result is asked: one that always goes past the caches does so in both bodies, and of two others each by itself.
// CHECK-LABEL: always:
// CHECK: vmovntps %zmm
// CHECK: vmovntps %zmm
// CHECK: vmovntps %zmm
// CHECK: sfence
func.func @always(%x: !tile.buffer<f32>, %y: !tile.buffer<f32> {tile.streamed}, %z: !tile.buffer<f32> {tile.streamed = affine_map<()[s0] -> (s0 - 4096, s0 * 4 - 4096)>}, %n: index) attributes {tile.kernel} {
  %pid = tile.program_id : index
  %a = tile.load %x[%pid] {map = affine_map<(d0)[s0] -> (s0 * 16 + d0)>, shape = affine_map<()[s0] -> (256)>, rank = 1 : i64, checks = array<i64>} : (!tile.buffer<f32>, index) -> tensor<16xf32>
  tile.store %a, %y[%pid] {map = affine_map<(d0)[s0] -> (s0 * 16 + d0)>, shape = affine_map<()[s0] -> (256)>, rank = 1 : i64, checks = array<i64>} : tensor<16xf32>, !tile.buffer<f32>, index
  tile.store %a, %z[%pid] {map = affine_map<(d0)[s0] -> (s0 * 16 + d0)>, shape = affine_map<()[s0] -> (256)>, rank = 1 : i64, checks = array<i64>} : tensor<16xf32>, !tile.buffer<f32>, index
  return
}

// CHECK-LABEL: two:
// CHECK-NOT: sfence
// CHECK: retq
// CHECK: orq
// CHECK: vmovntps %zmm
// CHECK: orq
// CHECK: vmovntps %zmm
// CHECK: sfence
func.func @two(%x: !tile.buffer<f32>, %y: !tile.buffer<f32> {tile.streamed = affine_map<()[s0] -> (s0 - 8192)>}, %z: !tile.buffer<f32> {tile.streamed = affine_map<()[s0] -> (s0 - 4096)>}, %n: index) attributes {tile.kernel} {
  %pid = tile.program_id : index
  %a = tile.load %x[%pid] {map = affine_map<(d0)[s0] -> (s0 * 16 + d0)>, shape = affine_map<()[s0] -> (256)>, rank = 1 : i64, checks = array<i64>} : (!tile.buffer<f32>, index) -> tensor<16xf32>
  tile.store %a, %y[%pid] {map = affine_map<(d0)[s0] -> (s0 * 16 + d0)>, shape = affine_map<()[s0] -> (256)>, rank = 1 : i64, checks = array<i64>} : tensor<16xf32>, !tile.buffer<f32>, index
  tile.store %a, %z[%pid] {map = affine_map<(d0)[s0] -> (s0 * 16 + d0)>, shape = affine_map<()[s0] -> (256)>, rank = 1 : i64, checks = array<i64>} : tensor<16xf32>, !tile.buffer<f32>, index
  return
}
