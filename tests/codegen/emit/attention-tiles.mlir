// RUN: charonia-opt %s -emit-tiles=target=sm_90a -split-input-file | FileCheck %s
// Of many instances tiles are tall where rows fill more than half of them, and not where a window has few.
// CHECK-LABEL: func.func @window
// CHECK:         tile.dot {{.*}} -> tensor<64x64xf32>
// CHECK-LABEL: func.func @rows
// CHECK:         tile.dot {{.*}} -> tensor<128x128xf32>
!w = tensor<1024x2x49x32xf16>
!r = tensor<1024x2x100x32xf16>
func.func @main(%q: !w, %r: !r) -> (!w, !r) {
  %0 = graph.kernel "window"(%q) : (!w) -> !w {
  ^bb0(%a: !w):
    %1 = graph.attention %a, %a, %a {scale = 0.25 : f64} : (!w, !w, !w) -> !w
    graph.yield %1 : !w
  }
  %2 = graph.kernel "rows"(%r) : (!r) -> !r {
  ^bb0(%a: !r):
    %3 = graph.attention %a, %a, %a {scale = 0.25 : f64} : (!r, !r, !r) -> !r
    graph.yield %3 : !r
  }
  return %0, %2 : !w, !r
}
