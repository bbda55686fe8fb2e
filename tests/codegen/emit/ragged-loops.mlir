// RUN: charonia-opt %s -emit-tiles=target=x86-64-v4 -cse -canonicalize | FileCheck %s
// Of loops inside of one another one alone has its last tile written by itself: the body is
// there twice, not four times.
// CHECK-LABEL: func.func @loops
// CHECK: scf.for
// CHECK: scf.for
// CHECK: tile.store
// CHECK: tile.store
// CHECK-NOT: tile.store
module {
  func.func @main(%x: tensor<3x33x50xf32>) -> tensor<3x33x50xf32> {
    %0 = graph.kernel "loops" (%x) attributes {schedule = {groups = [{dims = array<i64: 0>, tile = 1 : i64}, {dims = array<i64: 1>, tile = 8 : i64, sequential = true}, {dims = array<i64: 2>, tile = 16 : i64, sequential = true}], axes = array<i64: 1, 2>}} : (tensor<3x33x50xf32>) -> tensor<3x33x50xf32> {
    ^bb0(%a: tensor<3x33x50xf32>):
      %1 = graph.neg %a : (tensor<3x33x50xf32>) -> tensor<3x33x50xf32>
      graph.yield %1 : tensor<3x33x50xf32>
    }
    return %0 : tensor<3x33x50xf32>
  }
}
