// RUN: charonia-opt %s -print-cpu-code -o /dev/null | FileCheck %s
// Bodies that a size chooses have loops over instances of their own. What an instance's number decides, and what would
// divide by a size where no instance asks it, stays a branch inside.
// CHECK-LABEL: define void @rows
// CHECK: icmp slt i64 %{{.*}}, 9
// CHECK: br i1 %{{.*}}, label %version, label %otherwise
// CHECK: version:
// CHECK-NEXT: icmp slt i64 %2, %3
// CHECK: otherwise:
// CHECK-NEXT: icmp slt i64 %2, %3
// CHECK: instance:
// CHECK: load <8 x float>
// CHECK: instance1:
// CHECK: icmp slt i64 %pid{{.*}}, 9
// CHECK: load <16 x float>
func.func @rows(%x: !tile.buffer<f32>, %y: !tile.buffer<f32>, %n: index) attributes {tile.kernel} {
  %pid = tile.program_id : index
  %c8 = arith.constant 8 : index
  %short = arith.cmpi sle, %n, %c8 : index
  scf.if %short {
    %a = tile.load %x[%pid] {map = affine_map<(d0)[s0] -> (d0 + s0 * 8)>, shape = affine_map<()[s0] -> (64)>, rank = 1 : i64, checks = array<i64>} : (!tile.buffer<f32>, index) -> tensor<8xf32>
    tile.store %a, %y[%pid] {map = affine_map<(d0)[s0] -> (d0 + s0 * 8)>, shape = affine_map<()[s0] -> (64)>, rank = 1 : i64, checks = array<i64>} : tensor<8xf32>, !tile.buffer<f32>, index
  } else {
    %first = arith.cmpi sle, %pid, %c8 : index
    scf.if %first {
      %a = tile.load %x[%pid] {map = affine_map<(d0)[s0] -> (d0 + s0 * 16)>, shape = affine_map<()[s0] -> (256)>, rank = 1 : i64, checks = array<i64>} : (!tile.buffer<f32>, index) -> tensor<16xf32>
      tile.store %a, %y[%pid] {map = affine_map<(d0)[s0] -> (d0 + s0 * 16)>, shape = affine_map<()[s0] -> (256)>, rank = 1 : i64, checks = array<i64>} : tensor<16xf32>, !tile.buffer<f32>, index
    } else {
    }
  }
  return
}

// CHECK-LABEL: define void @divided
// CHECK-NOT: udiv
// CHECK: icmp slt i64 %2, %3
// CHECK: udiv
// CHECK: instance:
// CHECK: load <8 x float>
func.func @divided(%x: !tile.buffer<f32>, %y: !tile.buffer<f32>, %n: index, %m: index) attributes {tile.kernel} {
  %pid = tile.program_id : index
  %c8 = arith.constant 8 : index
  %rows = arith.divui %n, %m : index
  %short = arith.cmpi sle, %rows, %c8 : index
  scf.if %short {
    %a = tile.load %x[%pid] {map = affine_map<(d0)[s0] -> (d0 + s0 * 8)>, shape = affine_map<()[s0] -> (64)>, rank = 1 : i64, checks = array<i64>} : (!tile.buffer<f32>, index) -> tensor<8xf32>
    tile.store %a, %y[%pid] {map = affine_map<(d0)[s0] -> (d0 + s0 * 8)>, shape = affine_map<()[s0] -> (64)>, rank = 1 : i64, checks = array<i64>} : tensor<8xf32>, !tile.buffer<f32>, index
  } else {
  }
  return
}
