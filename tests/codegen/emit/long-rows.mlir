// RUN: charonia-opt %s -emit-tiles=target=gpu -cse -canonicalize | FileCheck %s
// RUN: charonia-opt %s -emit-tiles=target=gpu -cse -canonicalize | FileCheck %s --check-prefix=SHORT
// A GPU walks along a long row twice: once for all that is known of it, once to write. A
// maximum and the sum below it share an exponential; lanes meet in plain
// reductions. Short rows stay in registers.
// CHECK-LABEL: func.func @softmax
// CHECK: %[[BOTH:.*]]:2 = scf.for {{.*}} iter_args(%[[MAX:.*]] = %{{.*}}, %[[SUM:.*]] = %{{.*}}) -> (tensor<4096xf32>, tensor<4096xf32>)
// CHECK:   tile.load
// CHECK:   %[[ABOVE:.*]] = arith.subf %{{.*}}, %[[MAX]]
// CHECK:   math.absf %[[ABOVE]]
// CHECK:   %[[FACTOR:.*]] = math.exp
// CHECK-NOT: math.exp
// CHECK:   scf.yield
// CHECK: %[[MOST:.*]] = tile.reduce %[[BOTH]]#0 {
// CHECK: %[[BELOW:.*]] = arith.subf %[[BOTH]]#0,
// CHECK: %[[SCALE:.*]] = math.exp %[[BELOW]]
// CHECK: %[[SCALED:.*]] = arith.mulf %[[BOTH]]#1, %[[SCALE]]
// CHECK: tile.reduce %[[SCALED]] {
// CHECK: scf.for
// CHECK:   tile.store
// CHECK-NOT: scf.for
// CHECK-LABEL: func.func @norm
// CHECK: %[[ALL:.*]]:3 = scf.for
// CHECK:   tile.load
// CHECK: %[[TOTALS:.*]] = arith.mulf %[[ALL]]#2, %[[ALL]]#0
// CHECK: tile.reduce %[[TOTALS]] {
// CHECK: %[[SQUARES:.*]] = arith.addf %[[ALL]]#1,
// CHECK: tile.reduce %[[SQUARES]] {
// CHECK: scf.for
// CHECK:   tile.store
// CHECK-NOT: scf.for
// What is computed of a row that a GPU normalizes may be kept from one walk to the next in the
// row's own type, as it would be stored; a softmax's may not, which a far bias would leave equal
// terms.
// CHECK-LABEL: func.func @kept
// CHECK: scf.for
// CHECK:   arith.addf {{.*}} {tile.may_be_rounded = f16}
// CHECK: scf.for
// CHECK:   arith.addf {{.*}} {tile.may_be_rounded = f16}
// CHECK-LABEL: func.func @biased
// CHECK-NOT: tile.may_be_rounded
// CHECK: tile.reduce
// SHORT-LABEL: func.func @short
// SHORT-NOT: scf.for
// SHORT: tile.store
module {
  func.func @main(%x: tensor<100x50257xf32>, %y: tensor<64x768xf32>, %h: tensor<100x50257xf16>) -> tensor<100x50257xf32> {
    %0 = graph.kernel "softmax" (%x) : (tensor<100x50257xf32>) -> tensor<100x50257xf32> {
    ^bb0(%a: tensor<100x50257xf32>):
      %1 = graph.softmax %a {axis = 1} : (tensor<100x50257xf32>) -> tensor<100x50257xf32>
      graph.yield %1 : tensor<100x50257xf32>
    }
    %2 = graph.kernel "norm" (%x) : (tensor<100x50257xf32>) -> tensor<100x50257xf32> {
    ^bb0(%a: tensor<100x50257xf32>):
      %1 = graph.normalize %a {axes = array<i64: 1>, epsilon = 1.0e-5 : f64} : (tensor<100x50257xf32>) -> tensor<100x50257xf32>
      graph.yield %1 : tensor<100x50257xf32>
    }
    %3 = graph.kernel "short" (%y) : (tensor<64x768xf32>) -> tensor<64x768xf32> {
    ^bb0(%a: tensor<64x768xf32>):
      %1 = graph.softmax %a {axis = 1} : (tensor<64x768xf32>) -> tensor<64x768xf32>
      graph.yield %1 : tensor<64x768xf32>
    }
    %4 = graph.kernel "kept" (%h, %h) : (tensor<100x50257xf16>, tensor<100x50257xf16>) -> tensor<100x50257xf16> {
    ^bb0(%a: tensor<100x50257xf16>, %b: tensor<100x50257xf16>):
      %1 = graph.add %a, %b : (tensor<100x50257xf16>, tensor<100x50257xf16>) -> tensor<100x50257xf16>
      %s = graph.normalize %1 {axes = array<i64: 1>, epsilon = 1.0e-5 : f64} : (tensor<100x50257xf16>) -> tensor<100x50257xf16>
      graph.yield %s : tensor<100x50257xf16>
    }
    %5 = graph.kernel "biased" (%h, %h) : (tensor<100x50257xf16>, tensor<100x50257xf16>) -> tensor<100x50257xf16> {
    ^bb0(%a: tensor<100x50257xf16>, %b: tensor<100x50257xf16>):
      %1 = graph.add %a, %b : (tensor<100x50257xf16>, tensor<100x50257xf16>) -> tensor<100x50257xf16>
      %s = graph.softmax %1 {axis = 1} : (tensor<100x50257xf16>) -> tensor<100x50257xf16>
      graph.yield %s : tensor<100x50257xf16>
    }
    return %2 : tensor<100x50257xf32>
  }
}
