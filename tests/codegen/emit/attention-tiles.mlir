// RUN: charonia-opt %s -emit-tiles=target=sm_90a -split-input-file | FileCheck %s
// Of many instances tiles are tall where rows fill more than half of them, and not where a window has few.
// CHECK-LABEL: func.func @window
// CHECK:         tile.dot {{.*}} -> tensor<64x64xf32>
// CHECK-LABEL: func.func @rows
// CHECK:         tile.dot {{.*}} -> tensor<128x128xf32>
// Two instances of a multiprocessor share short steps, unless there are so many features that one alone has room.
// CHECK-LABEL: func.func @short
// CHECK:         tile.dot {{.*}} -> tensor<64x64xf32>
// CHECK-LABEL: func.func @features
// CHECK:         tile.dot {{.*}} -> tensor<64x128xf32>
!w = tensor<1024x2x49x32xf16>
!r = tensor<1024x2x100x32xf16>
!q = tensor<1x140x64x128xf16>
!k = tensor<1x140x400x128xf16>
!f = tensor<1x140x64x192xf16>
!g = tensor<1x140x400x192xf16>
func.func @main(%q: !w, %r: !r, %s: !q, %k: !k, %f: !f, %g: !g) -> (!w, !r, !q, !q) {
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
  %4 = graph.kernel "short"(%s, %k) : (!q, !k) -> !q {
  ^bb0(%a: !q, %b: !k):
    %5 = graph.attention %a, %b, %b {scale = 0.25 : f64} : (!q, !k, !k) -> !q
    graph.yield %5 : !q
  }
  %6 = graph.kernel "features"(%f, %g, %k) : (!f, !g, !k) -> !q {
  ^bb0(%a: !f, %b: !g, %c: !k):
    %7 = graph.attention %a, %b, %c {scale = 0.25 : f64} : (!f, !g, !k) -> !q
    graph.yield %7 : !q
  }
  return %0, %2, %4, %6 : !w, !r, !q, !q
}
