// RUN: charonia-opt %s -emit-tiles=target=sm_90a | FileCheck %s
// Scores stay products, and are scaled in the exponent: by themselves, where that makes nothing larger, so that it takes
// one instruction with the difference from the top. What a later top rescales is a difference first: 1 where the top is
// the same, however that rounds.
// CHECK-LABEL: func.func @small
// CHECK:         %[[NEW:.*]] = arith.maximumf %[[TOP:.*]], %{{.*}} : tensor<64xf32>
// CHECK:         %[[SAFE:.*]] = arith.select {{.*}}, %{{.*}}, %[[NEW]]
// CHECK:         %[[S:.*]] = arith.mulf %{{.*}} : tensor<64x128xf32>
// CHECK:         %[[M:.*]] = arith.mulf %[[SAFE]], %{{.*}} : tensor<64xf32>
// CHECK:         %[[MS:.*]] = tile.broadcast %[[M]]
// CHECK:         %[[D:.*]] = arith.subf %[[S]], %[[MS]]
// CHECK:         math.exp2 %[[D]]
// CHECK:         %[[DIFFERENCE:.*]] = arith.subf %[[TOP]], %[[SAFE]]
// CHECK:         %[[SCALED:.*]] = arith.mulf %[[DIFFERENCE]],
// CHECK:         math.exp2 %[[SCALED]]
// CHECK-LABEL: func.func @large
// CHECK:         %[[SAFE:.*]] = arith.select
// CHECK:         %[[MS:.*]] = tile.broadcast %[[SAFE]]
// CHECK:         %[[D:.*]] = arith.subf %{{.*}}, %[[MS]]
// CHECK:         %[[SCALED:.*]] = arith.mulf %[[D]],
// CHECK:         math.exp2 %[[SCALED]]
!q = tensor<1x2x128x128xf16>
!k = tensor<1x2x512x128xf16>
func.func @main(%q: !q, %k: !k) -> (!q, !q) {
  %0 = graph.kernel "small"(%q, %k) : (!q, !k) -> !q {
  ^bb0(%a: !q, %b: !k):
    %1 = graph.attention %a, %b, %b {scale = 0.25 : f64} : (!q, !k, !k) -> !q
    graph.yield %1 : !q
  }
  %2 = graph.kernel "large"(%q, %k) : (!q, !k) -> !q {
  ^bb0(%a: !q, %b: !k):
    %3 = graph.attention %a, %b, %b {scale = 2.0 : f64} : (!q, !k, !k) -> !q
    graph.yield %3 : !q
  }
  return %0, %2 : !q, !q
}
