// RUN: charonia-opt %s --pack-columns=panel=16 --split-input-file | FileCheck %s
// RUN: charonia-opt %s --pack-columns=panel=16 --form-kernels=dense-rows --split-input-file | FileCheck %s --check-prefix=KERNELS
// Rows of 4096 bytes: the lines of 16 columns all meet in 16 sets of a cache. The panels are a
// kernel's result though the views behind them undo its transpose.
// CHECK-LABEL: @powers
// CHECK: %[[R:.+]] = graph.reshape %{{.+}} -> tensor<1024x64x16xf32>
// CHECK: %[[P:.+]] = graph.transpose %[[R]] {graph.stored, permutation = array<i64: 1, 0, 2>}
// CHECK: graph.transpose %[[P]]
// CHECK: graph.matmul
// KERNELS-LABEL: @powers
// KERNELS: graph.kernel "transpose"{{.*}} -> tensor<64x1024x16xf32>
// KERNELS: graph.kernel "matmul"({{.*}}tensor<64x1024x16xf32>)
func.func @powers(%x: tensor<64x1024xf32>, %y: tensor<1024x1024xf32>) -> tensor<64x1024xf32> {
  %0 = graph.matmul %x, %y : (tensor<64x1024xf32>, tensor<1024x1024xf32>) -> tensor<64x1024xf32>
  return %0 : tensor<64x1024xf32>
}

// -----

// Rows of 4000 bytes spread over all sets.
// CHECK-LABEL: @spread
// CHECK-NOT: graph.stored
func.func @spread(%x: tensor<64x1024xf32>, %y: tensor<1024x1000xf32>) -> tensor<64x1000xf32> {
  %0 = graph.matmul %x, %y : (tensor<64x1024xf32>, tensor<1024x1000xf32>) -> tensor<64x1000xf32>
  return %0 : tensor<64x1000xf32>
}

// -----

// Few rows read the columns once or twice; few terms stay in the cache; what is repeated for each
// of a batch is smaller where it lies.
// CHECK-LABEL: @few
// CHECK-NOT: graph.stored
func.func @few(%x: tensor<16x1024xf32>, %y: tensor<1024x1024xf32>, %a: tensor<2x64x64xf32>, %b: tensor<2x64x1024xf32>,
               %c: tensor<2x64x1024xf32>) -> (tensor<16x1024xf32>, tensor<2x64x1024xf32>, tensor<2x64x1024xf32>) {
  %0 = graph.matmul %x, %y : (tensor<16x1024xf32>, tensor<1024x1024xf32>) -> tensor<16x1024xf32>
  %1 = graph.matmul %a, %b : (tensor<2x64x64xf32>, tensor<2x64x1024xf32>) -> tensor<2x64x1024xf32>
  %2 = graph.reshape %y : (tensor<1024x1024xf32>) -> tensor<1x1024x1024xf32>
  %3 = graph.broadcast %2 : (tensor<1x1024x1024xf32>) -> tensor<2x1024x1024xf32>
  %4 = graph.matmul %c, %3 : (tensor<2x64x1024xf32>, tensor<2x1024x1024xf32>) -> tensor<2x64x1024xf32>
  return %0, %1, %4 : tensor<16x1024xf32>, tensor<2x64x1024xf32>, tensor<2x64x1024xf32>
}

// -----

// What is stored as it is repeated lies so.
// CHECK-LABEL: @stored_repeat
// CHECK: graph.broadcast %{{.+}} {graph.stored}
// CHECK: graph.transpose %{{.+}} {graph.stored, permutation = array<i64: 2, 0, 1, 3>}
func.func @stored_repeat(%x: tensor<2x64x1024xf32>, %y: tensor<1x1024x1024xf32>) -> tensor<2x64x1024xf32> {
  %0 = graph.broadcast %y {graph.stored} : (tensor<1x1024x1024xf32>) -> tensor<2x1024x1024xf32>
  %1 = graph.matmul %x, %0 : (tensor<2x64x1024xf32>, tensor<2x1024x1024xf32>) -> tensor<2x64x1024xf32>
  return %1 : tensor<2x64x1024xf32>
}

// -----

// Weights are packed by themselves.
// CHECK-LABEL: @weight
// CHECK-NOT: graph.stored
func.func @weight(%x: tensor<64x1024xf32>) -> tensor<64x1024xf32> {
  %y = graph.weight "w" : tensor<1024x1024xf32>
  %0 = graph.matmul %x, %y : (tensor<64x1024xf32>, tensor<1024x1024xf32>) -> tensor<64x1024xf32>
  return %0 : tensor<64x1024xf32>
}

// -----

!p = tensor<1x512x3072xf32>
!r = tensor<1x512x1024xf32>
!s = tensor<1x512x16x64xf32>
!h = tensor<1x16x512x64xf32>

// Keys and values of heads, out of rows of one projection that lie 12 KB apart; queries are read once.
// CHECK-LABEL: @heads
// CHECK-COUNT-2: graph.transpose {{.*}} {graph.stored, permutation
// CHECK-NOT: graph.stored
func.func @heads(%x: !p) -> !h {
  %q = graph.slice %x {starts = affine_map<() -> (0, 0, 0)>, steps = array<i64: 1, 1, 1>} : (!p) -> !r
  %k = graph.slice %x {starts = affine_map<() -> (0, 0, 1024)>, steps = array<i64: 1, 1, 1>} : (!p) -> !r
  %v = graph.slice %x {starts = affine_map<() -> (0, 0, 2048)>, steps = array<i64: 1, 1, 1>} : (!p) -> !r
  %qs = graph.reshape %q : (!r) -> !s
  %ks = graph.reshape %k : (!r) -> !s
  %vs = graph.reshape %v : (!r) -> !s
  %qh = graph.transpose %qs {permutation = array<i64: 0, 2, 1, 3>} : (!s) -> !h
  %kh = graph.transpose %ks {permutation = array<i64: 0, 2, 1, 3>} : (!s) -> !h
  %vh = graph.transpose %vs {permutation = array<i64: 0, 2, 1, 3>} : (!s) -> !h
  %0 = graph.attention %qh, %kh, %vh {scale = 0.125 : f64} : (!h, !h, !h) -> !h
  return %0 : !h
}

// -----

!s = tensor<1x128x16x64xf32>
!h = tensor<1x16x128x64xf32>
!l = tensor<1x512x16x64xf32>
!m = tensor<1x16x512x64xf32>

// Few rows of queries; what is computed as it is passed over; keys that several heads share.
// CHECK-LABEL: @as_they_lie
// CHECK-NOT: graph.stored
func.func @as_they_lie(%x: !s, %y: !m, %z: tensor<1x1x512x1024xf32>, %q: !m) -> (!h, !m, !m) {
  %0 = graph.transpose %x {permutation = array<i64: 0, 2, 1, 3>} : (!s) -> !h
  %1 = graph.attention %0, %0, %0 {scale = 0.125 : f64} : (!h, !h, !h) -> !h
  %2 = graph.attention %q, %y, %y {scale = 0.125 : f64} : (!m, !m, !m) -> !m
  %3 = graph.slice %z {starts = affine_map<() -> (0, 0, 0, 0)>, steps = array<i64: 1, 1, 1, 1>} : (tensor<1x1x512x1024xf32>) -> tensor<1x1x512x64xf32>
  %4 = graph.broadcast %3 : (tensor<1x1x512x64xf32>) -> !m
  %5 = graph.attention %q, %4, %4 {scale = 0.125 : f64} : (!m, !m, !m) -> !m
  return %1, %2, %5 : !h, !m, !m
}
