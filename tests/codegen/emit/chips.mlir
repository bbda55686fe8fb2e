// The chip decides on the tile: warpgroups take large ones. Where there are several
// rounds of instances, those of a round lie in a square: 16 of 32 rows of tiles by the
// columns, then the others.
// RUN: charonia-opt %s -emit-tiles=target=sm_90a -cse -canonicalize | FileCheck %s
// RUN: charonia-opt %s -emit-tiles=target=sm_80 -cse -canonicalize | FileCheck %s --check-prefix=SM80
// RUN: not charonia-opt %s -emit-tiles=target=sm_7 2>&1 | FileCheck %s --check-prefix=UNKNOWN

// UNKNOWN: unknown target 'sm_7'; there are x86-64-v3, x86-64-v4, gpu and the chips as sm_90

// CHECK-LABEL: func.func @large(
// CHECK-SAME:    tile.stages = 4 : i64, tile.warps = 8 : i64
// CHECK-DAG:     %[[ROWS:.*]] = arith.constant 16 : index
// CHECK-DAG:     %[[WHOLE:.*]] = arith.constant 256 : index
// CHECK:         %[[PID:.*]] = tile.program_id
// CHECK:         %[[PART:.*]] = arith.divui %[[PID]], %[[WHOLE]]
// CHECK:         arith.remui %[[PID]], %[[WHOLE]]
// CHECK:         arith.muli %[[PART]], %[[ROWS]]
// CHECK:         tile.dot {{.*}} tensor<128x64xf16>, tensor<64x256xf16>

// SM80-LABEL: func.func @large(
// SM80:         tile.dot {{.*}} tensor<128x32xf16>, tensor<32x256xf16>
module {
  func.func @main(%x: tensor<4096x4096xf16>, %w: tensor<4096x4096xf16>) -> tensor<4096x4096xf16> {
    %0 = graph.kernel "large" (%x, %w) : (tensor<4096x4096xf16>, tensor<4096x4096xf16>) -> tensor<4096x4096xf16> {
    ^bb0(%a: tensor<4096x4096xf16>, %b: tensor<4096x4096xf16>):
      %1 = graph.matmul %a, %b : (tensor<4096x4096xf16>, tensor<4096x4096xf16>) -> tensor<4096x4096xf16>
      graph.yield %1 : tensor<4096x4096xf16>
    }
    return %0 : tensor<4096x4096xf16>
  }
}
